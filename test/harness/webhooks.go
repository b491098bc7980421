// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WebhookServer is where a manager serves its webhooks, as its flags --webhook-port and --webhook-cert-dir say.
type WebhookServer struct {
	// Port of the loopback address. It is held for this process until the cluster is stopped.
	Port int

	// CertDir has a certificate for the loopback address in tls.crt, and its key in tls.key.
	CertDir string
}

// NewWebhookServer prepares for a manager in this or another process. It does what cert-manager does in an installation: the certificate is
// signed by the authority that PointWebhooks gives to the API server.
func (mc *ManagementCluster) NewWebhookServer(name string) (WebhookServer, error) {
	port, err := mc.ports.Port()
	if err != nil {
		return WebhookServer{}, err
	}
	certDir := filepath.Join(mc.dir, fmt.Sprintf("%s-webhooks-%d", name, port))
	if err := os.MkdirAll(certDir, 0o700); err != nil {
		return WebhookServer{}, err
	}
	serving, err := mc.ca.serving(name)
	if err != nil {
		return WebhookServer{}, err
	}
	if _, _, err := serving.write(certDir, "tls"); err != nil {
		return WebhookServer{}, err
	}
	return WebhookServer{Port: port, CertDir: certDir}, nil
}

// PointWebhooks changes the webhook configurations among the objects: webhooks that name a Service, which leads nowhere without a pod
// network, call the same path of the server. Other objects stay as they are.
func (mc *ManagementCluster) PointWebhooks(server WebhookServer, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		if !strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
			continue
		}
		if err := mc.pointWebhooks(object, server.Port); err != nil {
			return err
		}
	}
	return nil
}

// pointWebhooks makes the webhooks call a local server, whose certificate the cluster's authority has signed.
func (mc *ManagementCluster) pointWebhooks(configuration *unstructured.Unstructured, port int) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("%s %s: %w", configuration.GetKind(), configuration.GetName(), err)
	}
	for i := range webhooks {
		webhook, ok := webhooks[i].(map[string]any)
		if !ok {
			return fmt.Errorf("%s %s: webhooks[%d] is no object", configuration.GetKind(), configuration.GetName(), i)
		}
		path, found, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil || !found {
			return fmt.Errorf("%s %s: webhooks[%d] names no path of a service: %w",
				configuration.GetKind(), configuration.GetName(), i, err)
		}
		webhook["clientConfig"] = map[string]any{
			"url":      "https://" + loopbackAddress(port) + path,
			"caBundle": mc.ca.base64(),
		}
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}
