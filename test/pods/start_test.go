// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func manager() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "manager-x", UID: "u"},
		Spec: corev1.PodSpec{
			NodeName: nodeName, ServiceAccountName: "manager",
			Containers: []corev1.Container{{
				Name: "manager", Image: "registry.example.com/a/b-manager:v1@sha256:abc",
				Args: []string{"--leader-elect", "--diagnostics-address=:8443"},
				Ports: []corev1.ContainerPort{
					{Name: "healthz", ContainerPort: 9440}, {Name: "metrics", ContainerPort: 8443}, {Name: "webhook-server", ContainerPort: 9443},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "cert", MountPath: "/tmp/k8s-webhook-server/serving-certs"}},
			}},
		},
	}
}

// The container's arguments come first and unchanged; what a process needs besides follows them.
func TestArguments(t *testing.T) {
	p := &pod{ip: "127.200.1.2", webhookPort: 10001, dir: "/d"}
	moved := []string{
		"--leader-elect", "--diagnostics-address=:8443",
		"--health-addr=127.200.1.2:9440", "--diagnostics-address=127.200.1.2:8443", "--webhook-port=10001",
		"--webhook-cert-dir=" + filepath.Join("/d", "volumes", "cert"),
	}

	tests := map[string]struct {
		image  Image
		change func(*corev1.Container)
		want   []string
	}{
		"a lease with a flag":    {image: Image{LeaseNamespaceFlag: "--lease-in"}, want: append(moved[:6:6], "--lease-in=system")},
		"a lease without a flag": {want: append(moved[:6:6], "--leader-elect=false")},
		"more arguments":         {image: Image{LeaseNamespaceFlag: "--n", Args: []string{"--v=4"}}, want: append(moved[:6:6], "--n=system", "--v=4")},
		"nothing to move": {
			change: func(c *corev1.Container) { c.Args, c.Ports, c.VolumeMounts = []string{"--x"}, nil, nil },
			want:   []string{"--x"},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := manager()
			if test.change != nil {
				test.change(&object.Spec.Containers[0])
			}

			if diff := cmp.Diff(test.want, p.arguments(test.image, object, &object.Spec.Containers[0])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The environment is the container's; what is not played is refused, by name.
func TestEnvironment(t *testing.T) {
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}

	tests := map[string]struct {
		env   []corev1.EnvVar
		want  []string
		fault string
	}{
		"values and fields": {
			env: []corev1.EnvVar{
				{Name: "A", Value: "1"}, {Name: "NS", ValueFrom: field("metadata.namespace")}, {Name: "IP", ValueFrom: field("status.podIP")},
			},
			want: []string{"A=1", "NS=system", "IP=127.200.1.2"},
		},
		"a field that is not played": {
			env:   []corev1.EnvVar{{Name: "X", ValueFrom: field("spec.other")}},
			fault: "env X: the field spec.other is not played here",
		},
		"a Secret": {
			env:   []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}},
			fault: "env X: only values and fields are played here",
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := manager()
			object.Spec.Containers[0].Env = test.env
			got, err := (&pod{ip: "127.200.1.2"}).environment(object, &object.Spec.Containers[0])

			fault := ""
			if err != nil {
				fault = err.Error()
			}

			if diff := cmp.Diff(test.fault, fault); diff != "" {
				t.Error(diff)
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestImageName(t *testing.T) {
	for reference, want := range map[string]string{
		"registry.example.com:5000/a/b-manager:v1": "b-manager",
		"registry.example.com/b@sha256:abc":        "b",
		"controller:latest":                        "controller",
		manager().Spec.Containers[0].Image:         "b-manager",
	} {
		if got := imageName(reference); got != want {
			t.Errorf("%s: %s", reference, got)
		}
	}
}

// A program may stand for one version of an image, beside one for all others.
func TestFind(t *testing.T) {
	images := map[string]Image{"a": {Program: "any"}, "a:v2": {Program: "second"}, "b:v1": {Program: "only"}}

	for reference, want := range map[string]string{
		"registry.example.com:5000/a:v1":    "any",
		"registry.example.com:5000/a:v2":    "second",
		"registry.example.com:5000/a":       "any",
		"registry.example.com/a@sha256:abc": "any",
		"registry.example.com/b:v1":         "only",
		"registry.example.com/b:v2":         "",
	} {
		if got, found := find(images, reference); got.Program != want || found != (want != "") {
			t.Errorf("%s: %q, %t", reference, got.Program, found)
		}
	}
}
