// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/test/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/test/harness"
)

// sweepWorld is a control plane on a real API server, without anybody else: nobody collects garbage, and nothing goes but what is swept.
type sweepWorld struct {
	*WithT

	t       *testing.T
	ctx     context.Context //nolint:containedctx // That of the test.
	client  client.WithWatch
	cluster *clusterv1.Cluster
	plane   *controlplanev1.TalosControlPlane
}

func newSweepWorld(t *testing.T) *sweepWorld {
	t.Helper()

	w := &sweepWorld{WithT: NewWithT(t), t: t, ctx: t.Context()}
	bases := filepath.Join("..", "..", "..", "config")

	crds, err := harness.ReadCRDs(filepath.Join(bases, "bootstrap", "crd", "bases"), filepath.Join(bases, "controlplane", "crd", "bases"))
	w.Expect(err).NotTo(HaveOccurred())

	capi, err := harness.CAPICRDs(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())

	mc := harness.ForTest(t, harness.Options{CRDs: append(append(crds, capi...), harness.InfrastructureCRDs()...)})

	w.client, err = client.NewWithWatch(mc.Config(), client.Options{Scheme: storeScheme()})
	w.Expect(err).NotTo(HaveOccurred())

	template := builder.InfrastructureMachineTemplate("ns", "cp").Build()
	w.cluster = &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod"},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}},
	}
	w.plane = &controlplanev1.TalosControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp"},
		Spec:       controlplanev1.TalosControlPlaneSpec{Replicas: new(int32(3)), Version: "v1.36.1"},
	}
	w.plane.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: builder.InfrastructureGroupVersion.Group, Kind: template.GetKind(), Name: "cp",
	}

	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, template, w.cluster, w.plane)

	return w
}

func (w *sweepWorld) create(objects ...client.Object) {
	w.t.Helper()

	for _, object := range objects {
		w.Expect(w.client.Create(w.ctx, object)).To(Succeed(), "%T %s", object, object.GetName())
	}
}

// manager is one that has just started, and sees all that there is. It reads and writes through a client.
func (w *sweepWorld) manager(through client.Client, now time.Time) (*Reconciler, *observation) {
	w.t.Helper()

	r := &Reconciler{Client: through, APIReader: through, deferrer: &deferring{}}
	seen := &observation{
		controlPlane: w.plane, cluster: w.cluster, clusterName: w.cluster.Name, plane: newMemory().of(client.ObjectKeyFromObject(w.plane), w.plane.UID),
		snapshot: rollout.Snapshot{Now: now},
	}
	w.Expect(r.observeMachines(w.ctx, seen)).To(Succeed())
	w.Expect(r.observeTemplate(w.ctx, seen)).To(Succeed())
	w.Expect(seen.missing).To(BeEmpty())

	return r, seen
}

// sweep has another manager sweep, so long after now.
func (w *sweepWorld) sweep(after time.Duration) {
	w.t.Helper()

	r, seen := w.manager(w.client, time.Now().Add(after))
	w.Expect(r.sweep(w.ctx, seen)).To(Succeed())
}

// there are the TalosConfigs, infrastructure machines and Machines by kind and name, with the version that each has.
func (w *sweepWorld) there() map[string]string {
	w.t.Helper()

	all := map[string]string{}

	for _, kind := range []struct{ group, version, kind string }{
		{bootstrapv1.GroupVersion.Group, bootstrapv1.GroupVersion.Version, talosConfigKind},
		{builder.InfrastructureGroupVersion.Group, builder.InfrastructureGroupVersion.Version, builder.GenericInfrastructureMachineKind},
		{clusterv1.GroupVersion.Group, clusterv1.GroupVersion.Version, machineKind},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(kind.group + "/" + kind.version)
		list.SetKind(kind.kind + "List")
		w.Expect(w.client.List(w.ctx, list, client.InNamespace("ns"))).To(Succeed())

		for i := range list.Items {
			all[kind.kind+" "+list.Items[i].GetName()] = list.Items[i].GetResourceVersion()
		}
	}

	return all
}

// dying is a manager that ends at its so many'th write, before it or when it is done: nothing of it gets through any more.
type dying struct {
	at    int
	after bool

	writes int
	dead   bool
}

func (d *dying) look() error {
	if d.dead {
		return errKilled
	}

	return nil
}

func (d *dying) write(do func() error) error {
	if err := d.look(); err != nil {
		return err
	}

	d.writes++
	d.dead = d.writes == d.at

	if d.dead && !d.after {
		return errKilled
	}

	if err := do(); err != nil {
		return err
	}

	return d.look()
}

