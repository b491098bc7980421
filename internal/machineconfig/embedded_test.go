// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// An embedded config stands in another document with each layout.
var embeddedPlaces = map[string]struct {
	modern, legacy             string // the document, with %s for the config
	modernPointer, legacyPlace string
}{
	"kubelet": {
		"{apiVersion: v1alpha1, kind: KubeletConfig, config: %s}", "{machine: {kubelet: {extraConfig: %s}}}",
		"KubeletConfig | /config", "Config | /machine/kubelet/extraConfig",
	},
	"credentials": {
		"{apiVersion: v1alpha1, kind: KubeCredentialProviderConfig, configuration: %s}", "{machine: {kubelet: {credentialProviderConfig: %s}}}",
		"KubeCredentialProviderConfig | /configuration", "Config | /machine/kubelet/credentialProviderConfig",
	},
	"audit": {
		"{apiVersion: v1alpha1, kind: KubeAuditPolicyConfig, configuration: %s}", "{cluster: {apiServer: {auditPolicy: %s}}}",
		"KubeAuditPolicyConfig | /configuration", "Config | /cluster/apiServer/auditPolicy",
	},
	"podSecurity": {
		"{apiVersion: v1alpha1, kind: KubeAdmissionControlConfig, name: PodSecurity, configuration: %s}",
		"{cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: %s}]}}}",
		"KubeAdmissionControlConfig/PodSecurity | /configuration", "Config | /cluster/apiServer/admissionControl/0/configuration",
	},
	"authentication": {
		modern: "{apiVersion: v1alpha1, kind: KubeAuthenticationConfig, configuration: %s}", modernPointer: "KubeAuthenticationConfig | /configuration",
	},
	"authorizer": {
		"{apiVersion: v1alpha1, kind: KubeAuthorizerConfig, name: policy, type: Webhook, webhook: %s}",
		"{cluster: {apiServer: {authorizationConfig: [{name: policy, type: Webhook, webhook: %s}]}}}",
		"KubeAuthorizerConfig/policy | /webhook", "Config | /cluster/apiServer/authorizationConfig/0/webhook",
	},
}

const (
	auditHead    = "apiVersion: audit.k8s.io/v1, kind: Policy"
	securityHead = "apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration"
	providerHead = "apiVersion: kubelet.config.k8s.io/v1, kind: CredentialProviderConfig"
	provider     = "name: ecr, apiVersion: credentialprovider.kubelet.k8s.io/v1, matchImages: ['*.ecr.example.com'], defaultCacheDuration: 12h"
	issuer       = "issuer: {url: 'https://login.example.com', audiences: [kubernetes]}, claimMappings: {username: {claim: sub, prefix: 'oidc:'}}"
	webhook      = "timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: Deny"
	byFile       = "connectionInfo: {type: KubeConfigFile, kubeConfigFile: /var/webhook.yaml}"
)

// TestWrongEmbedded has what the programs that Talos runs would not start with, or would ignore.
func TestWrongEmbedded(t *testing.T) {
	t.Parallel()

	for place, cases := range map[string]map[string]struct{ config, field, says string }{
		"kubelet":        wrongKubelet,
		"credentials":    wrongCredentials,
		"audit":          wrongAudit,
		"podSecurity":    wrongPodSecurity,
		"authentication": wrongAuthentication,
		"authorizer":     wrongAuthorizer,
	} {
		for name, tc := range cases {
			for _, contract := range []string{"v1.14", "v1.13"} {
				document, want := embeddedPlaces[place].modern, embeddedPlaces[place].modernPointer
				if contract == "v1.13" {
					document, want = embeddedPlaces[place].legacy, embeddedPlaces[place].legacyPlace
				}

				if document == "" {
					continue
				}

				t.Run(place+", "+name+", "+contract, func(t *testing.T) {
					t.Parallel()

					err := renderTalos(t, contract, fmt.Sprintf(document, tc.config))

					faults := machineconfig.Errors(err)
					if len(faults) == 0 {
						t.Fatalf("got %v, want an Error", err)
					}

					if got := faults[0].Document + " | " + faults[0].Field; got != want+tc.field {
						t.Errorf("points at %q, want %q: %v", got, want+tc.field, err)
					}

					if got := faults[0].Error(); !strings.Contains(got, tc.says) || !strings.HasPrefix(got, bad+"spec.documents[0]: ") {
						t.Errorf("says %q, want %q in it, and the patch", got, tc.says)
					}
				})
			}
		}
	}
}

