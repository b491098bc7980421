// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/harness"
)

// generatesClusters has clusterctl make the manifests of clusters from the templates, and the API server with all webhooks accept them.
func generatesClusters(t *testing.T, w *World, s *subject) {
	if s != subjects[0] {
		t.Skip("a template needs both providers, and is looked at once")
	}

	for flavor, kinds := range map[string]map[string]int{
		"": {
			"Cluster": 1, "SimCluster": 1, "TalosClusterConfig": 1, "TalosControlPlane": 1, "MachineDeployment": 1, "TalosConfigTemplate": 1, "SimMachineTemplate": 2,
		},
		"topology": {
			"Cluster": 1, "TalosClusterConfig": 1,
			// clusterctl adds the class that the cluster is of.
			"ClusterClass": 1, "TalosControlPlaneTemplate": 1, "TalosConfigTemplate": 1, "SimClusterTemplate": 1, "SimMachineTemplate": 1,
		},
	} {
		t.Run("flavor "+flavor, func(t *testing.T) {
			g := NewWithT(t)

			arguments := []string{
				"cluster", "generated", "--infrastructure", "sim:" + Version, "--target-namespace", "default",
				"--kubernetes-version", "v1.36.1", "--control-plane-machine-count", "3", "--worker-machine-count", "2",
			}
			if flavor != "" {
				arguments = append(arguments, "--flavor", flavor)
			}

			manifests, err := w.Generate(t.Context(), arguments...)
			g.Expect(err).NotTo(HaveOccurred())

			objects, err := harness.DecodeYAML([]byte(manifests))
			g.Expect(err).NotTo(HaveOccurred())

			found := map[string]int{}

			for _, object := range objects {
				found[object.GetKind()]++
				g.Expect(object.GetNamespace()).To(Equal("default"), "%s %s", object.GetKind(), object.GetName())
			}

			g.Expect(found).To(Equal(kinds))

			slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
				return cmp.Compare(isCluster(a), isCluster(b))
			})

			for _, object := range objects {
				// A class must be there for the cluster that is of it. The cluster itself is asked for only, so that nothing is made of it.
				if flavor == "topology" && object.GetKind() != "Cluster" {
					g.Expect(w.Client().Create(t.Context(), object, client.FieldValidation("Strict"))).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
					t.Cleanup(func() { g.Expect(w.Client().Delete(context.WithoutCancel(t.Context()), object)).To(Succeed()) })

					continue
				}

				// Cluster API's own webhooks look at a class some time after it has come.
				g.Eventually(func() error {
					return w.Client().Create(t.Context(), object.DeepCopy(), client.DryRunAll, client.FieldValidation("Strict"))
				}, patience, time.Second/4).Should(Succeed(), "%s %s", object.GetKind(), object.GetName())
			}

			if flavor == "" {
				g.Expect(replicas(t, objects, "TalosControlPlane")).To(BeNumerically("==", 3))
				g.Expect(replicas(t, objects, "MachineDeployment")).To(BeNumerically("==", 2))
			}
		})
	}
}

// isCluster is 1 for the Cluster, which comes last.
func isCluster(object *unstructured.Unstructured) int {
	if object.GetKind() == "Cluster" {
		return 1
	}

	return 0
}

func replicas(t *testing.T, objects []*unstructured.Unstructured, kind string) any {
	t.Helper()

	for _, object := range objects {
		if object.GetKind() == kind {
			count, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas")
			NewWithT(t).Expect(err).NotTo(HaveOccurred())

			return count
		}
	}

	return nil
}
