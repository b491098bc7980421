// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/moving"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/consistency"
	"github.com/maesh-dev/ichor/internal/inputs"
)

// desk is a Reconciler on an API that is none, whose live reads may fail.
type desk struct {
	*WithT
	t      *testing.T
	client client.Client
	clock  *clocktesting.FakePassiveClock
	r      *Reconciler
	fault  error
	writes int
}

func newDesk(t *testing.T, objects ...client.Object) *desk {
	t.Helper()

	d := &desk{WithT: NewWithT(t), t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	scheme := runtime.NewScheme()

	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		d.Expect(add(scheme)).To(Succeed())
	}

	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&bootstrapv1.TalosClusterConfig{}).Build()
	d.client = interceptor.NewClient(api, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			d.writes++

			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
	live := interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if d.fault != nil {
				return d.fault
			}

			return c.Get(ctx, key, object, options...)
		},
	})

	reader := inputs.NewReader(d.client, live, api)
	d.r = &Reconciler{
		Client: d.client, APIReader: live, Inputs: reader, Labels: moving.NewLabeller(d.client, reader, d.clock),
		Secrets: clustersecrets.New(d.client, live, api, events.NewFakeRecorder(10), d.clock),
		objects: lru.New(10), secrets: lru.New(10), failing: reporting.NewFailing(d.clock),
		writer: reporting.Writer{Client: d.client, Deferrer: upToDate{}},
	}

	return d
}

// upToDate is the deferrer of a test whose client reads what was written.
type upToDate struct{ consistency.Deferrer }

func (upToDate) DeferNextReconcileUntilCacheUpToDate(metav1.Object, capicontroller.GroupVersionKindType, string) {
}

// reconcile returns the object as it is then.
func (d *desk) reconcile() (*bootstrapv1.TalosClusterConfig, error) {
	d.t.Helper()

	config := &bootstrapv1.TalosClusterConfig{}
	key := client.ObjectKey{Namespace: "ns", Name: "config"}
	_, err := d.r.Reconcile(d.t.Context(), ctrl.Request{NamespacedName: key})
	d.Expect(d.client.Get(d.t.Context(), key, config)).To(Succeed())

	return config, err
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}
}

// An API server that does not answer is told when that has lasted, once, and what was said of it goes with it.
func TestUnansweredReads(t *testing.T) {
	config := &bootstrapv1.TalosClusterConfig{ObjectMeta: named("config")}
	config.Spec.ClusterName = "c"
	config.Spec.Registries = []bootstrapv1.Registry{{
		Host: "registry.example.com", Username: "ichor", AuthSecretRef: &corev1.LocalObjectReference{Name: "registry"},
	}}

	d := newDesk(t, config, &corev1.Secret{ObjectMeta: named("registry"), Data: map[string][]byte{"password": []byte("hunter2")}})
	d.fault = apierrors.NewInternalError(errors.New("hunter2"))

	for range 10 {
		now, err := d.reconcile()
		d.Expect(err).To(MatchError(d.fault), "it is tried again")
		d.Expect(now.Status.Conditions).To(BeEmpty(), "a moment is not told")
	}

	d.clock.SetTime(d.clock.Now().Add(reporting.Patience))

	for range 10 {
		now, err := d.reconcile()
		d.Expect(err).To(MatchError(d.fault))

		for _, each := range []string{"Ready", "RegistriesResolved", "SecretsBundleAvailable"} {
			d.Expect(conditions.Get(now, each)).To(And(
				HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", "NotRead"), HaveField("Message", reporting.Unanswered)), each)
		}
	}

	d.Expect(d.writes).To(Equal(1))

	d.fault = nil
	now, err := d.reconcile()
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(conditions.IsTrue(now, "Ready")).To(BeTrue())
	d.Expect(conditions.IsTrue(now, "RegistriesResolved")).To(BeTrue())
}

// What was allowed once and is refused now is said before a move fails at it, beside what it would leave behind.
func TestNotCreatable(t *testing.T) {
	config := &bootstrapv1.TalosClusterConfig{ObjectMeta: named("config")}
	config.Spec.ClusterSelector = &metav1.LabelSelector{}
	config.Spec.SecretsRef = &corev1.LocalObjectReference{Name: "mine"}

	d := newDesk(t, config)
	now, err := d.reconcile()
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(conditions.Get(now, "Movable")).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "CannotBeCreated"),
		HaveField("Message", And(ContainSubstring("clusterctl move"), ContainSubstring("set clusterName")))))

	now.Spec.ClusterSelector, now.Spec.ClusterName = nil, "c"
	d.Expect(d.client.Update(t.Context(), now)).To(Succeed())

	now, err = d.reconcile()
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(conditions.Get(now, "Movable")).To(BeNil(), "there is nothing to move")
}
