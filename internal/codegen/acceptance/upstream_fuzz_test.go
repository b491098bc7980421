// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	oci "github.com/opencontainers/runtime-spec/specs-go"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	logsv1 "k8s.io/component-base/logs/api/v1"
	proxyv1alpha1 "k8s.io/kube-proxy/config/v1alpha1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	credentialproviderv1 "k8s.io/kubelet/config/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	podsecurityv1 "k8s.io/pod-security-admission/admission/api/v1"
	"sigs.k8s.io/randfill"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/codegen/flannel"
)

func FuzzKubeletConfiguration(f *testing.F) {
	fuzzUpstream[kubeletv1beta1.KubeletConfiguration](f, "KubeletConfig", "config")
}

func FuzzKubeSchedulerConfiguration(f *testing.F) {
	fuzzUpstream[schedulerv1.KubeSchedulerConfiguration](f, "KubeSchedulerConfig", "config")
}

func FuzzKubeProxyConfiguration(f *testing.F) {
	fuzzUpstream[proxyv1alpha1.KubeProxyConfiguration](f, "KubeProxyConfig", "config")
}

func FuzzAuditPolicy(f *testing.F) {
	fuzzUpstream[auditv1.Policy](f, "KubeAuditPolicyConfig", "configuration")
}

func FuzzAuthenticationConfiguration(f *testing.F) {
	fuzzUpstream[apiserverv1.AuthenticationConfiguration](f, "KubeAuthenticationConfig", "configuration")
}

func FuzzAuthorizerWebhook(f *testing.F) {
	fuzzUpstream[apiserverv1.WebhookConfiguration](f, "KubeAuthorizerConfig", "webhook")
}

func FuzzCredentialProviderConfig(f *testing.F) {
	fuzzUpstream[credentialproviderv1.CredentialProviderConfig](f, "KubeCredentialProviderConfig", "configuration")
}

func FuzzPodSecurityConfiguration(f *testing.F) {
	fuzzUpstream[podsecurityv1.PodSecurityConfiguration](f, "KubeAdmissionControlConfig", "configuration")
}

func FuzzOCISpec(f *testing.F) {
	fuzzUpstream[oci.Spec](f, "CRIBaseRuntimeSpecConfig", "overrides")
}

func FuzzSeccompProfile(f *testing.F) {
	fuzzUpstream[oci.LinuxSeccomp](f, "Config", "machine.seccompProfiles.value")
}

func FuzzFlannelBackend(f *testing.F) {
	fuzzUpstream[flannel.Backend](f, "KubeFlannelCNIConfig", "backendExtraConfig")
}

// fuzzUpstream takes random values of another project's type through the typed document and back. What may not stand in a
// document is taken out by what its refusal names; all else comes back as it was.
func fuzzUpstream[T any](f *testing.F, kind, path string) {
	f.Helper()

	seeds := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same seeds every time are wanted
	for range 32 {
		data := make([]byte, 4096)
		for i := range data {
			data[i] = byte(seeds.Uint32())
		}

		f.Add(data)
	}

	r := root[T](kind, path)

	f.Fuzz(func(t *testing.T, data []byte) {
		value := new(T)
		upstreamFiller(data).Fill(value)

		document := r.document(t, encode(t, value))
		typed, err := fromTalosJSON(document)

		if refused, ok := errors.AsType[*machineconfigv1alpha1.RefusedError](err); ok {
			document = without(t, document, refused.Fields)
			typed, err = fromTalosJSON(document)
		}

		if err != nil {
			t.Fatalf("typed: %v\n%s", err, document)
		}

		talos, err := typed.TalosJSON(nil)
		if err != nil {
			t.Fatalf("TalosJSON: %v\n%s", err, document)
		}

		if diff := cmp.Diff(present(t, r.content(t, document)), present(t, r.content(t, talos))); diff != "" {
			t.Errorf("the round trip changed it (-upstream +Talos):\n%s", diff)
		}
	})
}

// present is a tree without nulls, which say nothing in JSON that is absent.
func present(t *testing.T, source []byte) any {
	t.Helper()

	var tree any

	decode(t, source, &tree)

	var walk func(any) any

	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for key, e := range v {
				if e == nil {
					delete(v, key)
				} else {
					v[key] = walk(e)
				}
			}
		case []any:
			for i, e := range v {
				v[i] = walk(e)
			}
		}

		return v
	}

	return walk(tree)
}

// upstreamFiller makes values that their own encoders can encode.
func upstreamFiller(data []byte) *randfill.Filler {
	return randfill.NewFromGoFuzz(data).NilChance(.3).NumElements(0, 3).Funcs(
		func(v *float32, c randfill.Continue) { *v = float32(c.Int31()) / 1000 },
		func(v *float64, c randfill.Continue) { *v = c.Float64() * float64(c.Int31()) },
		func(v *metav1.TypeMeta, _ randfill.Continue) { *v = metav1.TypeMeta{} },
		func(v *metav1.ObjectMeta, _ randfill.Continue) { *v = metav1.ObjectMeta{Name: "policy"} },
		func(v *metav1.Time, _ randfill.Continue) { *v = metav1.Time{} },
		func(v *resource.Quantity, c randfill.Continue) {
			*v = *resource.NewQuantity(c.Int63(), resource.BinarySI)
		},
		func(v *resource.QuantityValue, c randfill.Continue) {
			v.Quantity = *resource.NewMilliQuantity(c.Int63(), resource.DecimalSI)
		},
		func(v *logsv1.TimeOrMetaDuration, c randfill.Continue) {
			c.Fill(&v.Duration)
			v.SerializeAsString = c.Bool()
		},
		func(v *schedulerv1.PluginConfig, c randfill.Continue) { fillPlugin(v, c) },
		func(v **oci.Windows, _ randfill.Continue) { *v = nil }, // holds an any
	)
}

// fillPlugin chooses a plugin and fills the arguments of its type.
func fillPlugin(v *schedulerv1.PluginConfig, c randfill.Continue) {
	args := []any{
		&schedulerv1.DefaultPreemptionArgs{}, &schedulerv1.DynamicResourcesArgs{}, &schedulerv1.InterPodAffinityArgs{},
		&schedulerv1.NodeAffinityArgs{}, &schedulerv1.NodeResourcesBalancedAllocationArgs{}, &schedulerv1.NodeResourcesFitArgs{},
		&schedulerv1.PodTopologySpreadArgs{}, &schedulerv1.VolumeBindingArgs{},
	}

	names := make([]string, 0, len(schedulerArgs))
	for name := range schedulerArgs {
		names = append(names, name)
	}

	slices.Sort(names)

	i := c.Intn(len(args))
	c.Fill(args[i])

	raw, err := json.Marshal(args[i])
	if err != nil {
		panic("arguments " + strconv.Itoa(i) + ": " + err.Error()) // the filler makes what can be encoded
	}

	v.Name, v.Args = names[i], runtime.RawExtension{Raw: raw}
}