var wrongKubelet = map[string]struct{ config, field, says string }{
	"unknown field":          {"{maxPodss: 200}", "/maxPodss", "is not known"},
	"unknown field below":    {"{memorySwap: {behaviour: NoSwap}}", "/memorySwap/behaviour", "is not known"},
	"text for a number":      {"{maxPods: '200'}", "/maxPods", "takes a whole number and not a value of type string"},
	"number for a text":      {"{evictionHard: {memory.available: 500}}", "/evictionHard/memory.available", "takes a text"},
	"no duration":            {"{shutdownGracePeriod: 30}", "/shutdownGracePeriod", "takes a text"},
	"a field of Talos":       {"{staticPodPath: /etc/kubernetes}", "/staticPodPath", "can't be overridden"},
	"eviction signal":        {"{evictionHard: {memory.avail: 500Mi}}", "/evictionHard/memory.avail", "no such signal"},
	"eviction threshold":     {"{evictionHard: {memory.available: 500MB or so}}", "/evictionHard/memory.available", "set a positive quantity"},
	"eviction percentage":    {"{evictionHard: {nodefs.available: 110%}}", "/evictionHard/nodefs.available", "set a percentage"},
	"soft without grace":     {"{evictionSoft: {memory.available: 1Gi}}", "/evictionSoft/memory.available", "evictionSoftGracePeriod"},
	"grace that is none":     {"{evictionSoftGracePeriod: {memory.available: soon}}", "/evictionSoftGracePeriod/memory.available", "90s"},
	"reclaim":                {"{evictionMinimumReclaim: {nodefs.available: -1Gi}}", "/evictionMinimumReclaim/nodefs.available", "set a positive quantity"},
	"CPU manager":            {"{cpuManagerPolicy: Static}", "/cpuManagerPolicy", `is "Static": set one of none, static`},
	"memory manager":         {"{memoryManagerPolicy: static}", "/memoryManagerPolicy", "set one of None, Static"},
	"topology manager":       {"{topologyManagerPolicy: single-numa}", "/topologyManagerPolicy", "single-numa-node"},
	"topology scope":         {"{topologyManagerScope: Pod}", "/topologyManagerScope", "container, pod"},
	"swap":                   {"{memorySwap: {swapBehavior: UnlimitedSwap}}", "/memorySwap/swapBehavior", "NoSwap, LimitedSwap"},
	"log format":             {"{logging: {format: yaml}}", "/logging/format", "text, json"},
	"negative pods":          {"{maxPods: -1}", "/maxPods", "set 0 or more"},
	"oom score":              {"{oomScoreAdj: -2000}", "/oomScoreAdj", "from -1000 to 1000"},
	"log files":              {"{containerLogMaxFiles: 1}", "/containerLogMaxFiles", "set 2 or more"},
	"log size":               {"{containerLogMaxSize: 10 MB}", "/containerLogMaxSize", "set a quantity"},
	"image GC":               {"{imageGCHighThresholdPercent: 70}", "/imageGCHighThresholdPercent", "which is 80, must be less"},
	"image GC the other way": {"{imageGCLowThresholdPercent: 90}", "/imageGCLowThresholdPercent", "which is 90, must be less"},
	"parallel pulls":         {"{serializeImagePulls: true, maxParallelImagePulls: 5}", "/maxParallelImagePulls", "must be 1"},
	"reserved resource":      {"{systemReserved: {disk: 1Gi}}", "/systemReserved/disk", "cannot reserve"},
	"reserved quantity":      {"{kubeReserved: {memory: lots}}", "/kubeReserved/memory", "set a quantity"},
	"reserved CPUs":          {"{reservedSystemCPUs: first two}", "/reservedSystemCPUs", "0-3,7"},
	"enforcement":            {"{enforceNodeAllocatable: [system-reserved]}", "/enforceNodeAllocatable/0", "needs systemReservedCgroup"},
	"unknown enforcement":    {"{enforceNodeAllocatable: [pods, system]}", "/enforceNodeAllocatable/1", "set one of"},
	"shutdown":               {"{shutdownGracePeriod: 30s, shutdownGracePeriodCriticalPods: 60s}", "/shutdownGracePeriodCriticalPods", "must not be longer"},
	"short shutdown":         {"{shutdownGracePeriod: 30ms}", "/shutdownGracePeriod", "1s and more"},
	"shutdown of Talos":      {"{shutdownGracePeriod: 5s}", "/shutdownGracePeriod", "which is 10s, must not be longer than shutdownGracePeriod, which is 5s"},
	"critical pods alone":    {"{shutdownGracePeriodCriticalPods: 45s}", "/shutdownGracePeriodCriticalPods", "which is 45s, must not be longer than shutdownGracePeriod, which is 30s"},
	"shutdown by priority":   {"{shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 20}]}", "/shutdownGracePeriodByPodPriority", "set both to 0s"},
	"quota period":           {"{cpuCFSQuotaPeriod: 5s}", "/cpuCFSQuotaPeriod", "from 1ms to 1s"},
	"restart period":         {"{crashLoopBackOff: {maxContainerRestartPeriod: 10m}}", "/crashLoopBackOff/maxContainerRestartPeriod", "from 1s to 5m0s"},
	"negative age":           {"{imageMinimumGCAge: -5m}", "/imageMinimumGCAge", "must not be negative"},
	"throttling":             {"{memoryThrottlingFactor: 1.5}", "/memoryThrottlingFactor", "1 at most"},
	"name server":            {"{clusterDNS: [dns.example.com]}", "/clusterDNS/0", "is no IP address"},
	"address":                {"{address: eth0}", "/address", "is no IP address"},
	"pod logs":               {"{podLogsDir: var/log/pods}", "/podLogsDir", "whole path"},
	"cipher":                 {"{tlsCipherSuites: [TLS_FOO]}", "/tlsCipherSuites/0", "no program knows"},
	"parameter of the node":  {"{allowedUnsafeSysctls: [net.core.somaxconn, 'vm.*']}", "/allowedUnsafeSysctls/1", "no pod has for itself"},
	"star in the middle":     {"{allowedUnsafeSysctls: ['net.*.forwarding']}", "/allowedUnsafeSysctls/0", "no pod has for itself"},
	"static without CPU":     {"{cpuManagerPolicy: static, systemReserved: {memory: 1Gi}}", "/cpuManagerPolicy", "needs CPU that is reserved"},
	"options of none":        {"{cpuManagerPolicyOptions: {full-pcpus-only: 'true'}}", "/cpuManagerPolicyOptions", "needs cpuManagerPolicy static"},
	"static memory":          {"{memoryManagerPolicy: Static}", "/memoryManagerPolicy", "needs reservedMemory"},
	"sum of memory": {
		"{memoryManagerPolicy: Static, systemReserved: {memory: 512Mi}, reservedMemory: [{numaNode: 0, limits: {memory: 10Gi}}]}", "/reservedMemory", "has 10Gi of memory, and must have 612Mi",
	},
	"static memory, usual eviction": {
		"{memoryManagerPolicy: Static, mergeDefaultEvictionSettings: true, systemReserved: {memory: 512Mi}, evictionHard: {nodefs.available: 5%}, " +
			"reservedMemory: [{numaNode: 0, limits: {memory: 512Mi}}]}", "/reservedMemory", "has 512Mi of memory, and must have 612Mi",
	},
	"reserved CPU of a node": {"{reservedMemory: [{numaNode: 0, limits: {cpu: '1'}}]}", "/reservedMemory/0/limits/cpu", "cannot be reserved"},
	"no cgroups":             {"{cgroupsPerQOS: false}", "/cgroupsPerQOS", "[none] alone"},
	"both enforcements":      {"{enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible], kubeReservedCgroup: /kube}", "/enforceNodeAllocatable", "remove one"},
	"log query":              {"{enableSystemLogQuery: true, enableSystemLogHandler: false}", "/enableSystemLogQuery", "needs enableSystemLogHandler"},
	"taint effect":           {"{registerWithTaints: [{key: dedicated, effect: NoStart}]}", "/registerWithTaints/0/effect", "NoSchedule"},
	"taint key":              {"{registerWithTaints: [{key: 'a b', effect: NoSchedule}]}", "/registerWithTaints/0/key", "no key of a taint"},
	"run once":               {"{runOnce: true}", "/runOnce", "remove it"},
}

