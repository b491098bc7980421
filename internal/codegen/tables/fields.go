// SPDX-License-Identifier: Apache-2.0

package tables

import "github.com/maesh-dev/ichor/internal/codegen/model"

const (
	legacy    = "config/types/v1alpha1."
	modernK8s = "config/types/k8s."
)

func overrides() []model.Override {
	const upstream = "free-form in machinery; Kubernetes' ResourceList, kept as written"

	quantities := model.Form{Map: true, Name: "Quantity", Scalar: model.ScalarRow{
		Base: model.IntOrString, MaxLength: 64, Examples: []string{"100m", "1Gi"},
		Pattern: quantityPattern,
	}}

	return []model.Override{
		{Go: modernK8s + "ResourcesConfig.Requests", As: quantities, Reason: upstream},
		{Go: modernK8s + "ResourcesConfig.Limits", As: quantities, Reason: upstream},
		{Go: legacy + "ResourcesConfig.Requests", As: quantities, Reason: upstream},
		{Go: legacy + "ResourcesConfig.Limits", As: quantities, Reason: upstream},
	}
}

func limits() []model.Limit {
	const content = "whole files; the API server bounds the object at about 1.5 MB"

	const rules = "each item has a rule, whose estimated cost grows with their number"

	return []model.Limit{
		{Go: "config/types/cri.RegistryMirrorConfigV1Alpha1.RegistryEndpoints", MaxItems: 32, Reason: rules},
		{Go: legacy + "LoggingConfig.LoggingDestinations", MaxItems: 32, Reason: rules},
		{Go: "config/types/security.TrustedRootsConfigV1Alpha1.Certificates", MaxLength: 262144, Reason: content},
		{Go: "config/types/security.ImagePublicKeyVerifierV1Alpha1.ConfigCertificate", MaxLength: 65536, Reason: "a certificate in PEM"},
		{Go: "config/types/cri.CRICustomizationConfigV1Alpha1.CustomizationContent", MaxLength: 262144, Reason: content},
		{Go: "config/types/cri.RegistryTLSConfigV1Alpha1.TLSCA", MaxLength: 262144, Reason: "certificates in PEM"},
		{Go: "config/types/meta.CertificateAndKey.Cert", MaxLength: 65536, Reason: "certificates in PEM"},
		{Go: "config/types/runtime.EtcFileConfigV1Alpha1.Contents", MaxLength: 262144, Reason: content},
		{Go: "config/types/runtime/extensions.ConfigFile.ConfigFileContent", MaxLength: 262144, Reason: content},
		{Go: modernK8s + "KubeInlineManifestConfigV1Alpha1.ManifestSpec", MaxLength: 1048576, Reason: content},
		{Go: "github.com/siderolabs/crypto/x509.PEMEncodedCertificateAndKey.Crt", MaxLength: 65536, Reason: "certificates in PEM, in base64"},
		{Go: legacy + "MachineFile.FileContent", MaxLength: 262144, Reason: content},
		{Go: legacy + "ClusterInlineManifest.InlineManifestContents", MaxLength: 1048576, Reason: content},
	}
}
