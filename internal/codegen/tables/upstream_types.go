// SPDX-License-Identifier: Apache-2.0

package tables

import "github.com/maesh-dev/ichor/internal/codegen/model"

// quantityPattern is what Kubernetes parses as a quantity, in the fewest bytes: it stands at some twenty places.
const quantityPattern = `^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`

// upstreamScalars stand in for the special types of other projects. They carry no text: they are described at their root.
func upstreamScalars() []model.ScalarRow {
	const (
		duration = `([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+`
		fraction = "JSON's numbers have fractions, a schema's integers have not"
		wide     = "goes beyond a schema's integers"
	)

	decimal := func(name string) model.ScalarRow {
		return model.ScalarRow{
			Go: name, Base: model.Number, MaxLength: 32, Pattern: `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`,
			Doc: `A number; quote a fraction, as in "0.5".`, Examples: []string{"50", "0.8", "1e+06"}, Reason: fraction,
		}
	}
	unsigned := func(name string) model.ScalarRow {
		return model.ScalarRow{
			Go: name, Base: model.Number, MaxLength: 20, Pattern: `^(0|[1-9][0-9]{0,19})$`,
			Examples: []string{"1024", "18446744073709551615"}, Reason: wide,
		}
	}

	return append([]model.ScalarRow{
		decimal("float32"), decimal("float64"), unsigned("uint"), unsigned("uint64"),
		{
			Go: objectMeta + ".Duration", MaxLength: 64, Pattern: `^-?(0|` + duration + `)$`,
			Examples: []string{"1h30m0s", "0", "1.5h"}, Reason: "encoded as text",
		},
		{
			Go: logs + ".TimeOrMetaDuration", Base: model.Number, MaxLength: 64, Pattern: `^(0|[1-9][0-9]*|` + duration + `)$`,
			Doc: "A duration such as 5s, or nanoseconds.", Examples: []string{"5s", "5000000000"}, Reason: "text or a number of nanoseconds",
		},
		{
			Go: quantity + ".Quantity", Base: model.IntOrString, MaxLength: 64, Pattern: quantityPattern,
			Examples: []string{"100m", "1Gi"}, Reason: "encoded as text or a number",
		},
		{
			Go: quantity + ".QuantityValue", Base: model.IntOrString, MaxLength: 64, Pattern: quantityPattern,
			Examples: []string{"100m", "1Gi"}, Reason: "encoded as text or a number",
		},
		{
			Go: "io/fs.FileMode", Base: model.Integer, Maximum: 1<<32 - 1, Doc: "File permissions; the octal 0644 is 420.",
			Examples: []string{"420"}, Reason: "its constants are bits that combine",
		},
		{
			Go: oci + ".LinuxSeccompFlag", MaxLength: 64, Examples: []string{"SECCOMP_FILTER_FLAG_TSYNC"},
			Reason: "the specification has a flag that the package has no constant for",
		},
	}, upstreamEnums()...)
}

