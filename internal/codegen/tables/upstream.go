// SPDX-License-Identifier: Apache-2.0

package tables

import "github.com/maesh-dev/ichor/internal/codegen/model"

// The packages of other projects.
const (
	kubelet            = "k8s.io/kubelet/config/v1beta1"
	credentialProvider = "k8s.io/kubelet/config/v1"
	kubeScheduler      = "k8s.io/kube-scheduler/config/v1"
	kubeProxy          = "k8s.io/kube-proxy/config/v1alpha1"
	apiserver          = "k8s.io/apiserver/pkg/apis/apiserver/v1"
	audit              = "k8s.io/apiserver/pkg/apis/audit/v1"
	podSecurity        = "k8s.io/pod-security-admission/admission/api/v1"
	component          = "k8s.io/component-base/config/v1alpha1"
	logs               = "k8s.io/component-base/logs/api/v1"
	tracing            = "k8s.io/component-base/tracing/api/v1"
	core               = "k8s.io/api/core/v1"
	objectMeta         = "k8s.io/apimachinery/pkg/apis/meta/v1"
	quantity           = "k8s.io/apimachinery/pkg/api/resource"
	oci                = "github.com/opencontainers/runtime-spec/specs-go"
	flannel            = "github.com/maesh-dev/ichor/internal/codegen/flannel"
)

func upstream() []model.UpstreamPackage {
	return []model.UpstreamPackage{
		{Path: kubelet, As: "Kubelet"},
		{Path: credentialProvider, As: "CredentialProvider"},
		{Path: kubeScheduler, As: "KubeScheduler"},
		{Path: kubeProxy, As: "KubeProxy"},
		{Path: apiserver, As: "APIServer"},
		{Path: audit, As: "Audit"},
		{Path: podSecurity, As: "PodSecurity"},
		{Path: component, As: "Component"},
		{Path: logs, As: "Logs"},
		{Path: tracing, As: "Tracing"},
		{Path: core, As: "Core"},
		{Path: objectMeta, As: "Kube"},
		{Path: quantity, As: "Resource"},
		{Path: oci, As: "OCI"},
		{Path: "io/fs", As: "OCI"},
		{Path: flannel, As: "Flannel"},
	}
}

// typeMetas are the mirrored types that have an apiVersion and a kind.
func typeMetas() []model.TypeMetaRow {
	const (
		set  = "Talos sets both, whatever is written"
		args = "the scheduler defaults both by the plugin's name"
	)

	rows := []model.TypeMetaRow{
		{Go: kubelet + ".KubeletConfiguration", Refused: "Talos sets it; leave it out"},
		{
			Go: kubeScheduler + ".KubeSchedulerConfiguration", APIVersions: []string{"kubescheduler.config.k8s.io/v1"},
			Kind: "KubeSchedulerConfiguration", Reason: set,
		},
		{
			Go: kubeProxy + ".KubeProxyConfiguration", APIVersions: []string{"kubeproxy.config.k8s.io/v1alpha1"},
			Kind: "KubeProxyConfiguration", Reason: set,
		},
		{
			// The versions have the same fields.
			Go:          apiserver + ".AuthenticationConfiguration",
			APIVersions: []string{"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"},
			Kind:        "AuthenticationConfiguration", Reason: set,
		},
		{
			Go: audit + ".Policy", APIVersions: []string{"audit.k8s.io/v1"}, Kind: "Policy",
			Demanded: true, Reason: "Talos hands the policy on as it is, and the API server does not start without",
		},
		{
			Go: credentialProvider + ".CredentialProviderConfig", APIVersions: []string{"kubelet.config.k8s.io/v1"},
			Kind: "CredentialProviderConfig", Demanded: true,
			Reason: "Talos hands the configuration on as it is, and the kubelet does not start without",
		},
		{
			// The versions have the same fields, and Talos writes the oldest.
			Go: podSecurity + ".PodSecurityConfiguration",
			APIVersions: []string{
				"pod-security.admission.config.k8s.io/v1", "pod-security.admission.config.k8s.io/v1beta1",
				"pod-security.admission.config.k8s.io/v1alpha1",
			},
			Kind: "PodSecurityConfiguration", Reason: "the API server reads them; the generated config has them",
		},
	}

	for _, plugin := range schedulerPlugins() {
		rows = append(rows, model.TypeMetaRow{
			Go: kubeScheduler + "." + plugin + "Args", APIVersions: []string{"kubescheduler.config.k8s.io/v1"},
			Kind: plugin + "Args", Reason: args,
		})
	}

	return rows
}

