// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// fingerprinted is an input with something of every sort.
func fingerprinted(t *testing.T) machineconfig.Input {
	t.Helper()

	in := input(t, "v1.14", false)
	config := clusterConfig(&in)
	config.Spec.Registries = []bootstrapv1.Registry{{Host: "r.example.com", Username: "puller", AuthSecretRef: ref("registry")}}
	in.Patches = append(in.Patches, patch(t, tunnel))
	resolvePassword(t, &in, "password")
	refer(&in, wireguardKey)

	return in
}

func resolvePassword(t *testing.T, in *machineconfig.Input, password string) {
	t.Helper()

	var err error

	in.Credentials, err = machineconfig.ResolveCredentials(in.ClusterConfig, map[string]machineconfig.Object{
		"registry": machineconfig.SecretObject(&corev1.Secret{Data: map[string][]byte{"password": []byte(password)}}),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func refer(in *machineconfig.Input, key string) {
	in.References = machineconfig.NewReferences(map[machineconfig.ObjectKey]machineconfig.Object{
		{Kind: machineconfig.KindSecret, Name: "wg"}: machineconfig.SecretObject(&corev1.Secret{
			Data: map[string][]byte{"private": []byte(key), "other": []byte(key)},
		}),
	})
}

// The fingerprint is kept on objects for years: another form would make all of them differ, and every Secret of a MachinePool be written again.
// If this test fails because of a new input, leave the encoding of inputs that do not have it as it was.
func TestFingerprintStays(t *testing.T) {
	t.Parallel()

	const want = "bb50cbdc58b072879bf49e569ba35b6d0e5ed482ac3530c63a5320c713d26e45"

	got, err := machineconfig.Fingerprint(fingerprinted(t))
	if err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// What goes in makes a difference, and nothing else does.
func TestFingerprint(t *testing.T) {
	t.Parallel()

	before, err := machineconfig.Fingerprint(fingerprinted(t))
	if err != nil {
		t.Fatal(err)
	}

	contract, err := version.ParseContract("v1.13")
	if err != nil {
		t.Fatal(err)
	}

	tests := map[string]struct {
		change func(*machineconfig.Input)
		same   bool
	}{
		"identity of the objects": {func(in *machineconfig.Input) {
			in.Cluster.UID, in.Cluster.ResourceVersion, in.Cluster.Generation = "another", "9", 9
			in.TalosConfig.UID, in.ClusterConfig.UID, in.ClusterConfig.Generation = "another", "another", 9
		}, true},
		"labels and annotations": {func(in *machineconfig.Input) {
			in.ClusterConfig.Labels = map[string]string{"moved": "true"}
			in.TalosConfig.Annotations = map[string]string{"moved": "true"}
		}, true},
		"patch of another cluster": {func(in *machineconfig.Input) {
			in.Patches = append(in.Patches, patch(t, "{metadata: {name: other}, spec: {clusterName: c9, layer: Cluster, deletions: [{kind: Config, path: /machine/sysctls}]}}"))
		}, true},
		"contract":           {func(in *machineconfig.Input) { in.Contract = contract }, false},
		"endpoint":           {func(in *machineconfig.Input) { in.Cluster.Spec.ControlPlaneEndpoint.Port++ }, false},
		"networks":           {func(in *machineconfig.Input) { in.Cluster.Spec.ClusterNetwork.ServiceDomain = "example.com" }, false},
		"Kubernetes version": {func(in *machineconfig.Input) { in.Machine.KubernetesVersion = "v1.36.9" }, false},
		"label of a machine": {func(in *machineconfig.Input) { in.Machine.Labels = map[string]string{"pool": "gpu"} }, false},
		"taint": {func(in *machineconfig.Input) {
			in.Machine.Taints = []clusterv1.MachineTaint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, false},
		"TalosConfig": {func(in *machineconfig.Input) {
			in.TalosConfig.Spec.Hostname.Source = bootstrapv1.HostnameSourceMachineName
		}, false},
		"TalosClusterConfig":         {func(in *machineconfig.Input) { in.ClusterConfig.Spec.CertSANs = []string{"a.example.com"} }, false},
		"password":                   {func(in *machineconfig.Input) { resolvePassword(t, in, "another") }, false},
		"key that a patch refers to": {func(in *machineconfig.Input) { refer(in, "another") }, false},
		"no patch":                   {func(in *machineconfig.Input) { in.Patches = nil }, false},
		"storage": {func(in *machineconfig.Input) {
			in.Storages = append(in.Storages, bootstrapv1.TalosStorage{
				ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: namespace},
				Spec: bootstrapv1.TalosStorageSpec{
					ClusterTargeting: bootstrapv1.ClusterTargeting{ClusterName: "c1"}, Preset: bootstrapv1.StoragePresetLonghornV1,
				},
			})
		}, false},
		"token of the bundle": {func(in *machineconfig.Input) {
			bundle, info := *in.Bundle, *in.Bundle.TrustdInfo
			info.Token = "another"
			bundle.TrustdInfo, in.Bundle = &info, &bundle
		}, false},
		// Without it nobody can try whether a value that they guess gives the fingerprint.
		"key of the Talos authority": {func(in *machineconfig.Input) {
			bundle, certs, authority := *in.Bundle, *in.Bundle.Certs, *in.Bundle.Certs.OS
			authority.Key = []byte("another")
			certs.OS, bundle.Certs, in.Bundle = &authority, &certs, &bundle
		}, false},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := fingerprinted(t)
			test.change(&in)

			after, err := machineconfig.Fingerprint(in)
			if err != nil {
				t.Fatal(err)
			}

			if same := after == before; same != test.same {
				t.Errorf("the fingerprint is the same: %t, want %t", same, test.same)
			}
		})
	}
}

// What a render would refuse has no fingerprint; without a bundle there is no key.
func TestFingerprintFaults(t *testing.T) {
	t.Parallel()

	in := fingerprinted(t)
	in.TalosConfig.Spec.PatchRefs = []bootstrapv1.PatchReference{{Name: "none"}}

	if got, err := machineconfig.Fingerprint(in); got != "" || machineconfig.ReasonOf(err) != machineconfig.ReasonInvalidReference {
		t.Errorf("got %q, %v", got, err)
	}

	in = fingerprinted(t)
	in.Bundle = nil

	if got, err := machineconfig.Fingerprint(in); got != "" || err == nil {
		t.Errorf("got %q, %v", got, err)
	}
}
