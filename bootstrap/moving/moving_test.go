// SPDX-License-Identifier: Apache-2.0

package moving

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
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// world has a Secret "s", and counts the writes that a Labeller makes.
type world struct {
	*WithT
	t        *testing.T
	client   client.Client
	clock    *clocktesting.FakePassiveClock
	labeller *Labeller
	writes   int
	refusal  error
}

var secretKey = machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: "s"}

func newWorld(t *testing.T) *world {
	t.Helper()

	w := &world{WithT: NewWithT(t), t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	scheme := runtime.NewScheme()
	w.Expect(corev1.AddToScheme(scheme)).To(Succeed())

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "uid", Labels: map[string]string{"team": "a"}}}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(secret).Build()
	counting := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, _ client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			w.writes++

			if w.refusal != nil {
				return w.refusal
			}

			return w.client.Patch(ctx, object, patch, options...)
		},
	})
	w.labeller = NewLabeller(counting, inputs.NewReader(w.client, w.client, w.client), w.clock)

	return w
}

// says labels and checks the condition and how often something was written in all.
func (w *world) says(writes int, status metav1.ConditionStatus, reason string, paused ...string) {
	w.t.Helper()

	got, err := w.labeller.Label(w.t.Context(), "ns", paused, secretKey, machineconfig.ObjectKey{Kind: machineconfig.KindConfigMap, Name: "none"})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(got).NotTo(BeNil())
	w.Expect(string(got.Status)+" "+got.Reason).To(Equal(string(status)+" "+reason), got.Message)
	w.Expect(w.writes).To(Equal(writes))

	if status == metav1.ConditionFalse {
		w.Expect(got.Message).To(And(HavePrefix("Secret s: "), ContainSubstring(label)))
	}
}

func (w *world) labels() map[string]string {
	w.t.Helper()

	secret := &corev1.Secret{}
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "s"}, secret)).To(Succeed())

	return secret.Labels
}

// restore does what an operator does that keeps its own labels.
func (w *world) restore() {
	w.t.Helper()

	secret := &corev1.Secret{}
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "s"}, secret)).To(Succeed())

	secret.Labels = map[string]string{"team": "a"}
	w.Expect(w.client.Update(w.t.Context(), secret)).To(Succeed())
}

// The label is written once, and nothing else is changed. With whoever takes it away nobody fights.
func TestLabelIsWrittenOnce(t *testing.T) {
	w := newWorld(t)
	w.says(1, metav1.ConditionTrue, bootstrapv1.MovableReason)
	w.Expect(w.labels()).To(Equal(map[string]string{"team": "a", label: ""}))
	w.says(1, metav1.ConditionTrue, bootstrapv1.MovableReason)

	for range 3 {
		w.restore()
		w.clock.SetTime(w.clock.Now().Add(24 * time.Hour))
		w.says(1, metav1.ConditionFalse, bootstrapv1.MoveLabelRemovedReason)
	}

	// The user has set it where it belongs.
	secret := &corev1.Secret{}
	w.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "s"}, secret)).To(Succeed())
	secret.Labels[label] = "yes"
	w.Expect(w.client.Update(t.Context(), secret)).To(Succeed())
	w.says(1, metav1.ConditionTrue, bootstrapv1.MovableReason)
	w.Expect(w.labels()).To(HaveKeyWithValue(label, "yes"))
}

// Nothing is written of what may be on its way to another management cluster.
func TestLabelWaitsForThePause(t *testing.T) {
	w := newWorld(t)
	w.says(0, metav1.ConditionFalse, bootstrapv1.MovePausedReason, "c")
	w.Expect(w.labels()).NotTo(HaveKey(label))
	w.says(1, metav1.ConditionTrue, bootstrapv1.MovableReason)
}

// Without the right, or against a webhook, the manager does without, and tries again after a while. The words of a refusal may quote a Secret.
func TestLabelRefused(t *testing.T) {
	for answer, refusal := range map[string]error{
		"Forbidden": apierrors.NewForbidden(corev1.Resource("secrets"), "s", errors.New("its value is hunter2")),
		"code 400":  &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 400, Message: "its value is hunter2"}},
	} {
		t.Run(answer, func(t *testing.T) {
			w := newWorld(t)
			w.refusal = refusal

			for range 3 {
				w.says(1, metav1.ConditionFalse, bootstrapv1.MoveLabelRefusedReason)
			}

			got, err := w.labeller.Label(t.Context(), "ns", nil, secretKey)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(got.Message).To(And(ContainSubstring(answer), Not(ContainSubstring("hunter2"))))

			w.refusal = nil
			w.clock.SetTime(w.clock.Now().Add(refusalPause))
			w.says(2, metav1.ConditionTrue, bootstrapv1.MovableReason)
		})
	}
}

// An API server that does not answer is tried again, and a version that is not the newest is no fault.
func TestLabelFails(t *testing.T) {
	w := newWorld(t)
	w.refusal = apierrors.NewInternalError(errors.New("failed calling webhook: its value is hunter2"))

	_, err := w.labeller.Label(t.Context(), "ns", nil, secretKey)
	w.Expect(err).To(MatchError(And(ContainSubstring("Secret s: set the label"), Not(ContainSubstring("hunter2")))))

	w.refusal = apierrors.NewConflict(corev1.Resource("secrets"), "s", errors.New("changed"))
	w.says(2, metav1.ConditionTrue, bootstrapv1.MovableReason)

	w.refusal = nil
	w.says(3, metav1.ConditionTrue, bootstrapv1.MovableReason)
	w.Expect(w.labels()).To(HaveKey(label))
}

// A write that goes on to fail is told where what it is for is told, with what else is lacking, and goes on to be tried. When it succeeds, that is over.
func TestLabelGoesOnToFail(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "labelled", UID: "labelled", Labels: map[string]string{label: ""},
	}})).To(Succeed())
	w.refusal = apierrors.NewInternalError(errors.New("failed calling webhook: its value is hunter2"))

	try := func() (*metav1.Condition, error) {
		return w.labeller.Label(t.Context(), "ns", nil, secretKey, machineconfig.ObjectKey{Kind: machineconfig.KindConfigMap, Name: "labelled"})
	}

	got, err := try()
	w.Expect(got).To(BeNil(), "what was said stays")
	w.Expect(err).To(HaveOccurred())

	for range 2 {
		w.clock.SetTime(w.clock.Now().Add(reporting.Patience))

		got, err = try()
		w.Expect(err).To(MatchError(ContainSubstring("Secret s: set the label")))
		w.Expect(got).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", bootstrapv1.MoveLabelNotSetReason)))
		w.Expect(got.Message).To(Equal("Secret s: has no label " + label + ", which cannot be set: " + reporting.Unanswered + "; it is tried again"))
	}

	w.Expect(w.writes).To(Equal(3))

	w.refusal = nil
	w.says(4, metav1.ConditionTrue, bootstrapv1.MovableReason)
}

// An object that refers to nothing that exists says nothing.
func TestLabelOfNothing(t *testing.T) {
	w := newWorld(t)

	got, err := w.labeller.Label(t.Context(), "ns", nil, machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: "none"})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(got).To(BeNil())
}