func upstreamEnums() []model.ScalarRow {
	return []model.ScalarRow{
		upstreamEnum(kubelet+".ResourceChangeDetectionStrategy", "Get", "Cache", "Watch"),
		upstreamEnum(kubelet+".ImagePullCredentialsVerificationPolicy", "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"),
		upstreamEnum(kubelet+".MemoryReservationPolicy", "None", "TieredReservation"),
		upstreamEnum(credentialProvider+".ServiceAccountTokenCacheType", "Token", "ServiceAccount"),
		upstreamEnum(kubeScheduler+".ScoringStrategyType", "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"),
		upstreamEnum(kubeScheduler+".PodTopologySpreadConstraintsDefaulting", "System", "List"),
		upstreamEnum(apiserver+".AudienceMatchPolicyType", "MatchAny"),
		upstreamEnum(apiserver+".EgressSelectorType", "controlplane", "cluster"),
		upstreamEnum(audit+".Level", "None", "Metadata", "Request", "RequestResponse"),
		upstreamEnum(audit+".Stage", "RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"),
		upstreamEnum(core+".TaintEffect", "NoSchedule", "PreferNoSchedule", "NoExecute"),
		upstreamEnum(core+".NodeSelectorOperator", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
		upstreamEnum(core+".UnsatisfiableConstraintAction", "DoNotSchedule", "ScheduleAnyway"),
		upstreamEnum(core+".NodeInclusionPolicy", "Ignore", "Honor"),
		upstreamEnum(objectMeta+".LabelSelectorOperator", "In", "NotIn", "Exists", "DoesNotExist"),
		upstreamEnum(oci+".IOPriorityClass", "IOPRIO_CLASS_RT", "IOPRIO_CLASS_BE", "IOPRIO_CLASS_IDLE"),
		upstreamEnum(oci+".LinuxNamespaceType", "pid", "network", "mount", "ipc", "uts", "user", "cgroup", "time"),
		upstreamEnum(oci+".LinuxPersonalityDomain", "LINUX", "LINUX32"),
		upstreamEnum(oci+".Arch",
			"SCMP_ARCH_X86", "SCMP_ARCH_X86_64", "SCMP_ARCH_X32", "SCMP_ARCH_ARM", "SCMP_ARCH_AARCH64", "SCMP_ARCH_MIPS",
			"SCMP_ARCH_MIPS64", "SCMP_ARCH_MIPS64N32", "SCMP_ARCH_MIPSEL", "SCMP_ARCH_MIPSEL64", "SCMP_ARCH_MIPSEL64N32",
			"SCMP_ARCH_PPC", "SCMP_ARCH_PPC64", "SCMP_ARCH_PPC64LE", "SCMP_ARCH_S390", "SCMP_ARCH_S390X", "SCMP_ARCH_PARISC",
			"SCMP_ARCH_PARISC64", "SCMP_ARCH_RISCV64", "SCMP_ARCH_LOONGARCH64", "SCMP_ARCH_M68K", "SCMP_ARCH_SH", "SCMP_ARCH_SHEB"),
		upstreamEnum(oci+".LinuxSeccompAction",
			"SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRAP", "SCMP_ACT_ERRNO", "SCMP_ACT_TRACE",
			"SCMP_ACT_ALLOW", "SCMP_ACT_LOG", "SCMP_ACT_NOTIFY"),
		upstreamEnum(oci+".LinuxSeccompOperator",
			"SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE", "SCMP_CMP_EQ", "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"),
		upstreamEnum(oci+".MemoryPolicyModeType",
			"MPOL_DEFAULT", "MPOL_BIND", "MPOL_INTERLEAVE", "MPOL_WEIGHTED_INTERLEAVE", "MPOL_PREFERRED", "MPOL_PREFERRED_MANY", "MPOL_LOCAL"),
		upstreamEnum(oci+".MemoryPolicyFlagType", "MPOL_F_NUMA_BALANCING", "MPOL_F_RELATIVE_NODES", "MPOL_F_STATIC_NODES"),
		upstreamEnum(oci+".LinuxSchedulerPolicy",
			"SCHED_OTHER", "SCHED_FIFO", "SCHED_RR", "SCHED_BATCH", "SCHED_ISO", "SCHED_IDLE", "SCHED_DEADLINE"),
		upstreamEnum(oci+".LinuxSchedulerFlag",
			"SCHED_FLAG_RESET_ON_FORK", "SCHED_FLAG_RECLAIM", "SCHED_FLAG_DL_OVERRUN", "SCHED_FLAG_KEEP_POLICY", "SCHED_FLAG_KEEP_PARAMS",
			"SCHED_FLAG_UTIL_CLAMP_MIN", "SCHED_FLAG_UTIL_CLAMP_MAX"),
		upstreamEnum(flannel+".WireguardMode", "separate", "auto", "ipv4", "ipv6"),
	}
}

func upstreamEnum(goType string, values ...string) model.ScalarRow {
	return model.ScalarRow{Go: goType, Enum: values, Reason: "whoever reads it takes these values only"}
}

func upstreamLimits() []model.Limit {
	const (
		expression = "the API server itself bounds what an expression may cost"
		syscalls   = "Linux has some 400 system calls, and profiles name most of them"
		certs      = "certificates in PEM"
		cost       = "bounds the cost of the rule about args"
	)

	return []model.Limit{
		{Go: apiserver + ".Issuer.CertificateAuthority", MaxLength: 65536, Reason: certs},
		{Go: apiserver + ".ClaimValidationRule.Expression", MaxLength: 10240, Reason: expression},
		{Go: apiserver + ".ClaimOrExpression.Expression", MaxLength: 10240, Reason: expression},
		{Go: apiserver + ".PrefixedClaimOrExpression.Expression", MaxLength: 10240, Reason: expression},
		{Go: apiserver + ".ExtraMapping.ValueExpression", MaxLength: 10240, Reason: expression},
		{Go: apiserver + ".UserValidationRule.Expression", MaxLength: 10240, Reason: expression},
		{Go: apiserver + ".WebhookMatchCondition.Expression", MaxLength: 10240, Reason: expression},
		{Go: oci + ".LinuxSeccomp.Syscalls", MaxItems: 1024, Reason: syscalls},
		{Go: oci + ".LinuxSyscall.Names", MaxItems: 1024, Reason: syscalls},
		{Go: kubeScheduler + ".KubeSchedulerConfiguration.Profiles", MaxItems: 8, Reason: cost},
		{Go: kubeScheduler + ".KubeSchedulerProfile.PluginConfig", MaxItems: 16, Reason: cost},
		{Go: kubeScheduler + ".PluginConfig.Name", MaxLength: 63, Reason: cost},
		{Go: kubeScheduler + ".KubeSchedulerConfiguration.Extenders", MaxItems: 16, Reason: "bounds the cost of the rule about their URLs"},
		{Go: legacy + "AdmissionPluginConfig.PluginName", MaxLength: 63, Reason: "bounds the cost of the rule about configuration"},
		{Go: modernK8s + "KubeAdmissionControlConfigV1Alpha1.MetaName", MaxLength: 63, Reason: "bounds the cost of the rule about configuration"},
	}
}

func upstreamNotes() []model.Note {
	const (
		kubeletText   = "Kubernetes' KubeletConfiguration (kubelet.config.k8s.io/v1beta1)."
		schedulerText = "Kubernetes' KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)."
		policyText    = "Kubernetes' audit Policy."
		webhookText   = "Kubernetes' settings of a webhook authorizer."
		providerText  = "Kubernetes' CredentialProviderConfig."
		admissionText = "Kubernetes' PodSecurityConfiguration, for the plugin PodSecurity."
		runtimeText   = "Linux' part of the OCI runtime specification."
	)

	return []model.Note{
		{Go: modernK8s + "KubeletConfigV1Alpha1.KubeletConfig", Text: kubeletText},
		{Go: legacy + "KubeletConfig.KubeletExtraConfig", Text: kubeletText},
		{Go: modernK8s + "KubeSchedulerConfigV1Alpha1.PodConfig", Text: schedulerText},
		{Go: legacy + "SchedulerConfig.SchedulerConfig", Text: schedulerText},
		{Go: modernK8s + "KubeProxyConfigV1Alpha1.ProxyConfig", Text: "Kubernetes' KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1)."},
		{Go: modernK8s + "KubeAuditPolicyConfigV1Alpha1.AuditConfig", Text: policyText},
		{Go: legacy + "APIServerConfig.AuditPolicyConfig", Text: policyText},
		{Go: modernK8s + "KubeAuthenticationConfigV1Alpha1.AuthConfig", Text: "Kubernetes' AuthenticationConfiguration."},
		{Go: modernK8s + "KubeAuthorizerConfigV1Alpha1.AuthorizerWebhook", Text: webhookText},
		{Go: legacy + "AuthorizationConfigAuthorizerConfig.AuthorizerWebhook", Text: webhookText},
		{Go: modernK8s + "KubeCredentialProviderConfigV1Alpha1.CredentialProviderConfig", Text: providerText},
		{Go: legacy + "KubeletConfig.KubeletCredentialProviderConfig", Text: providerText},
		{Go: modernK8s + "KubeAdmissionControlConfigV1Alpha1.PluginConfig", Text: admissionText},
		{Go: legacy + "AdmissionPluginConfig.PluginConfiguration", Text: admissionText},
		{Go: "config/types/cri.CRIBaseRuntimeSpecConfigV1Alpha1.OverridesConfig", Text: runtimeText},
		{Go: legacy + "MachineConfig.MachineBaseRuntimeSpecOverrides", Text: runtimeText},
		{Go: legacy + "MachineSeccompProfile.MachineSeccompProfileValue", Text: "A seccomp profile, as in the OCI runtime specification."},
		{Go: modernK8s + "KubeFlannelCNIConfigV1Alpha1.FlannelBackendExtraConfig", Text: "Options of flannel's backend, by flannel's names."},
	}
}