var wrongCredentials = map[string]struct{ config, field, says string }{
	"no kind":       {"{apiVersion: kubelet.config.k8s.io/v1, providers: [{" + provider + "}]}", "/kind", "must be CredentialProviderConfig"},
	"no provider":   {"{" + providerHead + ", providers: []}", "/providers", "must have a provider"},
	"unknown field": {"{" + providerHead + ", providers: [{" + provider + ", matchImage: x}]}", "/providers/0/matchImage", "is not known"},
	"a path":        {"{" + providerHead + ", providers: [{" + strings.Replace(provider, "ecr", "bin/ecr", 1) + "}]}", "/providers/0/name", "file name"},
	"a scheme":      {"{" + providerHead + ", providers: [{" + strings.Replace(provider, "*.ecr", "https://ecr", 1) + "}]}", "/providers/0/matchImages/0", "without a scheme"},
	"no duration":   {"{" + providerHead + ", providers: [{" + strings.Replace(provider, ", defaultCacheDuration: 12h", "", 1) + "}]}", "/providers/0/defaultCacheDuration", "12h"},
	"twice":         {"{" + providerHead + ", providers: [{" + provider + "}, {" + provider + "}]}", "/providers/1/name", "another provider"},
}

var wrongAudit = map[string]struct{ config, field, says string }{
	"no apiVersion":    {"{kind: Policy, rules: [{level: None}]}", "/apiVersion", "must be audit.k8s.io/v1"},
	"old apiVersion":   {"{apiVersion: audit.k8s.io/v1beta1, kind: Policy, rules: [{level: None}]}", "/apiVersion", "must be audit.k8s.io/v1"},
	"no rule":          {"{" + auditHead + ", rules: []}", "/rules", "must have a rule"},
	"unknown level":    {"{" + auditHead + ", rules: [{level: Everything}]}", "/rules/0/level", `"Metadata"`},
	"no level":         {"{" + auditHead + ", rules: [{users: [admin]}]}", "/rules/0/level", "required value"},
	"unknown field":    {"{" + auditHead + ", rules: [{level: None, responseStages: [Panic]}]}", "/rules/0/responseStages", "is not known"},
	"unknown stage":    {"{" + auditHead + ", omitStages: [Started], rules: [{level: None}]}", "/omitStages/0", "RequestReceived"},
	"URLs and objects": {"{" + auditHead + ", rules: [{level: None, nonResourceURLs: [/metrics], namespaces: [x]}]}", "/rules/0/nonResourceURLs", "both regular resources"},
}

