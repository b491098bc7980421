// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	oci "github.com/opencontainers/runtime-spec/specs-go"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	proxyv1alpha1 "k8s.io/kube-proxy/config/v1alpha1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	credentialproviderv1 "k8s.io/kubelet/config/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	podsecurityv1 "k8s.io/pod-security-admission/admission/api/v1"
	kjson "sigs.k8s.io/json"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/codegen/flannel"
)

// upstreamRoot is a place in a Talos document whose content another project's type reads.
type upstreamRoot struct {
	kind string
	path []string // names; a list's first item is taken as it comes
	typ  reflect.Type
}

func root[T any](kind, path string) upstreamRoot {
	return upstreamRoot{kind: kind, path: strings.Split(path, "."), typ: reflect.TypeFor[T]()}
}

var upstreamRoots = []upstreamRoot{
	root[kubeletv1beta1.KubeletConfiguration]("KubeletConfig", "config"),
	root[kubeletv1beta1.KubeletConfiguration]("Config", "machine.kubelet.extraConfig"),
	root[schedulerv1.KubeSchedulerConfiguration]("KubeSchedulerConfig", "config"),
	root[schedulerv1.KubeSchedulerConfiguration]("Config", "cluster.scheduler.config"),
	root[proxyv1alpha1.KubeProxyConfiguration]("KubeProxyConfig", "config"),
	root[auditv1.Policy]("KubeAuditPolicyConfig", "configuration"),
	root[auditv1.Policy]("Config", "cluster.apiServer.auditPolicy"),
	root[apiserverv1.AuthenticationConfiguration]("KubeAuthenticationConfig", "configuration"),
	root[apiserverv1.WebhookConfiguration]("KubeAuthorizerConfig", "webhook"),
	root[apiserverv1.WebhookConfiguration]("Config", "cluster.apiServer.authorizationConfig.webhook"),
	root[credentialproviderv1.CredentialProviderConfig]("KubeCredentialProviderConfig", "configuration"),
	root[credentialproviderv1.CredentialProviderConfig]("Config", "machine.kubelet.credentialProviderConfig"),
	root[podsecurityv1.PodSecurityConfiguration]("KubeAdmissionControlConfig", "configuration"),
	root[podsecurityv1.PodSecurityConfiguration]("Config", "cluster.apiServer.admissionControl.configuration"),
	root[oci.Spec]("CRIBaseRuntimeSpecConfig", "overrides"),
	root[oci.Spec]("Config", "machine.baseRuntimeSpecOverrides"),
	root[oci.LinuxSeccomp]("Config", "machine.seccompProfiles.value"),
	root[flannel.Backend]("KubeFlannelCNIConfig", "backendExtraConfig"),
}

// content is what stands at the root's place in a document.
func (r upstreamRoot) content(t *testing.T, document []byte) []byte {
	t.Helper()

	var tree any

	decode(t, document, &tree)

	for _, step := range r.path {
		if list, ok := tree.([]any); ok {
			tree = list[0]
		}

		object, ok := tree.(map[string]any)
		if !ok {
			t.Fatalf("%v leads to no object", r.path)
		}

		tree = object[step]
	}

	return encode(t, tree)
}

// document is a Talos document with the content in the root's place.
func (r upstreamRoot) document(t *testing.T, content []byte) []byte {
	t.Helper()

	var tree any = json.RawMessage(content)

	for _, step := range slices.Backward(r.path) {
		object := map[string]any{step: tree}
		tree = object

		switch step {
		case "value":
			object["name"] = "profile.json"
		case "seccompProfiles", "admissionControl", "authorizationConfig":
			object[step] = []any{object[step]}
		}

		if r.typ == reflect.TypeFor[podsecurityv1.PodSecurityConfiguration]() && step == "configuration" {
			object["name"] = "PodSecurity"
		}
	}

	object := tree.(map[string]any) //nolint:forcetypeassert // a path is not empty

	if r.kind == "Config" {
		object["version"] = "v1alpha1"
	} else {
		object["apiVersion"], object["kind"] = "v1alpha1", r.kind
	}

	return encode(t, object)
}

