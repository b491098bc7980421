// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

const wireguard = `{"kind":"WireguardConfig","wireguardConfig":{"name":"wg0",
	"peers":[{"publicKey":"a"},{"presharedKeySecretRef":{"name":"wg","key":"psk"}}],"privateKeySecretRef":{"name":"wg","key":"private"}}}`

// inSecret gives the values of one Secret, by key.
func inSecret(name string, data map[string]string) machineconfigv1alpha1.Values {
	return func(source machineconfigv1alpha1.Source) (string, bool) {
		value, ok := data[source.Key]

		return value, ok && source.Kind == machineconfigv1alpha1.SourceSecret && source.Name == name
	}
}

func TestReferencesAreResolved(t *testing.T) {
	doc := decode(t, wireguard)

	got, err := doc.TalosJSON(inSecret("wg", map[string]string{"private": "hunter2\n", "psk": "hunter3\r\n"}))
	if err != nil {
		t.Fatal(err)
	}

	want := `{"apiVersion":"v1alpha1","kind":"WireguardConfig","name":"wg0","peers":[{"publicKey":"a"},{"presharedKey":"hunter3"}],"privateKey":"hunter2"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("TalosJSON (-want +got):\n%s", diff)
	}

	references := []machineconfigv1alpha1.Reference{
		{Path: "privateKeySecretRef", Field: "/privateKey", Source: machineconfigv1alpha1.Source{Kind: "Secret", Name: "wg", Key: "private"}, Credential: true},
		{Path: "peers[1].presharedKeySecretRef", Field: "/peers/1/presharedKey", Source: machineconfigv1alpha1.Source{Kind: "Secret", Name: "wg", Key: "psk"}, Credential: true},
	}
	if diff := cmp.Diff(references, doc.References()); diff != "" {
		t.Errorf("References (-want +got):\n%s", diff)
	}

	if diff := cmp.Diff([]string{"/privateKey", "/peers/1/presharedKey"}, doc.ResolvedSecrets()); diff != "" {
		t.Errorf("ResolvedSecrets (-want +got):\n%s", diff)
	}
}

func TestReferenceErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		document string
		data     map[string]string
		want     string
	}{
		"no value at all": {
			document: wireguard,
			want: `WireguardConfig: privateKeySecretRef: there is no key "private" of Secret "wg"; ` +
				`peers[1].presharedKeySecretRef: there is no key "psk" of Secret "wg"`,
		},
		"one value is missing": {
			document: wireguard, data: map[string]string{"private": "hunter2"},
			want: `WireguardConfig: peers[1].presharedKeySecretRef: there is no key "psk" of Secret "wg"`,
		},
		"an empty credential": {
			document: wireguard, data: map[string]string{"private": "\n", "psk": "hunter2"},
			want: `WireguardConfig: privateKeySecretRef: key "private" of Secret "wg" is empty`,
		},
		"a credential that is no text": {
			document: wireguard, data: map[string]string{"private": "hunter2\xff", "psk": "hunter2"},
			want: `WireguardConfig: privateKeySecretRef: key "private" of Secret "wg" is not text in UTF-8, and Talos takes nothing else here`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(t, tc.document).TalosJSON(inSecret("wg", tc.data))
			if err == nil {
				t.Fatal("got no error")
			}

			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}

			if strings.Contains(err.Error(), "hunter") {
				t.Error("the error shows a value")
			}

			if _, ok := errors.AsType[*machineconfigv1alpha1.ReferenceError](err); !ok {
				t.Errorf("got a %T, want a ReferenceError", err)
			}
		})
	}
}

func TestNoValuesAreMissingValues(t *testing.T) {
	_, err := decode(t, wireguard).TalosJSON(nil)

	unusable, ok := errors.AsType[*machineconfigv1alpha1.ReferenceError](err)
	if !ok || len(unusable.Faults) != 2 || !unusable.Faults[0].Missing || !unusable.Faults[1].Missing {
		t.Errorf("got %v, want two missing values", err)
	}
}

const pod = `# a comment
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers: [{name: a, image: a, resources: {limits: {cpu: 2}}}]
`

const smallPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{"containers":[{"image":"b","name":"b"}]}}`

func TestContentIsResolved(t *testing.T) {
	for name, tc := range map[string]struct {
		document, want string
		secrets        []string
	}{
		"a text as it is": {
			document: `{"kind":"EtcFileConfig","etcFileConfig":{"name":"a","contentsFrom":{"configMapKeyRef":{"name":"c","key":"text"}}}}`,
			want:     `{"apiVersion":"v1alpha1","contents":"text of c\n","kind":"EtcFileConfig","name":"a"}`,
		},
		"a map, beside what stands there": {
			document: `{"kind":"EnvironmentConfig","environmentConfig":{"variables":{"B":"b"},
				"variablesFrom":{"a/~":{"secretKeyRef":{"name":"s","key":"text"}},"C":{"configMapKeyRef":{"name":"c","key":"text"}}}}}`,
			want:    `{"apiVersion":"v1alpha1","kind":"EnvironmentConfig","variables":{"B":"b","C":"text of c\n","a/~":"text of s\n"}}`,
			secrets: []string{"/variables/a~1~0"},
		},
		"a map alone": {
			document: `{"kind":"Config","config":{"machine":{"envFrom":{"A":{"secretKeyRef":{"name":"s","key":"text"}}}}}}`,
			want:     `{"machine":{"env":{"A":"text of s\n"}},"version":"v1alpha1"}`,
			secrets:  []string{"/machine/env/A"},
		},
		"a list of variables, after what stands there": {
			document: `{"kind":"ExtensionServiceConfig","extensionServiceConfig":{"name":"a","environment":["Z=z","Y"],
				"environmentFrom":{"B":{"secretKeyRef":{"name":"s","key":"text"}},"A":{"configMapKeyRef":{"name":"c","key":"text"}}}}}`,
			want:    `{"apiVersion":"v1alpha1","environment":["Z=z","Y","A=text of c\n","B=text of s\n"],"kind":"ExtensionServiceConfig","name":"a"}`,
			secrets: []string{"/environment/3"},
		},
		"nothing of an empty map": {
			document: `{"kind":"EnvironmentConfig","environmentConfig":{"variablesFrom":{}}}`,
			want:     `{"apiVersion":"v1alpha1","kind":"EnvironmentConfig"}`,
		},
		"a key as bytes": {
			document: `{"kind":"Config","config":{"machine":{"registries":{"config":{"a.b":{"tls":{"clientIdentity":{"crt":"AQID","keySecretRef":{"name":"s","key":"pem"}}}}}}}}}`,
			want:     `{"machine":{"registries":{"config":{"a.b":{"tls":{"clientIdentity":{"crt":"AQID","key":"YQpiCg=="}}}}}},"version":"v1alpha1"}`,
			secrets:  []string{"/machine/registries/config/a.b/tls/clientIdentity/key"},
		},
		"a pod": {
			document: `{"kind":"KubeStaticPodConfig","kubeStaticPodConfig":{"name":"a","podFrom":{"secretKeyRef":{"name":"s","key":"pod"}}}}`,
			want: `{"apiVersion":"v1alpha1","kind":"KubeStaticPodConfig","name":"a","pod":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},` +
				`"spec":{"containers":[{"image":"a","name":"a","resources":{"limits":{"cpu":2}}}]}}}`,
			secrets: []string{"/pod"},
		},
		"pods": {
			document: `{"kind":"Config","config":{"machine":{"podsFrom":[{"configMapKeyRef":{"name":"c","key":"small"}},{"secretKeyRef":{"name":"s","key":"small"}}]}}}`,
			want:     `{"machine":{"pods":[` + smallPod + `,` + smallPod + `]},"version":"v1alpha1"}`,
			secrets:  []string{"/machine/pods/1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			values := func(source machineconfigv1alpha1.Source) (string, bool) {
				switch source.Key {
				case "text":
					return "text of " + source.Name + "\n", true
				case "pem":
					return "a\nb\n", true
				case "pod":
					return pod, true
				case "small":
					return smallPod, true
				default:
					return "", false
				}
			}

			doc := decode(t, tc.document)

			got, err := doc.TalosJSON(values)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("TalosJSON (-want +got):\n%s", diff)
			}

			if diff := cmp.Diff(tc.secrets, doc.ResolvedSecrets()); diff != "" {
				t.Errorf("ResolvedSecrets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContentErrors(t *testing.T) {
	const static = `{"kind":"KubeStaticPodConfig","kubeStaticPodConfig":{"name":"a","podFrom":{"secretKeyRef":{"name":"s","key":"a"}}}}`

	public := strings.Replace(static, "secretKeyRef", "configMapKeyRef", 1)

	for name, tc := range map[string]struct{ document, value, want string }{
		"a text twice": {
			document: `{"kind":"EtcFileConfig","etcFileConfig":{"name":"a","contents":"","contentsFrom":{"secretKeyRef":{"name":"s","key":"a"}}}}`,
			want:     "EtcFileConfig: contentsFrom: contents is set as well; set one of the two",
		},
		"a variable twice": {
			document: `{"kind":"EnvironmentConfig","environmentConfig":{"variables":{"A":""},"variablesFrom":{"A":{"secretKeyRef":{"name":"s","key":"a"}}}}}`,
			want:     "EnvironmentConfig: variablesFrom[A]: variables sets A as well; set it in one of the two",
		},
		"a variable of a list twice": {
			document: `{"kind":"ContainerConfig","containerConfig":{"name":"a","environment":["A"],"environmentFrom":{"A":{"secretKeyRef":{"name":"s","key":"a"}}}}}`,
			want:     "ContainerConfig: environmentFrom[A]: environment sets A as well; set it in one of the two",
		},
		"a variable of a list with another in it": {
			document: `{"kind":"ContainerConfig","containerConfig":{"name":"a","environmentFrom":{"A=b":{"secretKeyRef":{"name":"s","key":"a"}}}}}`,
			want:     "ContainerConfig: environmentFrom[A=b]: a variable's name is not empty and has no =",
		},
		"no source": {
			document: `{"kind":"Config","config":{"machine":{"files":[{"contentFrom":{}}]}}}`,
			want:     "Config: machine.files[0].contentFrom: set exactly one of secretKeyRef and configMapKeyRef",
		},
		"two sources": {
			document: `{"kind":"Config","config":{"machine":{"podsFrom":[{"secretKeyRef":{"name":"s","key":"a"},"configMapKeyRef":{"name":"s","key":"a"}}]}}}`,
			want:     "Config: machine.podsFrom[0]: set exactly one of secretKeyRef and configMapKeyRef",
		},
		"a pod that stands there": {
			document: `{"kind":"KubeStaticPodConfig","kubeStaticPodConfig":{"name":"a","pod":{"kind":"hunter2"}}}`,
			want:     "KubeStaticPodConfig: pod: whole pods are too large for the schema; use podFrom",
		},
		"no text": {
			document: `{"kind":"EtcFileConfig","etcFileConfig":{"name":"a","contentsFrom":{"secretKeyRef":{"name":"s","key":"a"}}}}`,
			value:    "hunter2\xff",
			want:     `EtcFileConfig: contentsFrom: key "a" of Secret "s" is not text in UTF-8, and Talos takes nothing else here`,
		},
		"no pod":         {static, "hunter2", `KubeStaticPodConfig: podFrom: key "a" of Secret "s" is not a Pod: want apiVersion v1 and kind Pod`},
		"another object": {static, "{apiVersion: v1, kind: hunter2}", `KubeStaticPodConfig: podFrom: key "a" of Secret "s" is not a Pod: want apiVersion v1 and kind Pod`},
		"an empty pod":   {static, "# hunter2\n---\n", `KubeStaticPodConfig: podFrom: key "a" of Secret "s" is empty; want a Pod`},
		"no YAML":        {static, "a: 'hunter2", `KubeStaticPodConfig: podFrom: key "a" of Secret "s" is not valid YAML or JSON, or sets a field twice`},
		"a field twice in public": {
			public, "a: 1\na: 2", `KubeStaticPodConfig: podFrom: key "a" of ConfigMap "s" is not valid: yaml: unmarshal errors:` + "\n" +
				`  line 2: key "a" already set in map`,
		},
		"two pods": {static, pod + "---\n" + pod, `KubeStaticPodConfig: podFrom: key "a" of Secret "s" holds several documents; want one Pod`},
		"a pod's wrong field": {
			static, "{apiVersion: v1, kind: Pod, spec: {container: [hunter2]}}",
			`KubeStaticPodConfig: podFrom: key "a" of Secret "s" is not a Pod: unknown field "spec.container"`,
		},
		"a pod's wrong value": {
			static, "{apiVersion: v1, kind: Pod, spec: {terminationGracePeriodSeconds: hunter2}}",
			`KubeStaticPodConfig: podFrom: key "a" of Secret "s" is not a Pod: spec.terminationGracePeriodSeconds: want a whole number`,
		},
		"a pod's image that is a number": {
			public, "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: 1.25}]}}",
			`KubeStaticPodConfig: podFrom: key "a" of ConfigMap "s" is not a Pod: spec.containers[0].image: want text`,
		},
		"a pod's switch": {
			static, "{apiVersion: v1, kind: Pod, spec: {hostNetwork: hunter2}}",
			`KubeStaticPodConfig: podFrom: key "a" of Secret "s" is not a Pod: spec.hostNetwork: want true or false`,
		},
		"a pod's object": {
			static, "{apiVersion: v1, kind: Pod, metadata: hunter2}",
			`KubeStaticPodConfig: podFrom: key "a" of Secret "s" is not a Pod: metadata: want an object`,
		},
		"a pod's list": {
			static, "{apiVersion: v1, kind: Pod, spec: {containers: {name: hunter2}}}",
			`KubeStaticPodConfig: podFrom: key "a" of Secret "s" is not a Pod: spec.containers: want a list`,
		},
		"a pod's quantity": {
			static, "{apiVersion: v1, kind: Pod, spec: {containers: [{}, {resources: {limits: {cpu: hunter2}}}]}}",
			`KubeStaticPodConfig: podFrom: key "a" of Secret "s" is not a Pod: spec.containers[1].resources.limits[cpu]: want a quantity`,
		},
		"a field of an embedded type": {
			static, "{apiVersion: v1, kind: Pod, spec: {volumes: [{name: a, hostPath: {path: [hunter2]}}]}}",
			`KubeStaticPodConfig: podFrom: key "a" of Secret "s" is not a Pod: spec.volumes[0].hostPath.path: want text`,
		},
		"a pod with nothing in it": {
			static, "{apiVersion: v1, kind: Pod}",
			`KubeStaticPodConfig: podFrom: key "a" of Secret "s" is not a whole Pod: metadata.name: want a name` + "\n" + "spec.containers: want at least one container",
		},
		"containers with nothing in them": {
			public, "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: hunter2}], initContainers: [{image: hunter2}]}}",
			`KubeStaticPodConfig: podFrom: key "a" of ConfigMap "s" is not a whole Pod: spec.containers[0].image: want an image` + "\n" +
				"spec.initContainers[0].name: want a name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(t, tc.document).TalosJSON(func(machineconfigv1alpha1.Source) (string, bool) { return tc.value, true })
			if err == nil {
				t.Fatal("got no error")
			}

			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}

			if strings.Contains(err.Error(), "hunter") {
				t.Error("the error shows a value")
			}
		})
	}
}