var wrongPodSecurity = map[string]struct{ config, field, says string }{
	"unknown level":   {"{" + securityHead + ", defaults: {enforce: strict}}", "/defaults/enforce", "privileged, baseline, restricted"},
	"unknown version": {"{" + securityHead + ", defaults: {enforce-version: '1.34'}}", "/defaults/enforce-version", "latest"},
	"unknown field":   {"{" + securityHead + ", defaults: {enforced: baseline}}", "/defaults/enforced", "is not known"},
	"old kind":        {"{kind: PodSecurity}", "/kind", "must be PodSecurityConfiguration"},
	"namespace":       {"{" + securityHead + ", exemptions: {namespaces: [Kube_System]}}", "/exemptions/namespaces/1", "RFC 1123"},
}

var wrongAuthentication = map[string]struct{ config, field, says string }{
	"everybody on every path": {"{anonymous: {enabled: true, conditions: null}}", "/anonymous", "lets requests without a login in on every path"},
	"http":                    {"{jwt: [{" + strings.Replace(issuer, "https", "http", 1) + "}]}", "/jwt/0/issuer/url", "scheme must be https"},
	"no audience":             {"{jwt: [{" + strings.Replace(issuer, "[kubernetes]", "[]", 1) + "}]}", "/jwt/0/issuer/audiences", "required value"},
	"no prefix":               {"{jwt: [{" + strings.Replace(issuer, ", prefix: 'oidc:'", "", 1) + "}]}", "/jwt/0/claimMappings/username/prefix", "required value"},
	"two audiences":           {"{jwt: [{" + strings.Replace(issuer, "[kubernetes]", "[a, b]", 1) + "}]}", "/jwt/0/issuer/audienceMatchPolicy", "MatchAny"},
	"claim and CEL":           {"{jwt: [{" + issuer + ", claimValidationRules: [{claim: a, expression: 'true'}]}]}", "/jwt/0/claimValidationRules/0", "can't both be set"},
	"wrong expression":        {"{jwt: [{" + issuer + ", userValidationRules: [{expression: 'user.nam == \"x\"'}]}]}", "/jwt/0/userValidationRules/0/expression", "compilation failed"},
	"certificate":             {"{jwt: [{" + strings.Replace(issuer, "audiences", "certificateAuthority: none, audiences", 1) + "}]}", "/jwt/0/issuer/certificateAuthority", "invalid value"},
	"same issuer twice":       {"{jwt: [{" + issuer + "}, {" + issuer + "}]}", "/jwt/1/issuer/url", "duplicate value"},
	"the cluster's own":       {"{jwt: [{" + strings.Replace(issuer, "login.example.com", "api.example.com:6443", 1) + "}]}", "/jwt/0/issuer/url", "disallowed issuers"},
	"anonymous":               {"{anonymous: {enabled: false, conditions: [{path: /livez}]}}", "/anonymous/conditions", "enabled should be set"},
	"unknown field":           {"{oidc: []}", "/oidc", "is not known"},
}