// schedulerPlugins are the plugins in Kubernetes' tree that take arguments.
func schedulerPlugins() []string {
	return []string{
		"DefaultPreemption", "DynamicResources", "InterPodAffinity", "NodeAffinity", "NodeResourcesBalancedAllocation",
		"NodeResourcesFit", "PodTopologySpread", "VolumeBinding",
	}
}

func merged() []model.MergedRow {
	scheduler := model.MergedRow{
		Name: "KubeSchedulerPluginArgs", As: "KubeScheduler", By: "name",
		Message: "args: each of the plugins in Kubernetes' tree has its own typed args; another plugin has none here",
	}

	for _, plugin := range schedulerPlugins() {
		scheduler.Of = append(scheduler.Of, model.MergedType{Go: kubeScheduler + "." + plugin + "Args", For: []string{plugin}})
	}

	return []model.MergedRow{
		scheduler,
		{
			Name: "AdmissionPluginConfiguration", As: "APIServer", By: "name",
			Of:      []model.MergedType{{Go: podSecurity + ".PodSecurityConfiguration", For: []string{"PodSecurity"}}},
			Message: "configuration: only PodSecurity can be configured here",
		},
	}
}

// upstreamForms give the fields that are free-form in machinery the types that read their content.
func upstreamForms() []model.Override {
	const reads = "free-form in machinery; this is the type that reads it"

	form := func(typ string) model.Form { return model.Form{Type: typ} }
	url := model.Form{Name: "PlainURL", Scalar: model.ScalarRow{
		MinLength: 1, MaxLength: 1024, Rule: noUserInfo, Message: userInfoMessage, Examples: []string{"https://extender.example.org/"},
	}}

	return []model.Override{
		{Go: modernK8s + "KubeletConfigV1Alpha1.KubeletConfig", As: form(kubelet + ".KubeletConfiguration"), Reason: reads},
		{Go: legacy + "KubeletConfig.KubeletExtraConfig", As: form(kubelet + ".KubeletConfiguration"), Reason: reads},
		{Go: modernK8s + "KubeSchedulerConfigV1Alpha1.PodConfig", As: form(kubeScheduler + ".KubeSchedulerConfiguration"), Reason: reads},
		{Go: legacy + "SchedulerConfig.SchedulerConfig", As: form(kubeScheduler + ".KubeSchedulerConfiguration"), Reason: reads},
		{Go: kubeScheduler + ".PluginConfig.Args", As: form("KubeSchedulerPluginArgs"), Reason: "free-form in the scheduler; its plugins read these"},
		{Go: kubeScheduler + ".Extender.URLPrefix", As: url, Reason: "a URL, which can carry a password"},
		{Go: modernK8s + "KubeProxyConfigV1Alpha1.ProxyConfig", As: form(kubeProxy + ".KubeProxyConfiguration"), Reason: reads},
		{Go: modernK8s + "KubeAuditPolicyConfigV1Alpha1.AuditConfig", As: form(audit + ".Policy"), Reason: reads},
		{Go: legacy + "APIServerConfig.AuditPolicyConfig", As: form(audit + ".Policy"), Reason: reads},
		{Go: modernK8s + "KubeAuthenticationConfigV1Alpha1.AuthConfig", As: form(apiserver + ".AuthenticationConfiguration"), Reason: reads},
		{Go: modernK8s + "KubeAuthorizerConfigV1Alpha1.AuthorizerWebhook", As: form(apiserver + ".WebhookConfiguration"), Reason: reads},
		{Go: legacy + "AuthorizationConfigAuthorizerConfig.AuthorizerWebhook", As: form(apiserver + ".WebhookConfiguration"), Reason: reads},
		{Go: modernK8s + "KubeCredentialProviderConfigV1Alpha1.CredentialProviderConfig", As: form(credentialProvider + ".CredentialProviderConfig"), Reason: reads},
		{Go: legacy + "KubeletConfig.KubeletCredentialProviderConfig", As: form(credentialProvider + ".CredentialProviderConfig"), Reason: reads},
		{Go: modernK8s + "KubeAdmissionControlConfigV1Alpha1.PluginConfig", As: form("AdmissionPluginConfiguration"), Reason: reads},
		{Go: legacy + "AdmissionPluginConfig.PluginConfiguration", As: form("AdmissionPluginConfiguration"), Reason: reads},
		{Go: "config/types/cri.CRIBaseRuntimeSpecConfigV1Alpha1.OverridesConfig", As: form(oci + ".Spec"), Reason: reads},
		{Go: legacy + "MachineConfig.MachineBaseRuntimeSpecOverrides", As: form(oci + ".Spec"), Reason: reads},
		{Go: legacy + "MachineSeccompProfile.MachineSeccompProfileValue", As: form(oci + ".LinuxSeccomp"), Reason: reads},
		{Go: modernK8s + "KubeFlannelCNIConfigV1Alpha1.FlannelBackendExtraConfig", As: form(flannel + ".Backend"), Reason: reads},
	}
}

