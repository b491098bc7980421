// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
)

// A user asks for a new client certificate by an annotation: once for each value, and once more when it has been removed and set again.
func TestKubeconfigIsRotated(t *testing.T) {
	w := newKubeconfigWorld(t)
	w.ensure()
	w.told("KubeconfigCreated")

	for _, value := range []string{"leaked", "leaked again", ""} {
		before := w.content()
		w.ask(value)
		w.ensure()

		after := w.content()
		if after == before {
			t.Fatalf("%q: the kubeconfig is the same", value)
		}

		if why := stale([]byte(after), w.cluster, w.authority, time.Now()); why != "" {
			t.Errorf("%q: %s", value, why)
		}

		w.told("KubeconfigRenewed Made a new kubeconfig in Secret prod-kubeconfig: the annotation controlplane.ichor.maesh.dev/rotate asks for it")

		// Once.
		version := w.secret().ResourceVersion
		w.ensure()

		if w.secret().ResourceVersion != version {
			t.Errorf("%q: it was written again", value)
		}
	}

	before := w.content()
	w.change(func(object *corev1.Secret) { delete(object.Annotations, controlplanev1.RotateAnnotation) })
	w.ensure()

	if _, noted := w.secret().Annotations[controlplanev1.RotatedAnnotation]; noted || w.content() != before {
		t.Errorf("a request that was taken back: noted %t", noted)
	}

	w.ask("")
	w.ensure()

	if w.content() == before {
		t.Error("the same value after the annotation was removed: the kubeconfig is the same")
	}
}

// What cannot be rotated is left as it is, and it is told what to do: of one that is immutable, and of a user's own, which is none of ours.
func TestKubeconfigIsNotRotated(t *testing.T) {
	w := newKubeconfigWorld(t)
	w.ensure()
	w.change(func(object *corev1.Secret) { object.Immutable = new(true) })
	w.ensure()

	before := w.secret()
	w.ask("leaked")

	const want = "secret prod-kubeconfig: the annotation controlplane.ichor.maesh.dev/rotate asks for it, but the Secret is immutable: delete it, and a new one is made"

	if err := w.Reconciler.ensureKubeconfig(t.Context(), w.seen()); err == nil || err.Error() != want {
		t.Errorf("immutable: %v", err)
	}

	if _, noted := w.secret().Annotations[controlplanev1.RotatedAnnotation]; noted || w.content() != string(before.Data["value"]) {
		t.Errorf("immutable: noted %t", noted)
	}

	mine := before.DeepCopy()
	mine.Type, mine.Immutable, mine.ResourceVersion = corev1.SecretTypeOpaque, nil, ""
	mine.Annotations = map[string]string{controlplanev1.RotateAnnotation: "leaked"}

	if err := w.Client.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}

	if err := w.Client.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}

	const users = "Secret prod-kubeconfig is a user's own and is left as it is, although the annotation controlplane.ichor.maesh.dev/rotate asks for it: " +
		"delete it to have a new one made, or remove the annotation"

	told := func(want string) {
		t.Helper()

		seen := w.seen()
		if seen.kubeconfigFault, seen.kubeconfigLooked = w.Reconciler.ensureKubeconfig(t.Context(), seen), true; seen.kubeconfigFault != nil {
			t.Fatal(seen.kubeconfigFault)
		}

		if got := certificatesCondition(seen); got.Status != metav1.ConditionTrue || got.Message != want {
			t.Errorf("%s %q, want %q", got.Status, got.Message, want)
		}

		// What is told stays as long as nobody looks again.
		conditions.Set(seen.controlPlane, certificatesCondition(seen))

		seen.kubeconfigLooked, seen.kubeconfigNote = false, ""
		if got := certificatesCondition(seen); got.Message != want {
			t.Errorf("without a look: %q, want %q", got.Message, want)
		}
	}

	told(users)

	if diff := cmp.Diff(mine, w.secret()); diff != "" {
		t.Error(diff)
	}

	// In no cache but that of metadata it is the same.
	all := w.Client
	w.Reconciler.Client = interceptor.NewClient(w.stored, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == mine.Name {
				return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
			}

			return c.Get(ctx, key, object, options...)
		},
	})
	told(users)

	w.Reconciler.Client = all
	w.change(func(object *corev1.Secret) { delete(object.Annotations, controlplanev1.RotateAnnotation) })
	told("")
}

// kubeconfigWorld is a cluster with an authority, of whose Secrets a reconciler sees all.
type kubeconfigWorld struct {
	*Reconciler

	t         *testing.T
	cluster   *clusterv1.Cluster
	authority *corev1.Secret
	stored    client.WithWatch
	events    *events.FakeRecorder
}

func newKubeconfigWorld(t *testing.T) *kubeconfigWorld {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod"},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}},
	}
	authority := authorityOf(t, cluster)
	recorder := events.NewFakeRecorder(10)
	stored := fake.NewClientBuilder().WithScheme(scheme).WithObjects(authority.DeepCopy()).Build()

	return &kubeconfigWorld{
		Reconciler: &Reconciler{
			Client: stored, Metadata: everySecret{reader: stored}, Clock: clock.RealClock{}, deferrer: &deferring{}, Recorder: recorder,
		},
		t: t, cluster: cluster, authority: authority, stored: stored, events: recorder,
	}
}

func (w *kubeconfigWorld) seen() *observation {
	return &observation{controlPlane: planeWith(nil), cluster: w.cluster, clusterName: "prod", bundle: &corev1.Secret{}}
}

func (w *kubeconfigWorld) ensure() {
	w.t.Helper()

	if err := w.ensureKubeconfig(w.t.Context(), w.seen()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *kubeconfigWorld) secret() *corev1.Secret {
	w.t.Helper()

	object := &corev1.Secret{}
	if err := w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "prod-kubeconfig"}, object); err != nil {
		w.t.Fatal(err)
	}

	return object
}

func (w *kubeconfigWorld) content() string {
	w.t.Helper()

	return string(w.secret().Data["value"])
}

func (w *kubeconfigWorld) change(change func(*corev1.Secret)) {
	w.t.Helper()

	object := w.secret()
	change(object)

	if err := w.Client.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func (w *kubeconfigWorld) ask(value string) {
	w.t.Helper()
	w.change(func(object *corev1.Secret) {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, controlplanev1.RotateAnnotation, value)
	})
}

// told checks that there was one event.
func (w *kubeconfigWorld) told(want string) {
	w.t.Helper()

	select {
	case event := <-w.events.Events:
		if !strings.Contains(event, want) {
			w.t.Errorf("event: %s", event)
		}
	default:
		w.t.Errorf("no event: %s", want)
	}
}