func decode(t *testing.T, source []byte, into any) {
	t.Helper()

	decoder := json.NewDecoder(bytes.NewReader(source))
	decoder.UseNumber()

	if err := decoder.Decode(into); err != nil {
		t.Fatalf("JSON: %v\n%s", err, source)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()

	out, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("JSON: %v", err)
	}

	return out
}

// readStrictly is what the reader of the content makes of it. Every name and form must be the type's own.
func readStrictly(t *testing.T, content []byte, typ reflect.Type) []byte {
	t.Helper()

	into := reflect.New(typ).Interface()

	strict, err := kjson.UnmarshalStrict(content, into)
	if err := errors.Join(append(strict, err)...); err != nil {
		t.Fatalf("%s cannot read it: %v\n%s", typ, err, content)
	}

	if scheduler, ok := into.(*schedulerv1.KubeSchedulerConfiguration); ok {
		for _, profile := range scheduler.Profiles {
			for _, plugin := range profile.PluginConfig {
				readStrictly(t, plugin.Args.Raw, schedulerArgs[plugin.Name])
			}
		}
	}

	return encode(t, into)
}

// schedulerArgs are the types of the plugins' arguments.
var schedulerArgs = map[string]reflect.Type{
	"DefaultPreemption":               reflect.TypeFor[schedulerv1.DefaultPreemptionArgs](),
	"DynamicResources":                reflect.TypeFor[schedulerv1.DynamicResourcesArgs](),
	"InterPodAffinity":                reflect.TypeFor[schedulerv1.InterPodAffinityArgs](),
	"NodeAffinity":                    reflect.TypeFor[schedulerv1.NodeAffinityArgs](),
	"NodeResourcesBalancedAllocation": reflect.TypeFor[schedulerv1.NodeResourcesBalancedAllocationArgs](),
	"NodeResourcesFit":                reflect.TypeFor[schedulerv1.NodeResourcesFitArgs](),
	"PodTopologySpread":               reflect.TypeFor[schedulerv1.PodTopologySpreadArgs](),
	"VolumeBinding":                   reflect.TypeFor[schedulerv1.VolumeBindingArgs](),
}

// TestUpstreamReadsMaximalDocuments gives what typed documents become to the types that read it in Kubernetes, containerd and
// flannel: none may refuse it or pass over a field.
func TestUpstreamReadsMaximalDocuments(t *testing.T) {
	newFiller := fillers(buildModel(t))

	for _, r := range upstreamRoots {
		t.Run(r.kind+"/"+strings.Join(r.path, "."), func(t *testing.T) {
			f := newFiller()

			for ; f.turn < f.turns; f.turn++ {
				doc := &machineconfigv1alpha1.Document{Kind: machineconfigv1alpha1.DocumentKind(r.kind)}
				f.fill(t, reflect.ValueOf(doc).Elem().FieldByName(r.kind))

				talos, err := doc.TalosJSON(f.sources.value)
				if err != nil {
					t.Fatalf("TalosJSON: %v", err)
				}

				content := r.content(t, talos)
				written := leaves(t, readStrictly(t, content, r.typ))

				for path := range leaves(t, content) {
					if _, kept := written[path]; !kept {
						t.Errorf("%s: %s passes over it", path, r.typ)
					}
				}
			}
		})
	}
}