var wrongAuthorizer = map[string]struct{ config, field, says string }{
	"long timeout":     {"{" + strings.Replace(webhook, "3s", "90s", 1) + ", " + byFile + "}", "/timeout", "<= 30s"},
	"no policy":        {"{" + strings.Replace(webhook, "failurePolicy: Deny", "unauthorizedTTL: 1s", 1) + ", " + byFile + "}", "/failurePolicy", "required value"},
	"no connection":    {"{" + webhook + "}", "/connectionInfo/type", "required value"},
	"in cluster":       {"{" + webhook + ", connectionInfo: {type: InClusterConfig}}", "/connectionInfo/type", "use KubeConfigFile"},
	"relative path":    {"{" + webhook + ", connectionInfo: {type: KubeConfigFile, kubeConfigFile: webhook.yaml}}", "/connectionInfo/kubeConfigFile", "absolute path"},
	"unknown field":    {"{" + webhook + ", " + byFile + ", cacheTTL: 5m}", "/cacheTTL", "is not known"},
	"wrong expression": {"{" + webhook + ", " + byFile + ", matchConditions: [{expression: request.usr}]}", "/matchConditions/0/expression", "compilation failed"},
}

// TestRightEmbedded has what people really set: it must go through.
func TestRightEmbedded(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ place, config string }{
		"a busy node": {"kubelet", "{maxPods: 250, podPidsLimit: 4096, serializeImagePulls: false, maxParallelImagePulls: 5, kubeAPIQPS: 100, " +
			"imageGCHighThresholdPercent: 70, imageGCLowThresholdPercent: 60, featureGates: {GracefulNodeShutdown: true}}"},
		"reservations": {"kubelet", "{systemReserved: {cpu: 200m, memory: 512Mi, ephemeral-storage: 1Gi, pid: '1000'}, kubeReserved: {cpu: '1'}, " +
			"evictionHard: {memory.available: 500Mi, nodefs.available: 10%, imagefs.inodesFree: 5%}, evictionMinimumReclaim: {nodefs.available: 0Mi}}"},
		"soft eviction": {"kubelet", "{evictionSoft: {memory.available: 1Gi}, evictionSoftGracePeriod: {memory.available: 1m30s}}"},
		"pinned CPUs": {"kubelet", "{cpuManagerPolicy: static, cpuManagerPolicyOptions: {full-pcpus-only: 'true'}, reservedSystemCPUs: '0-3,7', " +
			"topologyManagerPolicy: single-numa-node, topologyManagerScope: pod, memoryManagerPolicy: Static, " +
			"reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]}"},
		"shutdown":      {"kubelet", "{shutdownGracePeriod: 60s, shutdownGracePeriodCriticalPods: 10s}"},
		"critical pods": {"kubelet", "{shutdownGracePeriodCriticalPods: 15s}"},
		"by priority":   {"kubelet", "{shutdownGracePeriod: 0s, shutdownGracePeriodCriticalPods: 0s, shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 20}]}"},
		"memory of a node, usual eviction": {"kubelet", "{memoryManagerPolicy: Static, mergeDefaultEvictionSettings: true, systemReserved: {memory: 512Mi}, " +
			"evictionHard: {nodefs.available: 5%}, reservedMemory: [{numaNode: 0, limits: {memory: 612Mi}}]}"},
		"memory of a node, no eviction": {"kubelet", "{memoryManagerPolicy: Static, systemReserved: {memory: 512Mi}, evictionHard: {nodefs.available: 5%}, " +
			"reservedMemory: [{numaNode: 0, limits: {memory: 512Mi}}]}"},
		"memory of a node": {"kubelet", "{memoryManagerPolicy: Static, kubeReserved: {memory: 512Mi}, systemReserved: {memory: 512Mi, cpu: 100m}, evictionHard: {memory.available: 100Mi}, " +
			"reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, {numaNode: 1, limits: {memory: 100Mi, hugepages-2Mi: 1Gi}}]}"},
		"without cgroups":    {"kubelet", "{cgroupsPerQOS: false, enforceNodeAllocatable: [none]}"},
		"parameters of pods": {"kubelet", "{allowedUnsafeSysctls: ['net.*', net.core.somaxconn, 'kernel.shm*', kernel.msgmax, fs.mqueue.msg_max]}"},
		"serving":            {"kubelet", "{serverTLSBootstrap: true, tlsMinVersion: VersionTLS12, containerLogMaxSize: 50Mi, containerLogMaxFiles: 3, logging: {verbosity: 2}}"},
		"swap":               {"kubelet", "{memorySwap: {swapBehavior: LimitedSwap}, failSwapOn: false}"},
		"ECR":                {"credentials", "{" + providerHead + ", providers: [{" + provider + ", args: [get-credentials], env: [{name: AWS_REGION, value: eu-central-1}]}]}"},
		"audit": {"audit", "{" + auditHead + ", omitStages: [RequestReceived], rules: [{level: None, users: ['system:kube-proxy'], verbs: [watch], " +
			"resources: [{group: '', resources: [endpoints, services]}]}, {level: RequestResponse, namespaces: [kube-system]}, {level: Metadata}]}"},
		"pod security":  {"podSecurity", "{" + securityHead + ", defaults: {enforce: privileged, audit: restricted}, exemptions: {namespaces: [longhorn-system]}}"},
		"OIDC":          {"authentication", "{jwt: [{" + issuer + ", claimValidationRules: [{expression: 'claims.exp - claims.nbf <= 86400', message: too long}]}]}"},
		"no anonymous":  {"authentication", "{anonymous: {enabled: false}}"},
		"webhook":       {"authorizer", "{" + webhook + ", " + byFile + ", matchConditions: [{expression: has(request.resourceAttributes)}]}"},
		"webhook, file": {"authorizer", "{" + webhook + ", connectionInfo: {type: KubeConfigFile, kubeConfigFile: /var/webhook.yaml}}"},
	} {
		for _, contract := range []string{"v1.14", "v1.13"} {
			document := embeddedPlaces[tc.place].modern
			if contract == "v1.13" {
				document = embeddedPlaces[tc.place].legacy
			}

			if document == "" {
				continue
			}

			t.Run(name+", "+contract, func(t *testing.T) {
				t.Parallel()

				if err := renderTalos(t, contract, fmt.Sprintf(document, tc.config)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// renderTalos renders a control-plane machine with a document as Talos writes it.
func renderTalos(t *testing.T, contract, document string) error {
	t.Helper()

	object := &bootstrapv1.TalosConfigPatch{ObjectMeta: metav1.ObjectMeta{Name: "bad", Namespace: namespace}}
	object.Spec.ClusterName, object.Spec.Layer = "c1", bootstrapv1.PatchLayerCluster

	patch, err := machineconfig.TalosPatch(object, document)
	if err != nil {
		t.Fatal(err)
	}

	in := input(t, contract, true)
	in.Patches = append(in.Patches, patch)

	config, err := machineconfig.Render(in)
	if err != nil && len(config.Bytes) > 0 {
		t.Error("an error, and a config")
	}

	return err
}

// TestDoubles has what may stand there once.
func TestDoubles(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ contract, document, want string }{
		"beside Talos' own": {
			"v1.14", "{apiVersion: v1alpha1, kind: KubeAuthorizerConfig, name: roles, type: RBAC}",
			"KubeAuthorizerConfig/roles: /type: an authorizer of type RBAC is there already, named rbac",
		},
		"twice in a list": {
			"v1.13", "{cluster: {apiServer: {authorizationConfig: [{name: a, type: Node}, {name: b, type: Node}]}}}",
			"Config: /cluster/apiServer/authorizationConfig/1/type: an authorizer of type Node is there already, named a",
		},
		"manifests of one name in both layouts": {
			"v1.14", "{apiVersion: v1alpha1, kind: KubeInlineManifestConfig, name: cni, manifest: ''}\n---\ncluster: {inlineManifests: [{name: cni, contents: ''}]}",
			"Config: /cluster/inlineManifests/0/name: is the name of KubeInlineManifestConfig/cni too",
		},
		"a name that is none": {
			"v1.14", "{apiVersion: v1alpha1, kind: KubeAuthorizerConfig, name: My_Hook, type: Webhook, webhook: {" + webhook + ", " + byFile + "}}",
			"KubeAuthorizerConfig/My_Hook: /name: the API server takes only names of lower case",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if err := renderTalos(t, tc.contract, tc.document); err == nil || !strings.HasPrefix(err.Error(), bad+"spec.documents[0]: "+tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestKubeletFlagsGoBefore has configs of the kubelet that are wrong by themselves, and right with the flags beside them.
func TestKubeletFlagsGoBefore(t *testing.T) {
	t.Parallel()

	const pinned, memory, cgroups = "cpuManagerPolicy: static, systemReserved: {memory: 1Gi}", "memoryManagerPolicy: Static", "cgroupsPerQOS: false"

	for _, tc := range []struct{ config, flag string }{
		{pinned, "reserved-cpus: 0-1"},
		{pinned, "system-reserved: 'cpu=500m,memory=1Gi'"},
		{pinned, "kube-reserved: cpu=500m"},
		{pinned, "cpu-manager-policy: none"},
		{"cpuManagerPolicyOptions: {full-pcpus-only: 'true'}", "cpu-manager-policy: static"},
		{memory, "reserved-memory: '0:memory=1Gi'"},
		{memory, "memory-manager-policy: None"},
		{memory + ", systemReserved: {memory: 512Mi}, reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]", "eviction-hard: memory.available<512Mi"},
		{cgroups, "enforce-node-allocatable: none"},
	} {
		t.Run(tc.flag, func(t *testing.T) {
			t.Parallel()

			for contract, form := range map[string]string{
				"v1.14": "{apiVersion: v1alpha1, kind: KubeletConfig, config: {%s}, extraArgs: {%s}}",
				"v1.13": "{machine: {kubelet: {extraConfig: {%s}, extraArgs: {%s}}}}",
			} {
				if err := renderTalos(t, contract, fmt.Sprintf(form, tc.config, tc.flag)); err != nil {
					t.Errorf("%s: %v", contract, err)
				}

				if err := renderTalos(t, contract, fmt.Sprintf(form, tc.config, "v: '2'")); err == nil {
					t.Errorf("%s: passes without the flag", contract)
				}
			}
		})
	}
}
