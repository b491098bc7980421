// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"path/filepath"
	"regexp"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// connect makes the administrator's configuration, kubeconfig and client.
func (mc *ManagementCluster) connect() error {
	var err error
	if mc.admin, err = mc.UserConfig("admin", "system:masters"); err != nil {
		return err
	}
	mc.kubeconfig = filepath.Join(mc.dir, "kubeconfig")
	if err := writeKubeconfig(mc.kubeconfig, mc.admin); err != nil {
		return err
	}
	mc.client, err = client.New(mc.admin, client.Options{Scheme: NewScheme()})
	return err
}

// Config returns a copy of the administrator's configuration. It has no rate limit of its own.
func (mc *ManagementCluster) Config() *rest.Config {
	return rest.CopyConfig(mc.admin)
}

// Client returns an administrator's client without a cache, for the kinds of NewScheme and for unstructured objects.
func (mc *ManagementCluster) Client() client.Client {
	return mc.client
}

// KubeconfigPath is the file that gives an administrator's access, for kubectl and other programs.
func (mc *ManagementCluster) KubeconfigPath() string {
	return mc.kubeconfig
}

// UserConfig returns a configuration that authenticates as another user, with that user's rights and no more. A service
// account's user is system:serviceaccount:NAMESPACE:NAME, of the groups system:serviceaccounts and
// system:serviceaccounts:NAMESPACE.
func (mc *ManagementCluster) UserConfig(user string, groups ...string) (*rest.Config, error) {
	pair, err := mc.ca.client(user, groups)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", user, err)
	}
	return &rest.Config{
		Host: mc.serverURL,
		// The tests' load is not limited by the client, unless a manager under test sets its own limit.
		QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   mc.ca.pem(),
			CertData: pair.certificate,
			KeyData:  pair.key,
		},
	}, nil
}

// UserKubeconfig writes a kubeconfig for UserConfig into the cluster's directory and returns its path.
func (mc *ManagementCluster) UserKubeconfig(user string, groups ...string) (string, error) {
	config, err := mc.UserConfig(user, groups...)
	if err != nil {
		return "", err
	}
	name := regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(user, "-")
	path := filepath.Join(mc.dir, name+".kubeconfig")
	if err := writeKubeconfig(path, config); err != nil {
		return "", fmt.Errorf("user %s: %w", user, err)
	}
	return path, nil
}

func writeKubeconfig(path string, config *rest.Config) error {
	const name = "management"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
	}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	return clientcmd.WriteToFile(*kubeconfig, path)
}