// TestRoundTripOfNumbers: no digit of a number is lost between typed documents, machinery and back.
func TestRoundTripOfNumbers(t *testing.T) {
	for name, content := range map[string]string{
		"a fraction":              `{"clientConnection":{"qps":0.1}}`,
		"an exponent":             `{"clientConnection":{"qps":1e+30}}`,
		"a negative fraction":     `{"clientConnection":{"qps":-0.5}}`,
		"an integer for a float":  `{"clientConnection":{"qps":50}}`,
		"a duration":              `{"logging":{"flushFrequency":"5s"}}`,
		"nanoseconds":             `{"logging":{"flushFrequency":5000000000}}`,
		"a quantity as a text":    `{"logging":{"options":{"json":{"infoBufferSize":"1Mi"}}}}`,
		"a quantity as a number":  `{"logging":{"options":{"json":{"infoBufferSize":4096}}}}`,
		"the smallest of integer": `{"iptables":{"masqueradeBit":-2147483648}}`,
	} {
		t.Run(name, func(t *testing.T) {
			roundTrip(t, root[proxyv1alpha1.KubeProxyConfiguration]("KubeProxyConfig", "config"), content)
		})
	}

	for name, content := range map[string]string{
		"the largest of 64 bits": `{"process":{"rlimits":[{"hard":18446744073709551615,"soft":9223372036854775808,"type":"RLIMIT_CORE"}]}}`,
		"the largest of 32 bits": `{"process":{"user":{"uid":4294967295}}}`,
		"the largest of int64":   `{"linux":{"resources":{"memory":{"limit":9223372036854775807}}}}`,
		"a file's mode":          `{"linux":{"devices":[{"fileMode":438,"path":"/dev/fuse","type":"c"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			roundTrip(t, root[oci.Spec]("CRIBaseRuntimeSpecConfig", "overrides"), content)
		})
	}
}

func roundTrip(t *testing.T, r upstreamRoot, content string) {
	t.Helper()

	document := r.document(t, []byte(content))

	typed, err := fromTalosJSON(document)
	if err != nil {
		t.Fatalf("typed: %v", err)
	}

	// Through the API server's form as well.
	stored := &machineconfigv1alpha1.Document{}
	if err := json.Unmarshal(encode(t, typed), stored); err != nil {
		t.Fatalf("stored: %v", err)
	}

	talos, err := stored.TalosJSON(nil)
	if err != nil {
		t.Fatalf("TalosJSON: %v", err)
	}

	if diff := cmp.Diff(content, string(r.content(t, talos))); diff != "" {
		t.Errorf("the numbers changed (-written +Talos):\n%s", diff)
	}

	if diff := cmp.Diff(string(canonical(t, readOne(t, document))), string(canonical(t, readOne(t, talos)))); diff != "" {
		t.Errorf("machinery reads other numbers (-written +Talos):\n%s", diff)
	}
}

// TestChoices: what a plugin's name decides is checked by the API server, and where none was asked.
func TestChoices(t *testing.T) {
	const (
		scheduler = `{"kind":"KubeSchedulerConfig","kubeSchedulerConfig":{"config":{"profiles":[{"pluginConfig":[%s]}]}}}`
		older     = `{"kind":"Config","config":{"cluster":{"apiServer":{"admissionControl":[%s]}}}}`
		admission = `{"kind":"KubeAdmissionControlConfig","kubeAdmissionControlConfig":%s}`
	)

	server := newAPIServer(t)

	for name, tc := range map[string]struct {
		document, content string
		server, client    string // parts of the errors, empty for none
	}{
		"args of the plugin":          {scheduler, `{"name":"InterPodAffinity","args":{"hardPodAffinityWeight":5}}`, "", ""},
		"args with the plugin's kind": {scheduler, `{"name":"InterPodAffinity","args":{"kind":"InterPodAffinityArgs"}}`, "", ""},
		"empty args":                  {scheduler, `{"name":"NodeResourcesFit","args":{}}`, "", ""},
		"a plugin without args":       {scheduler, `{"name":"Coscheduling"}`, "", ""},
		"args of another plugin":      {scheduler, `{"name":"InterPodAffinity","args":{"addedAffinity":{}}}`, "its own typed args", `pluginConfig[0].args.addedAffinity: does not belong to name "InterPodAffinity"`},
		"args with another kind":      {scheduler, `{"name":"InterPodAffinity","args":{"kind":"NodeAffinityArgs"}}`, "its own typed args", `args.kind: does not belong to name "InterPodAffinity"`},
		"args of a plugin elsewhere":  {scheduler, `{"name":"Coscheduling","args":{"permitWaitingTimeSeconds":5}}`, "another plugin has none", `args: has a type for name DefaultPreemption`},
		"args without a name":         {scheduler, `{"args":{}}`, "its own typed args", `and name is ""`},
		"PodSecurity":                 {admission, `{"name":"PodSecurity","configuration":{"exemptions":{"namespaces":["longhorn-system"]}}}`, "", ""},
		"another admission plugin":    {admission, `{"name":"EventRateLimit","configuration":{"limits":[]}}`, "only PodSecurity", `configuration: has a type for name PodSecurity only, and name is "EventRateLimit"`},
		"PodSecurity, legacy":         {older, `{"name":"PodSecurity","configuration":{"defaults":{"enforce-version":"latest"}}}`, "", ""},
		"another plugin, legacy":      {older, `{"name":"ResourceQuota","configuration":{}}`, "only PodSecurity", `admissionControl[0].configuration: has a type for name PodSecurity only`},
	} {
		t.Run(name, func(t *testing.T) {
			document := strings.Replace(tc.document, "%s", tc.content, 1)

			expect(t, "the API server", server.validate(t, document).ToAggregate(), tc.server)

			doc := &machineconfigv1alpha1.Document{}
			if err := json.Unmarshal([]byte(document), doc); err != nil {
				t.Fatal(err)
			}

			_, err := doc.TalosJSON(nil)
			expect(t, "TalosJSON", err, tc.client)
		})
	}
}

func expect(t *testing.T, who string, err error, want string) {
	t.Helper()

	switch {
	case want == "" && err != nil:
		t.Errorf("%s says %v, want no error", who, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s says %v, want: %s", who, err, want)
	}
}

// TestUpstreamForms: forms that whoever reads the content would refuse do not reach it.
func TestUpstreamForms(t *testing.T) {
	const (
		kubelet = `{"kind":"KubeletConfig","kubeletConfig":{"config":%s}}`
		proxy   = `{"kind":"KubeProxyConfig","kubeProxyConfig":{"config":%s}}`
		runtime = `{"kind":"CRIBaseRuntimeSpecConfig","criBaseRuntimeSpecConfig":{"overrides":%s}}`
		policy  = `{"kind":"KubeAuditPolicyConfig","kubeAuditPolicyConfig":{"configuration":%s}}`
	)

	server := newAPIServer(t)

	for name, tc := range map[string]struct {
		document, content string
		want              string
	}{
		"what most users set":         {kubelet, `{"maxPods":250,"evictionHard":{"memory.available":"5%"},"shutdownGracePeriod":"0s"}`, ""},
		"a fraction, quoted":          {kubelet, `{"memoryThrottlingFactor":"0.8"}`, ""},
		"a text for a number":         {kubelet, `{"maxPods":"250"}`, "config.maxPods"},
		"a number for a duration":     {kubelet, `{"syncFrequency":60}`, "config.syncFrequency"},
		"a duration without a unit":   {kubelet, `{"syncFrequency":"60"}`, "config.syncFrequency"},
		"no number":                   {kubelet, `{"memoryThrottlingFactor":"half"}`, "memoryThrottlingFactor"},
		"a field that Talos sets":     {kubelet, `{"rotateCertificates":false}`, "rotateCertificates: Forbidden: Talos sets it"},
		"nanoseconds":                 {proxy, `{"logging":{"flushFrequency":5000000000}}`, ""},
		"another version":             {proxy, `{"apiVersion":"kubeproxy.config.k8s.io/v1"}`, "Unsupported value"},
		"a limit without end":         {runtime, `{"process":{"rlimits":[{"type":"RLIMIT_CORE","hard":"18446744073709551615","soft":0}]}}`, ""},
		"a negative limit":            {runtime, `{"process":{"rlimits":[{"type":"RLIMIT_CORE","hard":"-1"}]}}`, "hard"},
		"a system call's action":      {runtime, `{"linux":{"seccomp":{"defaultAction":"SCMP_ACT_NOTHING"}}}`, "Unsupported value"},
		"another system":              {runtime, `{"windows":{"layerFolders":[]}}`, "Talos runs Linux containers"},
		"a policy":                    {policy, `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}`, ""},
		"a policy without apiVersion": {policy, `{"kind":"Policy","rules":[{"level":"Metadata"}]}`, "apiVersion: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			document := strings.Replace(tc.document, "%s", tc.content, 1)
			expect(t, "the API server", server.validate(t, document).ToAggregate(), tc.want)
		})
	}
}