func (d *dying) through(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := d.look(); err != nil {
				return err
			}

			return c.Get(ctx, key, object, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			return d.write(func() error { return c.Apply(ctx, applied, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return d.write(func() error { return c.Delete(ctx, object, options...) })
		},
	})
}

// What was begun and not ended goes, and nothing else.
func TestSweep(t *testing.T) {
	w := newSweepWorld(t)

	t.Run("a manager that died", func(t *testing.T) { w.in(t).afterDeath() })
	t.Run("a name that is taken", func(t *testing.T) { w.in(t).takesNoName() })
	t.Run("what others own", func(t *testing.T) { w.in(t).leavesOthers() })
	t.Run("the control plane goes and its Machines stay", func(t *testing.T) { w.in(t).goesAlone() })
}

// in is the world in another test.
func (w *sweepWorld) in(t *testing.T) *sweepWorld {
	t.Helper()

	out := *w
	out.t, out.ctx, out.WithT = t, t.Context(), NewWithT(t)

	return &out
}

// What a machine is made of is written in several steps, and the manager may end at each. The next one knows nothing of it, and removes what was
// begun when it is too old to be about to be ended: not before, and not when the Machine is there.
func (w *sweepWorld) afterDeath() {
	w.t.Helper()

	made := 0

	for step := 1; ; step++ {
		for _, after := range []bool{false, true} {
			d := &dying{at: step, after: after}
			r, seen := w.manager(d.through(w.client), time.Now())
			err := r.createMachine(w.ctx, seen, rollout.CreateMachine{})

			if !d.dead {
				// Each of infrastructure machine and TalosConfig is written three times, the Machine once.
				w.Expect(err).NotTo(HaveOccurred())
				w.Expect(step).To(Equal(8))
				w.Expect(made).To(Equal(1))
				w.clear()

				return
			}

			what := fmt.Sprintf("it ended at write %d, done: %t", step, after)
			w.Expect(err).To(HaveOccurred(), what)

			written := step
			if !after {
				written--
			}

			left := w.there()
			w.Expect(left).To(HaveLen((written+2)/3), what)
			w.sweep(time.Minute)
			w.Expect(w.there()).To(Equal(left), what+": it is swept too early")
			w.sweep(3 * time.Minute)

			if len(left) == 3 {
				made++

				w.Expect(w.there()).To(Equal(left), what+": what belongs to a Machine is swept")
				w.clear()

				continue
			}

			w.Expect(w.there()).To(BeEmpty(), what)
		}
	}
}

// clear removes everything that was made.
func (w *sweepWorld) clear() {
	w.t.Helper()

	for _, object := range []client.Object{&clusterv1.Machine{}, &bootstrapv1.TalosConfig{}, builder.InfrastructureMachine("ns", "any").Build()} {
		w.Expect(w.client.DeleteAllOf(w.ctx, object, client.InNamespace("ns"))).To(Succeed())
	}

	w.Expect(w.there()).To(BeEmpty())
}

// What looks like something that was begun and is not, or is not ours, is left as it is, of each of the kinds.
func (w *sweepWorld) leavesOthers() {
	w.t.Helper()

	ours := referenceTo(w.plane)
	machine := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: machineKind, Name: "m", UID: "m", Controller: new(true)}
	another := ours
	another.Name, another.UID = "another", "another"
	earlier := ours
	earlier.UID = "earlier"

	// What is there by what is said of it, but for the labels, which all have.
	objects := map[string]func(client.Object){
		"begun":               func(o client.Object) { o.SetOwnerReferences([]metav1.OwnerReference{ours}) },
		"of-a-user":           func(client.Object) {},
		"of-another":          func(o client.Object) { o.SetOwnerReferences([]metav1.OwnerReference{another}) },
		"of-an-earlier-one":   func(o client.Object) { o.SetOwnerReferences([]metav1.OwnerReference{earlier}) },
		"of-a-machine":        func(o client.Object) { o.SetOwnerReferences([]metav1.OwnerReference{ours, machine}) },
		"of-a-late-machine":   func(o client.Object) { o.SetOwnerReferences([]metav1.OwnerReference{ours}) },
		"taken-in-the-moment": func(o client.Object) { o.SetOwnerReferences([]metav1.OwnerReference{ours}) },
		"of-another-cluster": func(o client.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{ours})
			o.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "another", clusterv1.MachineControlPlaneLabel: ""})
		},
		"of-a-worker": func(o client.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{ours})
			o.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "prod"})
		},
		"going": func(o client.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{ours})
			o.SetFinalizers([]string{"example.com/slow"})
		},
	}

	for name, say := range objects {
		for _, object := range []client.Object{&bootstrapv1.TalosConfig{}, builder.InfrastructureMachine("ns", name).Build()} {
			object.SetNamespace("ns")
			object.SetName(name)
			object.SetLabels(labelsFor(w.plane, "prod"))
			say(object)
			w.create(object)

			if len(object.GetFinalizers()) > 0 {
				w.Expect(w.client.Delete(w.ctx, object)).To(Succeed())
			}
		}
	}

	// The cache is from before this one was made.
	taking := interceptor.NewClient(w.client, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if object.GetName() == "taken-in-the-moment" {
				now, _ := object.DeepCopyObject().(client.Object)
				before, _ := object.DeepCopyObject().(client.Object)
				now.SetOwnerReferences([]metav1.OwnerReference{ours, machine})
				w.Expect(c.Patch(ctx, now, client.MergeFrom(before))).To(Succeed())
			}

			return c.Delete(ctx, object, options...)
		},
	})
	r, seen := w.manager(taking, time.Now().Add(sweepAge+time.Minute))

	late := newMachine(w.plane, "prod", "of-a-late-machine", rollout.CreateMachine{})
	late.Spec.Bootstrap.DataSecretName = new("late")
	late.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: builder.InfrastructureGroupVersion.Group, Kind: builder.GenericInfrastructureMachineKind, Name: late.Name,
	}
	w.create(late)

	before := w.there()

	// Who is met at the last moment has written first, and is looked at again.
	err := r.sweep(w.ctx, seen)
	w.Expect(err).To(MatchError(ContainSubstring("taken-in-the-moment")))
	w.Expect(err).NotTo(MatchError(ContainSubstring("begun")))
	w.sweep(sweepAge + time.Minute)

	for name, version := range before {
		kind, of, _ := strings.Cut(name, " ")

		switch now, there := w.there()[name]; {
		case of == "begun" && there:
			w.t.Errorf("%s %s is there", kind, of)
		case of != "begun" && !there:
			w.t.Errorf("%s %s is gone", kind, of)
		case of != "begun" && of != "taken-in-the-moment" && now != version:
			w.t.Errorf("%s %s was changed", kind, of)
		}
	}
}

