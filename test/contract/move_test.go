// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/standin"
	"github.com/maesh-dev/ichor/test/tools"
)

// movedYAML is of every kind of Ichor's that users write, beside those of the Cluster.
const movedYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigPatch
metadata: {name: sysctls}
spec:
  layer: Cluster
  clusterSelector: {matchLabels: {site: lab}}
  documents:
    - kind: SysctlConfig
      sysctlConfig: {params: {vm.max_map_count: "262144"}}
---
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosStorage
metadata: {name: longhorn}
spec:
  clusterName: c
  machineSelector: {matchLabels: {role: worker}}
  preset: longhorn-v1
  volume: {type: Partition, diskSelector: disk.transport == "nvme", minSize: 100GiB}
`

// contract: status is lost in a move and comes back; bootstrap data is not made again, and neither are a cluster's secrets.
// contract: everything that belongs to a cluster is moved with it, and nothing is done while it is paused.
func TestMove(t *testing.T) {
	w := newWorld(t)

	type started struct {
		site *site
		err  error
	}

	starting := make(chan started, 1)

	go func() {
		s, err := startSite(context.WithoutCancel(t.Context()), home.admin)
		starting <- started{s, err}
	}()

	w.cluster()
	w.create(movedYAML)
	w.create(deploymentYAML)
	w.create(poolYAML)
	w.scale(2)

	machines := w.running(2)
	w.poolRuns(3)

	before := w.belongings()
	w.Expect(before.kinds()).To(ConsistOf("Secret", "TalosClusterConfig", "TalosConfig", "TalosConfigPatch", "TalosConfigTemplate", "TalosStorage"))

	target := <-starting
	w.Expect(target.err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(target.site.stop()).To(Succeed()) })

	w.move(target.site)

	there := w.at(target.site)
	for name, machine := range there.running(2) {
		w.Expect(machines).To(HaveKey(name), "no machine was replaced")
		w.Expect(machine.config.Status.RenderedHash).To(Equal(machines[name].config.Status.RenderedHash), name)
	}

	there.poolRuns(3)
	there.Eventually(func(g Gomega) { g.Expect(there.belongings().unlike(before)).To(BeEmpty()) }).Should(Succeed())
	w.Expect(slices.DeleteFunc(target.site.requests.in(w.namespace), func(request string) bool {
		return !strings.Contains(request, " secrets")
	})).To(BeEmpty(), "the manager there has no Secret to write")
	w.Expect(w.belongings().unlike(nil)).To(BeEmpty(), "nothing stays behind")

	// The cluster goes on there, with the secrets that it has.
	there.scale(3)

	for name, machine := range there.running(3) {
		w.Expect(strings.Contains(string(machine.data.Data["value"]), there.bundle().TrustdInfo.Token)).To(BeTrue(), name)
	}
}

// move moves the namespace with clusterctl, and looks how it is paused in between: clusterctl waits while an object blocks the move.
func (w *world) move(target *site) {
	w.t.Helper()

	clusterctl, err := tools.Path(w.t.Context(), tools.Clusterctl)
	w.Expect(err).NotTo(HaveOccurred())

	infrastructure := &unstructured.Unstructured{}
	infrastructure.SetGroupVersionKind(standin.ClusterKind)

	block := func(annotations map[string]string) {
		w.change(infrastructure, "c", func() { infrastructure.SetAnnotations(annotations) })
	}
	block(map[string]string{clusterctlv1.BlockMoveAnnotation: ""})

	command := exec.CommandContext(w.t.Context(), clusterctl, "move", "--namespace", w.namespace,
		"--kubeconfig", w.KubeconfigPath(), "--to-kubeconfig", target.KubeconfigPath())
	directory := w.t.TempDir()
	command.Env = append(os.Environ(), "HOME="+directory, "XDG_CONFIG_HOME="+directory, "CLUSTERCTL_DISABLE_VERSIONCHECK=true")

	output := &buffer{}
	command.Stdout, command.Stderr = output, output
	w.Expect(command.Start()).To(Succeed())

	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()

	w.Eventually(func(g Gomega) {
		configs := &bootstrapv1.TalosConfigList{}
		g.Expect(w.admin.List(w.t.Context(), configs, client.InNamespace(w.namespace))).To(Succeed())
		g.Expect(configs.Items).NotTo(BeEmpty())

		for i := range configs.Items {
			g.Expect(conditions.IsTrue(&configs.Items[i], clusterv1.PausedCondition)).To(BeTrue(), "%s\n%s", describe(&configs.Items[i]), output)
		}
	}).Should(Succeed())

	block(nil)
	w.Eventually(ended).Should(Receive(Not(HaveOccurred())), "%s", output)
}

// belongings are what Ichor has in a namespace, by kind and name: specs of what users and Cluster API write, status of TalosConfigs, and
// Secrets with values and annotations.
type belongings map[string]map[string]any

func (b belongings) kinds() []string {
	var kinds []string

	for key := range b {
		if kind, _, _ := strings.Cut(key, " "); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}

	return kinds
}

// unlike names what is not the same in both, and the part that differs.
func (b belongings) unlike(other belongings) []string {
	names := slices.Sorted(maps.Keys(b))
	for name := range other {
		if _, both := b[name]; !both {
			names = append(names, name)
		}
	}

	var unlike []string

	for _, name := range names {
		if b[name] == nil || other[name] == nil {
			unlike = append(unlike, name)

			continue
		}

		for part, value := range b[name] {
			if !equality.Semantic.DeepEqual(value, other[name][part]) {
				unlike = append(unlike, name+": "+part)
			}
		}
	}

	return unlike
}

func (w *world) belongings() belongings {
	w.t.Helper()

	found := belongings{}

	secrets := &corev1.SecretList{}
	w.list(secrets)

	for _, secret := range secrets.Items {
		if _, ours := secret.Labels[clusterv1.ClusterNameLabel]; ours {
			owner := ""
			if controller := metav1.GetControllerOf(&secret); controller != nil {
				owner = controller.Kind + " " + controller.Name
			}

			found["Secret "+secret.Name] = map[string]any{
				"data": secret.Data, "type": secret.Type, "annotations": secret.Annotations, "labels": secret.Labels, "controller": owner,
			}
		}
	}

	configs := &bootstrapv1.TalosConfigList{}
	w.list(configs)

	for _, config := range configs.Items {
		status := config.Status
		status.Conditions, status.ObservedGeneration = nil, 0
		found["TalosConfig "+config.Name] = map[string]any{"spec": config.Spec, "status": status}
	}

	for _, kind := range []string{"TalosClusterConfig", "TalosConfigPatch", "TalosConfigTemplate", "TalosStorage"} {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(bootstrapv1.GroupVersion.WithKind(kind))
		w.list(objects)

		for _, object := range objects.Items {
			found[kind+" "+object.GetName()] = map[string]any{"spec": object.Object["spec"]}
		}
	}

	return found
}
