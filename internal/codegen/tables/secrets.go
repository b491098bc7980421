// SPDX-License-Identifier: Apache-2.0

package tables

import "github.com/maesh-dev/ichor/internal/codegen/model"

// secrets are the fields that Talos redacts although their names do not tell that they are secret.
func secrets() []model.SecretRow {
	return []model.SecretRow{
		{Go: modernK8s + "KubeEtcdEncryptionConfigV1Alpha1.Config", Reason: "holds the keys by which etcd's content is encrypted"},
		{Go: "config/types/siderolink.ConfigV1Alpha1.APIUrlConfig", Reason: "holds a join token in its query"},
	}
}

// harmless are the fields that only sound like secrets.
func harmless() []model.HarmlessRow {
	const (
		public = "a public key"
		size   = "the length of a key"
		port   = "a number that switches group ports by"
		label  = "the name of a label or taint"
		path   = "the path of a file on the machine"

		core      = "k8s.io/api/core/v1."
		kubelet   = "k8s.io/kubelet/config/v1."
		kubelet1  = "k8s.io/kubelet/config/v1beta1."
		scheduler = "k8s.io/kube-scheduler/config/v1."
	)

	return []model.HarmlessRow{
		{Go: "config/types/block.EncryptionSpec.EncryptionKeySize", Reason: size},
		{Go: "config/types/network.BondConfigV1Alpha1.BondADUserPortKey", Reason: port},
		{Go: "config/types/network.WireguardPeer.WireguardPublicKey", Reason: public},
		{Go: "config/types/security.ImageVerificationRuleV1Alpha1.RulePublicKeyVerifier", Reason: public},
		{Go: core + "NodeSelectorRequirement.Key", Reason: label},
		{Go: core + "Taint.Key", Reason: label},
		{Go: core + "TopologySpreadConstraint.TopologyKey", Reason: label},
		{Go: "k8s.io/apimachinery/pkg/apis/meta/v1.LabelSelectorRequirement.Key", Reason: label},
		{Go: "k8s.io/apiserver/pkg/apis/apiserver/v1.ExtraMapping.Key", Reason: "the name of an attribute of users"},
		{Go: kubelet + "CredentialProvider.TokenAttributes", Reason: "says which tokens the kubelet asks for, and holds none"},
		{Go: kubelet + "ServiceAccountTokenAttributes.ServiceAccountTokenAudience", Reason: "says whom a token is for"},
		{Go: kubelet1 + "KubeletConfiguration.ConfigMapAndSecretChangeDetectionStrategy", Reason: "the name of a strategy"},
		{Go: kubelet1 + "KubeletConfiguration.TLSPrivateKeyFile", Reason: path},
		{Go: scheduler + "ExtenderTLSConfig.KeyFile", Reason: path},
		{Go: legacy + "Bond.BondADUserPortKey", Reason: port},
		{Go: legacy + "DeviceWireguardPeer.WireguardPublicKey", Reason: public},
		{Go: legacy + "EncryptionConfig.EncryptionKeySize", Reason: size},
		{Go: legacy + "FeaturesConfig.ApidCheckExtKeyUsage", Reason: "a switch"},
		{Go: legacy + "RegistryConfig.RegistryAuth", Reason: "an object; what is secret in it comes by reference"},
	}
}
