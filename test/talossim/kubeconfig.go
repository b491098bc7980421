// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	stdx509 "crypto/x509"
	"fmt"
	"time"

	"github.com/siderolabs/crypto/x509"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const adminValidity = time.Hour

// adminKubeconfig is an administrator's access to the cluster, signed by the cluster's authority.
func adminKubeconfig(c *nodeConfig) ([]byte, error) {
	ca := c.K8sAPIServerCAConfig()
	if ca == nil || ca.IssuingCA() == nil || c.K8sClusterConfig() == nil {
		return nil, status.Error(codes.FailedPrecondition, "the configuration has no Kubernetes CA")
	}
	pair, err := clientPair(ca.IssuingCA(), "admin", "system:masters")
	if err != nil {
		return nil, err
	}
	return kubeconfig(c.K8sClusterConfig().ClusterName(), c.K8sClusterConfig().ClusterEndpoint().String(), "admin", ca.IssuingCA().Crt, pair)
}

// clientPair signs a client certificate for a user of the API server.
func clientPair(ca *x509.PEMEncodedCertificateAndKey, user string, groups ...string) (*x509.KeyPair, error) {
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(ca)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", user, err)
	}
	return signClient(authority, user, groups...)
}

func signClient(authority *x509.CertificateAuthority, user string, groups ...string) (*x509.KeyPair, error) {
	now := time.Now()
	pair, err := x509.NewKeyPair(authority,
		x509.CommonName(user), x509.Organization(groups...),
		x509.NotBefore(now.Add(-time.Minute)), x509.NotAfter(now.Add(adminValidity)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature|stdx509.KeyUsageKeyEncipherment),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}),
	)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", user, err)
	}
	return pair, nil
}

// kubeconfig writes the access of one user.
func kubeconfig(cluster, server, user string, ca []byte, pair *x509.KeyPair) ([]byte, error) {
	name := user + "@" + cluster
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.CrtPEM, ClientKeyData: pair.KeyPEM}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name, Namespace: "default"}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}
