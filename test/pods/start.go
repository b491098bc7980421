// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/process"
)

// Names of ports, as Cluster API's providers have them, and the flags that move them.
const (
	webhookPortName     = "webhook-server"
	healthPortName      = "healthz"
	diagnosticsPortName = "metrics"

	electionArgument = "--leader-elect"
)

// tokenSeconds is how long a Pod's token counts: longer than any test world lives, as it is not renewed.
const tokenSeconds = 7 * 24 * 60 * 60

// start starts the process of a Pod.
func (p *pod) start(ctx context.Context, object *corev1.Pod) error {
	if count := len(object.Spec.Containers) + len(object.Spec.InitContainers); count != 1 {
		return &waitError{"CreateContainerConfigError", fmt.Errorf("the Pod has %d containers: one is played here", count)}
	}

	container := &object.Spec.Containers[0]

	image, ok := find(p.runner.options.Images, container.Image)
	if !ok {
		return &waitError{"ErrImagePull", fmt.Errorf("no program stands for the image %q: name it among the images of the harness", container.Image)}
	}

	if err := p.writeSecrets(ctx, object); err != nil {
		return err
	}

	kubeconfig, err := p.writeKubeconfig(ctx, object)
	if err != nil {
		return err
	}

	env, err := p.environment(object, container)
	if err != nil {
		return &waitError{"CreateContainerConfigError", err}
	}

	if len(p.release) == 0 {
		for _, port := range image.ExclusivePorts {
			release, err := p.runner.options.ReserveExclusive(ctx, port)
			if err != nil {
				return fmt.Errorf("port %d: %w", port, err)
			}

			p.release = append(p.release, release)
		}
	}

	grace := defaultGrace
	if seconds := object.Spec.TerminationGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}

	p.process, err = process.Start(ctx, p.runner.options.LogDir, process.Program{
		Name: object.Namespace + "_" + object.Name, Path: image.Program, Grace: grace,
		Args: p.arguments(image, object, container),
		// Outside a container, the token comes in a kubeconfig.
		Env:   append(env, clientcmd.RecommendedConfigPathEnvVar+"="+kubeconfig),
		Ready: func(context.Context) error { return nil },
	})
	if err != nil {
		p.process = nil

		return &waitError{"RunContainerError", err}
	}

	p.state = state{started: time.Now(), restarts: p.state.restarts}

	return nil
}

// arguments are those of the container, and what a process needs to be told besides. The last of two flags counts.
func (p *pod) arguments(image Image, object *corev1.Pod, container *corev1.Container) []string {
	arguments := slices.Clone(container.Args)

	for _, port := range container.Ports {
		address := net.JoinHostPort(p.ip, strconv.Itoa(int(port.ContainerPort)))

		switch port.Name {
		case healthPortName:
			arguments = append(arguments, "--health-addr="+address)
		case diagnosticsPortName:
			arguments = append(arguments, "--diagnostics-address="+address)
		case webhookPortName:
			arguments = append(arguments, "--webhook-port="+strconv.Itoa(p.webhookPort))
		}
	}

	for _, mount := range container.VolumeMounts {
		if strings.HasSuffix(strings.TrimSuffix(mount.MountPath, "/"), "/serving-certs") {
			arguments = append(arguments, "--webhook-cert-dir="+p.volume(mount.Name))
		}
	}

	if slices.ContainsFunc(container.Args, func(argument string) bool {
		return argument == electionArgument || argument == electionArgument+"=true"
	}) {
		if image.LeaseNamespaceFlag != "" {
			arguments = append(arguments, image.LeaseNamespaceFlag+"="+object.Namespace)
		} else {
			arguments = append(arguments, electionArgument+"=false")
		}
	}

	return append(arguments, image.Args...)
}

// environment is that of the container.
func (p *pod) environment(object *corev1.Pod, container *corev1.Container) ([]string, error) {
	if len(container.EnvFrom) > 0 {
		return nil, errors.New("envFrom is not played here")
	}

	fields := map[string]string{
		"metadata.name": object.Name, "metadata.namespace": object.Namespace, "metadata.uid": string(object.UID),
		"spec.nodeName": object.Spec.NodeName, "spec.serviceAccountName": object.Spec.ServiceAccountName,
		"status.podIP": p.ip, "status.hostIP": "127.0.0.1",
	}

	var env []string

	for _, variable := range container.Env {
		value := variable.Value

		if from := variable.ValueFrom; from != nil {
			if from.FieldRef == nil {
				return nil, fmt.Errorf("env %s: only values and fields are played here", variable.Name)
			}

			var known bool
			if value, known = fields[from.FieldRef.FieldPath]; !known {
				return nil, fmt.Errorf("env %s: the field %s is not played here", variable.Name, from.FieldRef.FieldPath)
			}
		}

		env = append(env, variable.Name+"="+value)
	}

	return env, nil
}

// volume is the directory that stands for a volume.
func (p *pod) volume(name string) string { return filepath.Join(p.dir, "volumes", name) }

// writeSecrets has the files of mounted Secrets be what the Secrets say.
func (p *pod) writeSecrets(ctx context.Context, object *corev1.Pod) error {
	for _, volume := range object.Spec.Volumes {
		if volume.Secret == nil {
			// Others, such as the socket of a container runtime, are of the machine, or are there when somebody writes to them.
			continue
		}

		secret := &corev1.Secret{}
		if err := p.runner.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: volume.Secret.SecretName}, secret); err != nil {
			return fmt.Errorf("volume %s: %w", volume.Name, err)
		}

		for key, value := range secret.Data {
			if err := writeChanged(filepath.Join(p.volume(volume.Name), key), value); err != nil {
				return fmt.Errorf("volume %s: %w", volume.Name, err)
			}
		}
	}

	return nil
}

// writeChanged leaves a file alone that has the content already, since programs watch it.
func writeChanged(path string, content []byte) error {
	before, err := os.ReadFile(path)
	if err == nil && bytes.Equal(before, content) {
		return nil
	}

	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}

	return os.WriteFile(path, content, 0o600)
}

// writeKubeconfig gets a token for the Pod's ServiceAccount, which counts while the Pod is there.
func (p *pod) writeKubeconfig(ctx context.Context, object *corev1.Pod) (string, error) {
	account := object.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}

	token, err := p.runner.clientset.CoreV1().ServiceAccounts(object.Namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(tokenSeconds)),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: object.Name, UID: object.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of ServiceAccount %s: %w", account, err)
	}

	config := p.runner.options.Config
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[nodeName] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[nodeName] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	kubeconfig.Contexts[nodeName] = &clientcmdapi.Context{Cluster: nodeName, AuthInfo: nodeName, Namespace: object.Namespace}
	kubeconfig.CurrentContext = nodeName

	path := filepath.Join(p.dir, "kubeconfig")
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return "", err
	}

	return path, clientcmd.WriteToFile(*kubeconfig, path)
}