// upstreamRefusals are the fields of other projects' types that no patch may set.
func upstreamRefusals() []model.Refusal {
	const (
		owned   = ": Talos sets it"
		windows = ": for Windows only"
		linux   = ": Talos runs Linux containers"
		twin    = ": use "
	)

	rows := []model.Refusal{
		{Go: kubelet + ".KubeletConfiguration.StaticPodURL", Message: "staticPodURL: Talos serves static pods there; use KubeStaticPodConfig"},
		{Go: kubelet + ".KubeletConfiguration.StaticPodURLHeader", Message: "staticPodURLHeader: Talos serves static pods; use KubeStaticPodConfig"},
		{Go: core + ".Taint.TimeAdded", Message: "timeAdded: Kubernetes sets it"},
		{Go: kubeProxy + ".KubeProxyConfiguration.Winkernel", Message: "winkernel" + windows},
		{Go: kubeProxy + ".KubeProxyConfiguration.WindowsRunAsService", Message: "windowsRunAsService" + windows},
		{Go: audit + ".Policy.ObjectMeta", Message: "metadata: has no effect in an audit policy; leave it out"},
		{Go: oci + ".Process.CommandLine", Message: "commandLine" + windows},
		{Go: oci + ".User.Username", Message: "username" + windows},
		{Go: flannel + ".Backend.Type", Message: "Type" + twin + "backendType"},
		{Go: flannel + ".Backend.Port", Message: "Port" + twin + "backendPort"},
		{Go: flannel + ".Backend.MTU", Message: "MTU" + twin + "backendMTU"},
	}

	// What machinery's validation refuses: kubelet.ProtectedConfigurationFields.
	for field, wire := range map[string]string{
		"Authentication": "authentication", "Authorization": "authorization", "CgroupRoot": "cgroupRoot", "KubeletCgroups": "kubeletCgroups",
		"Port": "port", "ProtectKernelDefaults": "protectKernelDefaults", "ResolverConfig": "resolvConf", "RotateCertificates": "rotateCertificates",
		"SystemCgroups": "systemCgroups", "StaticPodPath": "staticPodPath", "SeccompDefault": "seccompDefault",
	} {
		rows = append(rows, model.Refusal{Go: kubelet + ".KubeletConfiguration." + field, Message: wire + owned})
	}

	for field, wire := range map[string]string{"Solaris": "solaris", "Windows": "windows", "VM": "vm", "ZOS": "zos", "FreeBSD": "freebsd"} {
		rows = append(rows, model.Refusal{Go: oci + ".Spec." + field, Message: wire + linux})
	}

	return rows
}

// upstreamReferences are the secrets in other projects' types.
func upstreamReferences() []model.ReferenceRow {
	const (
		shared = "the key that all machines of flannel's network share"
		cloud  = "a credential for the cloud's API"
	)

	return []model.ReferenceRow{
		{Go: kubeScheduler + ".ExtenderTLSConfig.KeyData", As: model.Credential, Instead: "keyFile", Reason: "a private key"},
		{Go: credentialProvider + ".ExecEnvVar.Value", As: model.Content, Reason: "variables often hold tokens and passwords"},
		{Go: flannel + ".Backend.PSK", As: model.Credential, Reason: shared},
		{Go: flannel + ".Backend.AccessKeyID", As: model.Credential, Reason: cloud},
		{Go: flannel + ".Backend.AccessKeySecret", As: model.Credential, Reason: cloud},
	}
}
