// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

const takenFromNowhere = "holds secrets of a cluster or a machine's bootstrap data, which nothing may be taken from: " +
	"put the value into a Secret of its own and refer to that"

// TestSecretsOfClusters refers to Secrets that are not for patches and registries, and to some that look like them.
func TestSecretsOfClusters(t *testing.T) {
	t.Parallel()

	label := map[string]string{clusterv1.ClusterNameLabel: "c2"}
	owner := func(apiVersion, kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "x", UID: "1"}}
	}

	for name, tc := range map[string]struct {
		name    string
		meta    metav1.ObjectMeta
		sort    corev1.SecretType
		config  bootstrapv1.TalosClusterConfigSpec
		refused bool
	}{
		"bundle of the cluster":         {name: "c1-talos", refused: true},
		"authority of the cluster":      {name: "c1-ca", refused: true},
		"etcd's authority":              {name: "c1-etcd", refused: true},
		"aggregator's authority":        {name: "c1-proxy", refused: true},
		"key of service accounts":       {name: "c1-sa", refused: true},
		"kubeconfig of the cluster":     {name: "c1-kubeconfig", refused: true},
		"talosconfig of the cluster":    {name: "c1-talosconfig", refused: true},
		"the user's own bundle":         {name: "imported", config: bootstrapv1.TalosClusterConfigSpec{SecretsRef: ref("imported")}, refused: true},
		"type of Cluster API":           {name: "anything", sort: clusterv1.ClusterSecretType, refused: true},
		"bundle of another cluster":     {name: "c2-talos", meta: metav1.ObjectMeta{Labels: label}, refused: true},
		"owned by a Cluster":            {name: "x", meta: metav1.ObjectMeta{Labels: label, OwnerReferences: owner("cluster.x-k8s.io/v1beta2", "Cluster")}, refused: true},
		"owned by a control plane":      {name: "x", meta: metav1.ObjectMeta{Labels: label, OwnerReferences: owner("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane")}, refused: true},
		"data of a machine":             {name: "w-1", meta: metav1.ObjectMeta{OwnerReferences: owner("bootstrap.ichor.maesh.dev/v1alpha1", "TalosConfig")}, refused: true},
		"authority of a company":        {name: "corp-ca"},
		"user's Secret with the label":  {name: "wg", meta: metav1.ObjectMeta{Labels: label}},
		"user's Secret with an owner":   {name: "wg", meta: metav1.ObjectMeta{OwnerReferences: owner("external-secrets.io/v1", "ExternalSecret")}},
		"name of another cluster's key": {name: "c2-sa"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			tc.meta.Name = tc.name
			object := machineconfig.SecretObject(&corev1.Secret{
				ObjectMeta: tc.meta, Type: tc.sort, Data: map[string][]byte{"private": []byte(wireguardKey), "identityToken": []byte(wireguardKey)},
			})

			in := input(t, "v1.14", false)
			clusterConfig(&in).Spec.SecretsRef = tc.config.SecretsRef
			in.Patches = append(in.Patches, patch(t, strings.ReplaceAll(tunnel, "name: wg,", "name: "+tc.name+",")))
			in.References = machineconfig.NewReferences(map[machineconfig.ObjectKey]machineconfig.Object{{Kind: machineconfig.KindSecret, Name: tc.name}: object})

			said := func(err error) string {
				if err == nil {
					return ""
				}

				return err.Error()
			}
			want := func(at string) string {
				if !tc.refused {
					return ""
				}

				return fmt.Sprintf("%s: secret %q %s", at, tc.name, takenFromNowhere)
			}

			_, err := machineconfig.Render(in)
			if diff := cmp.Diff(want("Cluster layer: TalosConfigPatch tunnel spec.documents[1]: WireguardConfig: /privateKeySecretRef"), said(err)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}

			config := in.ClusterConfig
			config.Spec.ClusterName = "c1"
			config.Spec.Registries = []bootstrapv1.Registry{{Host: "r.example.com", AuthSecretRef: ref(tc.name)}}

			_, err = machineconfig.ResolveCredentials(config, map[string]machineconfig.Object{tc.name: object})
			if diff := cmp.Diff(want("System layer: TalosClusterConfig c1 spec.registries[r.example.com]: authSecretRef"), said(err)); diff != "" {
				t.Errorf("registry (-want +got):\n%s", diff)
			}

			if text := fmt.Sprintf("%v %+v %#v", object, object, object); strings.Contains(text, wireguardKey) {
				t.Error("the value is shown")
			}
		})
	}
}
