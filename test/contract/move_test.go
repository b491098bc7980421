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
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/standin"
	"github.com/maesh-dev/ichor/test/tools"
)

// What users keep in Secrets of their own, to which the objects below refer.
const (
	movedPassword = "correct-horse-battery-staple"
	movedKey      = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="
)

// usersObjects are an object of every kind of Ichor's that they write, beside those of the Cluster, and what these refer to.
func usersObjects() []builder.Builder {
	sysctls := builder.Patch("", "sysctls", builder.Sysctl("vm.max_map_count", "262144")).With(func(patch *bootstrapv1.TalosConfigPatch) {
		patch.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"site": "lab"}}
	})

	return []builder.Builder{
		builder.These{
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "registry"}, StringData: map[string]string{"password": movedPassword}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: builder.WireguardSecret}, StringData: map[string]string{builder.WireguardKey: movedKey}},
		},
		builder.References("c", "worker"), sysctls,
	}
}

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
	w.create(usersObjects()...)

	settings := &bootstrapv1.TalosClusterConfig{}
	w.change(settings, "c", func() {
		settings.Spec.Registries = []bootstrapv1.Registry{{
			Host: "registry.example.com", Username: "ichor", AuthSecretRef: &corev1.LocalObjectReference{Name: "registry"},
		}}
	})
	w.create(workers())
	w.create(pool())
	w.scale(2)

	machines := w.running(2)
	w.poolRuns(3)

	// What is referred to is marked for the move by the reports on the kinds that refer to it.
	w.Eventually(func(g Gomega) {
		found := w.belongings()
		g.Expect(found).To(And(HaveKey("Secret registry"), HaveKey("Secret wireguard"), HaveKey("ConfigMap nfs")))
	}).Should(Succeed())

	before := w.belongings()
	w.Expect(before.kinds()).To(ConsistOf("ConfigMap", "Secret", "TalosClusterConfig", "TalosConfig", "TalosConfigPatch", "TalosConfigTemplate", "TalosStorage"))

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
		return !strings.Contains(request, " secrets") && !strings.Contains(request, " configmaps")
	})).To(BeEmpty(), "the manager there has no Secret or ConfigMap to write")
	w.Expect(there.told()).To(BeEmpty(), "nothing was rendered or made anew")
	w.Expect(w.belongings().unlike(nil)).To(BeEmpty(), "nothing stays behind")

	// The cluster goes on there, with the secrets that it has.
	there.scale(3)

	for name, machine := range there.running(3) {
		for what, text := range map[string]string{
			"machine token": there.bundle().TrustdInfo.Token, "password": movedPassword, "key": movedKey, "setting": builder.NFSSetting,
		} {
			// A failure must not print the config.
			w.Expect(strings.Contains(string(machine.data.Data["value"]), text)).To(BeTrue(), "%s has no %s", name, what)
		}
	}
}

// told are the reasons of the events that Ichor has written in the namespace.
func (w *world) told() []string {
	w.t.Helper()

	events := &eventsv1.EventList{}
	w.list(events)

	var reasons []string

	for _, event := range events.Items {
		if event.ReportingController == installation.Bootstrap.Account {
			reasons = append(reasons, event.Regarding.Kind+" "+event.Regarding.Name+": "+event.Reason)
		}
	}

	return reasons
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

// belongings are what Ichor has in a namespace, by kind and name: specs of what users and Cluster API write, status of TalosConfigs,
// Secrets with values and annotations, and what is marked to be moved with them.
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
		_, ours := secret.Labels[clusterv1.ClusterNameLabel]
		if _, referred := secret.Labels[clusterctlv1.ClusterctlMoveLabel]; ours || referred {
			owner := ""
			if controller := metav1.GetControllerOf(&secret); controller != nil {
				owner = controller.Kind + " " + controller.Name
			}

			found["Secret "+secret.Name] = map[string]any{
				"data": secret.Data, "type": secret.Type, "annotations": secret.Annotations, "labels": secret.Labels, "controller": owner,
			}
		}
	}

	settings := &corev1.ConfigMapList{}
	w.list(settings, client.HasLabels{clusterctlv1.ClusterctlMoveLabel})

	for _, each := range settings.Items {
		found["ConfigMap "+each.Name] = map[string]any{"data": each.Data, "labels": each.Labels}
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
