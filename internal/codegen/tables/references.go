// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"slices"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// references are the fields whose values come from Secrets and ConfigMaps of the patch's namespace, so that patches can be kept
// in Git.
func references() []model.ReferenceRow {
	return slices.Concat(credentials(), contents(), pods(), upstreamReferences())
}

// credentials are secrets of users by their nature: Talos' own redaction covers all of them.
func credentials() []model.ReferenceRow {
	const (
		network    = "config/types/network."
		cri        = "config/types/cri."
		registries = "TalosClusterConfig.spec.registries[]"
		redacts    = "Talos redacts it"
	)

	rows := []model.ReferenceRow{
		{Go: cri + "RegistryAuthConfigV1Alpha1.RegistryAuth"},
		{Go: cri + "RegistryAuthConfigV1Alpha1.RegistryIdentityToken"},
		{Go: cri + "RegistryAuthConfigV1Alpha1.RegistryPassword"},
		{Go: "config/types/meta.CertificateAndKey.Key"},
		{Go: "github.com/siderolabs/crypto/x509.PEMEncodedCertificateAndKey.Key", Instead: registries + ".tls.clientCertificateSecretRef"},
		{Go: network + "HCloudVIPConfigV1Alpha1.APIToken"},
		{Go: network + "WireguardConfigV1Alpha1.WireguardPrivateKey"},
		{Go: network + "WireguardPeer.WireguardPresharedKey"},
		{Go: legacy + "DeviceWireguardConfig.WireguardPrivateKey"},
		{Go: legacy + "RegistryAuthConfig.RegistryAuth", Instead: registries + ".authSecretRef"},
		{Go: legacy + "RegistryAuthConfig.RegistryIdentityToken", Instead: registries + ".authSecretRef"},
		{Go: legacy + "RegistryAuthConfig.RegistryPassword", Instead: registries + ".authSecretRef"},
		{Go: legacy + "VIPEquinixMetalConfig.EquinixMetalAPIToken"},
		{Go: legacy + "VIPHCloudConfig.HCloudAPIToken"},
	}

	for i := range rows {
		rows[i].As, rows[i].Reason = model.Credential, redacts
	}

	return rows
}

// contents are free-form and may hold a secret; Talos' own redaction covers none of them.
func contents() []model.ReferenceRow {
	const (
		environment = "variables often hold tokens and passwords"
		headers     = "headers carry tokens"
		file        = "a file may hold anything"
		manifest    = "manifests may hold Secrets"
	)

	rows := []model.ReferenceRow{
		{Go: "config/types/container.ContainerConfigV1Alpha1.ContainerEnvironment", Reason: environment},
		{Go: "config/types/cri.CRICustomizationConfigV1Alpha1.CustomizationContent", Reason: file},
		{Go: "config/types/runtime.EnvironmentV1Alpha1.EnvironmentVariables", Reason: environment},
		{Go: "config/types/runtime.EtcFileConfigV1Alpha1.Contents", Reason: file},
		{Go: "config/types/runtime/extensions.ConfigFile.ConfigFileContent", Reason: file},
		{Go: "config/types/runtime/extensions.ServiceConfigV1Alpha1.ServiceEnvironment", Reason: environment},
		{Go: modernK8s + "KubeAPIServerConfigV1Alpha1.PodEnv", Reason: environment},
		{Go: modernK8s + "KubeControllerManagerConfigV1Alpha1.PodEnv", Reason: environment},
		{Go: modernK8s + "KubeExternalManifestConfigV1Alpha1.HeadersSpec", Reason: headers},
		{Go: modernK8s + "KubeInlineManifestConfigV1Alpha1.ManifestSpec", Reason: manifest},
		{Go: modernK8s + "KubeSchedulerConfigV1Alpha1.PodEnv", Reason: environment},
		{Go: legacy + "APIServerConfig.EnvConfig", Reason: environment},
		{Go: legacy + "ClusterConfig.ExtraManifestHeaders", Reason: headers},
		{Go: legacy + "ClusterInlineManifest.InlineManifestContents", Reason: manifest},
		{Go: legacy + "ControllerManagerConfig.EnvConfig", Reason: environment},
		{Go: legacy + "MachineConfig.MachineEnv", Reason: environment},
		{Go: legacy + "MachineFile.FileContent", Reason: file},
		{Go: legacy + "SchedulerConfig.EnvConfig", Reason: environment},
	}

	for i := range rows {
		rows[i].As = model.Content
	}

	return rows
}

// pods are whole pods: some 330 KB of schema each.
func pods() []model.ReferenceRow {
	const large = "a pod's schema alone is larger than a CRD may be"

	return []model.ReferenceRow{
		{Go: modernK8s + "KubeStaticPodConfigV1Alpha1.PodSpec", As: model.Pod, Reason: large},
		{Go: legacy + "MachineConfig.MachinePods", As: model.Pod, Reason: large},
	}
}

// objects are structs that encode themselves, as objects of texts in base64.
func objects() []model.ObjectRow {
	return []model.ObjectRow{
		{
			Go:     "github.com/siderolabs/crypto/x509.PEMEncodedCertificateAndKey",
			Wire:   map[string]string{"Crt": "crt", "Key": "key"},
			Reason: "its fields have no names on the wire but in its own encoder",
		},
	}
}
