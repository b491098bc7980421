// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/infrastructure/inprocess"
	"github.com/maesh-dev/ichor/test/infrastructure/machines"
	"github.com/maesh-dev/ichor/test/tools"
)

// serveCommand runs the demo's world until it is told to stop.
const serveCommand = "serve"

// The manager's ServiceAccount, as config/bootstrap binds it.
const (
	managerNamespace = "ichor-bootstrap-system"
	managerUser      = "system:serviceaccount:" + managerNamespace + ":ichor-bootstrap-manager"
)

// rightsKinds are what is applied of the components: the manager itself runs as a process, not in a pod.
var rightsKinds = []string{"Namespace", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}

const managerTimeout = time.Minute

// serve starts everything and stays. The file "ready" appears when all of it answers.
func serve(ctx context.Context, s state) (err error) {
	ctrl.SetLogger(harness.NewLogger(os.Stderr)) // of the infrastructure provider, into world.log

	pid := strconv.Itoa(os.Getpid())
	if err = os.WriteFile(s.path("pid"), []byte(pid), 0o600); err != nil {
		return err
	}

	defer func() { err = errors.Join(err, os.Remove(s.path("pid"))) }()

	crds, err := harness.ReadCRDs(filepath.Join(s.root, "config", "bootstrap", "crd", "bases"))
	if err != nil {
		return err
	}

	components, rights, err := managerComponents(ctx, s)
	if err != nil {
		return err
	}

	infrastructure, err := inprocess.Read(ctx, s.root)
	if err != nil {
		return err
	}

	cluster, err := harness.StartManagementCluster(ctx, harness.Options{
		Dir:       s.path("cluster"),
		LogDir:    s.path("logs"),
		CAPICore:  true,
		CRDs:      append(infrastructure.CRDs, crds...),
		Manifests: []string{rights, infrastructure.AggregatedRole},
	})
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, cluster.Stop()) }()

	if err = copyFile(cluster.KubeconfigPath(), s.kubeconfig()); err != nil {
		return err
	}

	webhooks, err := cluster.NewWebhookServer("ichor-bootstrap-manager")
	if err != nil {
		return err
	}

	manager, err := startManager(ctx, s, cluster, webhooks)
	if err != nil {
		return err
	}

	if err = applyWebhooks(ctx, cluster, webhooks, components); err != nil {
		return errors.Join(err, manager.Process.Kill())
	}

	provider, err := inprocess.Start(ctx, infrastructure, cluster, machines.Options{Full: true, Dir: s.path("machines")})
	if err != nil {
		return errors.Join(err, manager.Process.Kill())
	}

	defer func() { err = errors.Join(err, provider.Stop()) }()

	if err = os.WriteFile(s.path("ready"), nil, 0o600); err != nil {
		return errors.Join(err, manager.Process.Kill())
	}

	return stay(ctx, manager)
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}

	return os.WriteFile(to, content, 0o600)
}

// stay waits until the demo is told to end, or a part of it has ended by itself.
func stay(ctx context.Context, manager *exec.Cmd) error {
	ended := make(chan error, 1)

	go func() { ended <- manager.Wait() }()

	select {
	case <-ctx.Done():
		return errors.Join(manager.Process.Signal(syscall.SIGTERM), ignoreExit(<-ended))
	case err := <-ended:
		return fmt.Errorf("the bootstrap manager has ended: %w", err)
	}
}

// managerComponents are what an installation of the manager consists of, and the file with those that give it its rights.
func managerComponents(ctx context.Context, s state) (components []*unstructured.Unstructured, rights string, err error) {
	kubectl, err := tools.Path(ctx, tools.Kubectl)
	if err != nil {
		return nil, "", err
	}

	manifests, err := exec.CommandContext(ctx, kubectl, "kustomize", filepath.Join(s.root, "config", "bootstrap", "default")).Output()
	if err != nil {
		return nil, "", fmt.Errorf("build config/bootstrap/default: %w", err)
	}

	if components, err = harness.DecodeYAML(manifests); err != nil {
		return nil, "", fmt.Errorf("build config/bootstrap/default: %w", err)
	}

	rights, err = managerRights(s, components)

	return components, rights, err
}

// managerRights writes the manifests that give the manager its rights, as an installation has them, and returns their file.
func managerRights(s state, components []*unstructured.Unstructured) (string, error) {
	var rights bytes.Buffer

	for _, component := range components {
		if !slices.Contains(rightsKinds, component.GetKind()) {
			continue
		}

		manifest, err := yaml.Marshal(component.Object)
		if err != nil {
			return "", err
		}

		rights.WriteString("---\n")
		rights.Write(manifest)
	}

	path := s.path("rights.yaml")

	return path, os.WriteFile(path, rights.Bytes(), 0o600)
}

// applyWebhooks has the API server ask the manager, once that answers.
func applyWebhooks(ctx context.Context, cluster *harness.ManagementCluster, server harness.WebhookServer, components []*unstructured.Unstructured) error {
	webhooks := slices.DeleteFunc(slices.Clone(components), func(component *unstructured.Unstructured) bool {
		return component.GetKind() != "ValidatingWebhookConfiguration"
	})

	if err := cluster.PointWebhooks(server, webhooks...); err != nil {
		return err
	}

	return cluster.Apply(ctx, webhooks...)
}

// startManager starts the bootstrap manager with the rights of its ServiceAccount, and waits until it is ready.
func startManager(ctx context.Context, s state, cluster *harness.ManagementCluster, webhooks harness.WebhookServer) (*exec.Cmd, error) {
	kubeconfig, err := cluster.UserKubeconfig(managerUser, "system:serviceaccounts", "system:serviceaccounts:"+managerNamespace)
	if err != nil {
		return nil, err
	}

	health, err := freeAddress()
	if err != nil {
		return nil, err
	}

	log, err := os.Create(filepath.Join(s.path("logs"), "ichor-bootstrap-manager.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the process has its own handle

	manager := exec.Command(s.path("bin/ichor-bootstrap-manager"), "--health-addr", health, "--diagnostics-address", "0", "-v", "2",
		"--webhook-port", strconv.Itoa(webhooks.Port), "--webhook-cert-dir", webhooks.CertDir)
	manager.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	manager.Stdout, manager.Stderr = log, log

	if err = manager.Start(); err != nil {
		return nil, fmt.Errorf("start the bootstrap manager: %w", err)
	}

	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, managerTimeout, true, func(ctx context.Context) (bool, error) {
		return answers(ctx, "http://"+health+"/readyz"), nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the bootstrap manager does not become ready; see %s: %w", log.Name(), err), manager.Process.Kill())
	}

	return manager, nil
}

func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}

	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}

	return listener.Addr().String(), listener.Close()
}

// ignoreExit drops the exit status of a process that was told to end.
func ignoreExit(err error) error {
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil
	}

	return err
}
