// SPDX-License-Identifier: Apache-2.0

package builder

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

// What References refers to, and what is in the ConfigMap of it.
const (
	WireguardSecret = "wireguard"
	WireguardKey    = "private"
	NFSSetting      = "nfsvers=4.1"
)

// References is what of a Cluster's configs stands elsewhere: a TalosConfigPatch "references" takes a file from the ConfigMap "nfs", which is
// there, and a private key from the Secret WireguardSecret, which is the test's to make; and a TalosStorage "longhorn" selects the machines
// whose label "role" has this value.
func References(cluster, role string) These {
	const configMap, key = "nfs", "nfsmount.conf"

	patch := Patch(cluster, "references",
		machineconfigv1alpha1.Document{
			Kind: "EtcFileConfig", EtcFileConfig: &machineconfigv1alpha1.EtcFileConfig{
				Name: key, Mode: new(machineconfigv1alpha1.RuntimeEtcFileMode(0o644)),
				ContentsFrom: &machineconfigv1alpha1.ValueSource{ConfigMapKeyRef: &machineconfigv1alpha1.ConfigMapKeyReference{Name: configMap, Key: key}},
			},
		},
		machineconfigv1alpha1.Document{
			Kind: "WireguardConfig", WireguardConfig: &machineconfigv1alpha1.WireguardConfig{
				Name: "wg0", ListenPort: new(int64(51820)),
				PrivateKeySecretRef: &machineconfigv1alpha1.SecretKeyReference{Name: WireguardSecret, Key: WireguardKey},
			},
		})

	storage := &bootstrapv1.TalosStorage{
		TypeMeta:   metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "TalosStorage"},
		ObjectMeta: metav1.ObjectMeta{Name: "longhorn"},
		Spec: bootstrapv1.TalosStorageSpec{
			ClusterTargeting: bootstrapv1.ClusterTargeting{ClusterName: cluster},
			MachineTargeting: bootstrapv1.MachineTargeting{MachineSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": role}}},
			Preset:           bootstrapv1.StoragePresetLonghornV1,
			Volume: bootstrapv1.StorageVolume{
				Type: bootstrapv1.StorageVolumePartition, DiskSelector: `disk.transport == "nvme"`, MinSize: "100GiB",
			},
		},
	}

	settings := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: configMap}, Data: map[string]string{key: NFSSetting},
	}

	return append(These(patch.Objects()), storage, settings)
}

// Sysctl is the document that sets one.
func Sysctl(name, value string) machineconfigv1alpha1.Document {
	return machineconfigv1alpha1.Document{Kind: "SysctlConfig", SysctlConfig: &machineconfigv1alpha1.SysctlConfig{Params: map[string]string{name: value}}}
}