// takesNoName has an object of each kind have the only name that there is: applying to it would change it, and cleaning up remove it.
func (w *sweepWorld) takesNoName() {
	w.t.Helper()
	w.clear()

	plane := w.plane
	defer func() { w.plane = plane }()

	w.plane = plane.DeepCopy()
	w.plane.Spec.MachineNaming.Template = "only"

	machine := newMachine(w.plane, "prod", "only", rollout.CreateMachine{})
	machine.Spec.Bootstrap.DataSecretName = new("only")
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: builder.InfrastructureGroupVersion.Group, Kind: builder.GenericInfrastructureMachineKind, Name: "only",
	}
	config := &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "only"}}

	for _, object := range []client.Object{machine, config, builder.InfrastructureMachine("ns", "only").Build()} {
		w.create(object)

		before := w.there()
		r, seen := w.manager(w.client, time.Now())

		err := r.createMachine(w.ctx, seen, rollout.CreateMachine{})
		w.Expect(err).To(MatchError(ContainSubstring("spec.machineNaming.template gives names that are taken")), "%T", object)
		w.Expect(w.there()).To(Equal(before), "%T", object)
		w.clear()
	}
}

// goesAlone deletes a control plane as a user does who keeps the machines. There is no garbage collector here: it never gets further.
func (w *sweepWorld) goesAlone() {
	w.t.Helper()

	plane := w.plane.DeepCopy()
	plane.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: "alone", Finalizers: []string{controlplanev1.TalosControlPlaneFinalizer}}
	w.create(plane)
	w.Expect(w.client.Delete(w.ctx, plane, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(plane), plane)).To(Succeed())

	// A cache that does not know of the deletion yet sees a Machine without an owner: it must not be ours again, and be deleted then.
	machine := newMachine(plane, "prod", "cp-1", rollout.CreateMachine{})
	machine.OwnerReferences, machine.Spec.Bootstrap.DataSecretName = nil, new("cp-1")
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: builder.InfrastructureGroupVersion.Group, Kind: builder.GenericInfrastructureMachineKind, Name: "cp-1",
	}
	w.create(machine)

	r, seen := w.manager(w.client, time.Now())
	seen.controlPlane = plane.DeepCopy()
	seen.controlPlane.DeletionTimestamp = nil
	w.Expect(r.adopt(w.ctx, seen, "cp-1")).To(MatchError(ContainSubstring("the control plane is being deleted")))
	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
	w.Expect(machine.OwnerReferences).To(BeEmpty())

	seen.controlPlane = w.plane
	w.Expect(r.adopt(w.ctx, seen, "cp-1")).To(Succeed())
	w.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
	w.Expect(metav1.IsControlledBy(machine, w.plane)).To(BeTrue())

	decide := func() rollout.Decision {
		seen := &observation{controlPlane: plane, cluster: w.cluster}

		return rollout.Plan(rollout.Snapshot{
			Now: time.Now(), Cluster: clusterOf(w.cluster), ControlPlane: seen.controlPlaneOf(), Machines: []rollout.Machine{{Name: "cp-1", Ours: true, Hook: true}},
		})
	}

	w.Expect(decide().Action).To(Equal(rollout.Wait{}))

	plane.Finalizers = []string{controlplanev1.TalosControlPlaneFinalizer}
	w.Expect(decide().Action).To(Equal(rollout.ReleaseHooks{Machines: []string{"cp-1"}}), "what is deleted in another way takes its Machines with it")
}
