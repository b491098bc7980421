// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// failing is a client of an API server that refuses some of what it is asked.
type failing struct {
	client.Client

	list, apply func(kind string) error
}

func (f failing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if f.list != nil {
		if err := f.list(kindOf(list)); err != nil {
			return err
		}
	}

	return f.Client.List(ctx, list, options...)
}

func (f failing) Apply(ctx context.Context, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	if object, ok := applied.(client.Object); ok && f.apply != nil {
		if err := f.apply(object.GetObjectKind().GroupVersionKind().Kind); err != nil {
			return err
		}
	}

	return f.Client.Apply(ctx, applied, options...)
}

func kindOf(object runtime.Object) string {
	kinds, _, err := storeScheme().ObjectKinds(object)
	if err != nil {
		return ""
	}

	return kinds[0].Kind
}

func failures(t *testing.T, action string) float64 {
	t.Helper()

	var counter prometheus.Metric = actionsCounter.WithLabelValues(action, resultFailure)

	out := &dto.Metric{}
	if err := counter.Write(out); err != nil {
		t.Fatal(err)
	}

	return out.GetCounter().GetValue()
}

// grown is a control plane of one machine, and its manager.
func grown(t *testing.T) (*life, *process) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())

	l := newLife(t, 1, newLifeSecrets(t), 1)
	t.Cleanup(l.end)

	l.storm = false
	l.finish(1, false)

	return l, l.processes[0]
}

// A machine that cannot be made, for however long, does not keep labels from reaching those that there are.
func TestSettlesBesideAFailure(t *testing.T) {
	l, p := grown(t)

	p.Client = failing{Client: p.Client, apply: func(kind string) error {
		if kind != "SimMachine" {
			return nil
		}

		return apierrors.NewForbidden(schema.GroupResource{Resource: "simmachines"}, "", errors.New("exceeded quota"))
	}}

	tcp := l.controlPlane()
	before := tcp.DeepCopy()
	tcp.Spec.Replicas = new(int32(3))
	tcp.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"tier": "gold"}
	l.must(l.store.Patch(l.ctx, tcp, client.MergeFrom(before)))

	for range 5 {
		l.round()
	}

	if machines := l.machines(); len(machines) != 1 || machines[0].Labels["tier"] != "gold" {
		t.Errorf("%d machines are there, the first with the labels %v\n%s", len(machines), machines[0].Labels, l)
	}

	if plan := l.controlPlane().Status.Plan; plan.Action != "CreateMachine" || !strings.Contains(plan.Message, "exceeded quota") {
		t.Errorf("the plan is %s: %s\n%s", plan.Action, plan.Message, l)
	}
}

// A machine of which a part is refused leaves nothing behind, however often it is tried: not the infrastructure machine, which costs money, nor
// the TalosConfig. Nothing is old enough to be swept.
func TestRefusedMachineLeavesNothing(t *testing.T) {
	for _, refused := range []string{talosConfigKind, machineKind} {
		t.Run(refused, func(t *testing.T) {
			l, p := grown(t)
			attempts := 0

			p.Client = failing{Client: p.Client, apply: func(kind string) error {
				if kind != refused {
					return nil
				}

				attempts++

				return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("exceeded quota"))
			}}

			tcp := l.controlPlane()
			before := tcp.DeepCopy()
			tcp.Spec.Replicas = new(int32(3))
			l.must(l.store.Patch(l.ctx, tcp, client.MergeFrom(before)))

			for range 5 {
				p.reconcile()
			}

			if attempts == 0 {
				t.Fatalf("no machine was tried\n%s", l)
			}

			for kind, n := range l.parts() {
				if n != 1 {
					t.Errorf("after %d attempts %d objects %s are there, want the first machine's\n%s", attempts, n, kind, l)
				}
			}
		})
	}
}

