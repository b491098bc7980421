// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/cluster-api/util/certs"

	"github.com/maesh-dev/ichor/test/tools"
)

const (
	serviceRange = "10.96.0.0/16"
	serviceIP    = "10.96.0.1"

	// serviceAccountKeyFile signs the tokens of service accounts, serviceAccountPublicKeyFile verifies them.
	serviceAccountKeyFile       = "service-account.key"
	serviceAccountPublicKeyFile = "service-account.pub"

	// componentGrace is how long a component may take to end when asked to. Nothing of its state is needed afterwards.
	componentGrace = 5 * time.Second
)

// managementControllers are those that mean something where there is no node and no image. The workload controllers
// create the pods that disruption budgets and rollouts of add-ons are about, though none of them will run.
var managementControllers = []string{
	"clusterrole-aggregation-controller",
	"daemonset-controller",
	"deployment-controller",
	"disruption-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"replicaset-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
}

func (mc *ManagementCluster) startEtcd(ctx context.Context) error {
	clientPort, err := mc.ports.Port()
	if err != nil {
		return err
	}
	peerPort, err := mc.ports.Port()
	if err != nil {
		return err
	}
	mc.etcdURL = "http://" + loopbackAddress(clientPort)
	peerURL := "http://" + loopbackAddress(peerPort)
	return mc.run(ctx, program{
		name: tools.Etcd, path: mc.paths[tools.Etcd], grace: componentGrace,
		args: []string{
			"--name=management",
			"--data-dir=" + filepath.Join(mc.dir, "etcd"),
			"--listen-client-urls=" + mc.etcdURL,
			"--advertise-client-urls=" + mc.etcdURL,
			"--listen-peer-urls=" + peerURL,
			"--initial-advertise-peer-urls=" + peerURL,
			"--initial-cluster=management=" + peerURL,
			// The data need not outlive a crash of the machine, and syncing them costs most of a start.
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
		ready: answers(mc.etcdURL+"/health", nil),
	})
}

func (mc *ManagementCluster) startAPIServer(ctx context.Context) error {
	port, err := mc.ports.Port()
	if err != nil {
		return err
	}
	mc.serverURL = "https://" + loopbackAddress(port)
	serving, err := mc.ca.serving("kube-apiserver")
	if err != nil {
		return err
	}
	certificateFile, keyFile, err := serving.write(mc.dir, "kube-apiserver")
	if err != nil {
		return err
	}
	if err := mc.writeServiceAccountKeys(); err != nil {
		return err
	}
	if err := os.WriteFile(mc.caFile(), mc.ca.pem(), 0o644); err != nil {
		return err
	}
	audit, err := mc.auditArguments()
	if err != nil {
		return err
	}
	return mc.run(ctx, program{
		name: tools.KubeAPIServer, path: mc.paths[tools.KubeAPIServer], grace: componentGrace,
		args: append([]string{
			"--etcd-servers=" + mc.etcdURL,
			"--bind-address=127.0.0.1",
			"--secure-port=" + strconv.Itoa(port),
			"--cert-dir=" + mc.dir,
			"--tls-cert-file=" + certificateFile,
			"--tls-private-key-file=" + keyFile,
			"--client-ca-file=" + mc.caFile(),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + filepath.Join(mc.dir, serviceAccountPublicKeyFile),
			"--service-account-signing-key-file=" + filepath.Join(mc.dir, serviceAccountKeyFile),
			"--service-cluster-ip-range=" + serviceRange,
			"--authorization-mode=RBAC",
			"--allow-privileged=true",
			// Otherwise the server looks for an address of a default route, which a machine without a network lacks.
			"--advertise-address=127.0.0.1",
			// A loopback address is no endpoint for the kubernetes Service, and nothing here would use it.
			"--endpoint-reconciler-type=none",
			// Pods are never run, and must not have to wait for a service account.
			"--disable-admission-plugins=ServiceAccount",
		}, append(audit, mc.egressArguments()...)...),
		ready: answers(mc.serverURL+"/readyz", mc.ca),
	})
}

func (mc *ManagementCluster) startControllerManager(ctx context.Context) error {
	const user = "system:kube-controller-manager"
	kubeconfig, err := mc.UserKubeconfig(user)
	if err != nil {
		return err
	}
	serving, err := mc.ca.serving("kube-controller-manager")
	if err != nil {
		return err
	}
	certificateFile, keyFile, err := serving.write(mc.dir, "kube-controller-manager")
	if err != nil {
		return err
	}
	port, err := mc.ports.Port()
	if err != nil {
		return err
	}
	return mc.run(ctx, program{
		name: tools.KubeControllerManager, path: mc.paths[tools.KubeControllerManager], grace: componentGrace,
		args: []string{
			"--kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			"--secure-port=" + strconv.Itoa(port),
			"--tls-cert-file=" + certificateFile,
			"--tls-private-key-file=" + keyFile,
			"--leader-elect=false",
			"--controllers=" + strings.Join(managementControllers, ","),
			// Each controller has the rights of its own role, as kubeadm and Talos set it.
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + filepath.Join(mc.dir, serviceAccountKeyFile),
			"--root-ca-file=" + mc.caFile(),
		},
		ready: answers("https://"+loopbackAddress(port)+"/healthz", mc.ca),
	})
}

func (mc *ManagementCluster) caFile() string {
	return filepath.Join(mc.dir, "ca.crt")
}

func (mc *ManagementCluster) writeServiceAccountKeys() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	public, err := certs.EncodePublicKeyPEMFromSigner(key.Public())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(mc.dir, serviceAccountKeyFile), private, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(mc.dir, serviceAccountPublicKeyFile), public, 0o644)
}

// answers returns a check that a URL answers with success. ca is the authority of an https URL.
func answers(url string, ca *authority) func(context.Context) error {
	transport := &http.Transport{DisableKeepAlives: true}
	if ca != nil {
		roots := x509.NewCertPool()
		roots.AddCert(ca.certificate)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	httpClient := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := httpClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close() //nolint:errcheck // The body is not read.
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}