// What a manager leaves that hears nothing of a Machine, and does not know whether it was made, goes by itself when it is old.
func TestLeftoversGo(t *testing.T) {
	l, p := grown(t)
	well := p.Client

	p.Client = failing{Client: well, apply: func(kind string) error {
		if kind != machineKind {
			return nil
		}

		return context.DeadlineExceeded
	}}

	scale := func(n int32) {
		tcp := l.controlPlane()
		before := tcp.DeepCopy()
		tcp.Spec.Replicas = &n
		l.must(l.store.Patch(l.ctx, tcp, client.MergeFrom(before)))
		p.reconcile()
	}

	scale(3)

	for kind, n := range l.parts() {
		if n != 2 {
			t.Fatalf("%d objects %s are there, want what may be a Machine's\n%s", n, kind, l)
		}
	}

	p.Client = well
	scale(1)

	for begin := l.clock.Now(); l.clock.Now().Before(begin.Add(2 * sweepAge)); {
		l.round()
	}

	for kind, n := range l.parts() {
		if n != 1 {
			t.Errorf("%d objects %s are there, want the first machine's\n%s", n, kind, l)
		}
	}
}

// parts are how many TalosConfigs and infrastructure machines there are.
func (l *life) parts() map[string]int {
	out := map[string]int{}

	for _, kind := range []schema.GroupVersionKind{bootstrapv1.GroupVersion.WithKind(talosConfigKind), infrav1.GroupVersion.WithKind("SimMachine")} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		l.must(l.store.List(l.ctx, list))
		out[kind.Kind] = len(list.Items)
	}

	return out
}

// A manager that cannot read what there is says so where people and alerts look: once, and in words that are not the API server's.
func TestCannotObserve(t *testing.T) {
	l, p := grown(t)

	const words = "etcdserver: secret-ish words"

	well := p.Client
	p.Client = failing{Client: well, list: func(kind string) error {
		if kind != "MachineList" {
			return nil
		}

		return apierrors.NewInternalError(errors.New(words))
	}}

	counted := failures(t, actionObserve)
	p.reconcile()

	if plan := l.controlPlane().Status.Plan; plan.Reason != controlplanev1.PlanUpToDateReason {
		t.Errorf("after one failure the plan is %s: %s", plan.Reason, plan.Message)
	}

	p.reconcile()
	p.reconcile()

	told := l.controlPlane()
	if plan := told.Status.Plan; plan.Reason != controlplanev1.PlanObservationFailedReason || plan.Action != "Wait" || strings.Contains(plan.Message, words) {
		t.Errorf("the plan is %s %s: %s", plan.Action, plan.Reason, plan.Message)
	}

	p.reconcile()
	p.reconcile()

	if again := l.controlPlane(); again.ResourceVersion != told.ResourceVersion {
		t.Error("it is written with each try")
	}

	if got := failures(t, actionObserve) - counted; got != 5 {
		t.Errorf("%v failures are counted, want 5", got)
	}

	p.Client = well
	l.round()

	if plan := l.controlPlane().Status.Plan; plan.Reason != controlplanev1.PlanUpToDateReason {
		t.Errorf("when it can be read again the plan is %s: %s", plan.Reason, plan.Message)
	}
}

// Two TalosClusterConfigs say two ways to the nodes. It is told, and none is taken.
func TestTwoClusterConfigs(t *testing.T) {
	l, p := grown(t)

	for _, name := range []string{"b", "a"} {
		config := &bootstrapv1.TalosClusterConfig{}
		config.Namespace, config.Name, config.Spec.ClusterName = lifeNamespace, name, lifeCluster
		l.create(config)
	}

	p.look()
	l.clock.Step(healthPeriod)
	p.reconcile()

	const want = "TalosClusterConfigs a, b both target Cluster prod"

	if plan := l.controlPlane().Status.Plan; !strings.Contains(plan.Message, want) {
		t.Errorf("the plan is %s: %s, want %q in it", plan.Reason, plan.Message, want)
	}

	l.clock.Step(p.GracePeriod + healthPeriod)
	p.reconcile()

	found := ""

	for _, condition := range l.machines()[0].Status.Conditions {
		if condition.Type == controlplanev1.MachineTalosHealthyCondition {
			found = string(condition.Status) + " " + condition.Message
		}
	}

	if !strings.HasPrefix(found, "Unknown ") || !strings.Contains(found, want) {
		t.Errorf("%s is %q, want Unknown and %q", controlplanev1.MachineTalosHealthyCondition, found, want)
	}
}
