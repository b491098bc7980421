// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/talos"
)

// However long something fails, nodes are looked at as often as they are polled.
func TestAgain(t *testing.T) {
	const poll, health = 20 * time.Second, time.Minute

	key, other := client.ObjectKey{Namespace: "ns", Name: "cp"}, client.ObjectKey{Namespace: "ns", Name: "other"}
	fault := errors.New("the label cannot be written")

	tests := map[string]struct {
		result ctrl.Result
		fault  error
		want   []time.Duration
	}{
		"nothing failed":        {ctrl.Result{RequeueAfter: health}, nil, []time.Duration{health, health}},
		"at rest":               {ctrl.Result{RequeueAfter: health}, fault, []time.Duration{1, 2, 4, 8, 16, poll, poll}},
		"sooner than the retry": {ctrl.Result{RequeueAfter: 3 * time.Second}, fault, []time.Duration{1, 2, 3, 3}},
		"an action":             {ctrl.Result{RequeueAfter: afterAction}, fault, []time.Duration{1, 2, 4, 8, 16, poll, poll}},
		"nothing was seen":      {ctrl.Result{}, fault, []time.Duration{1, 2, 4, 8, 16, poll, poll}},
		"a node that cannot do it yet": {
			ctrl.Result{RequeueAfter: afterAction}, &notYetError{fault}, []time.Duration{1, 2, 4, 8, 16, poll, poll},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{retries: newRetries(poll)}

			var want, got []time.Duration

			for _, pause := range test.want {
				if pause < time.Second {
					pause *= time.Second //nolint:durationcheck // They are counted in seconds above.
				}

				want = append(want, pause)
				got = append(got, r.again(t.Context(), key, test.result, test.fault).RequeueAfter)
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}

			if pause := r.again(t.Context(), other, ctrl.Result{}, fault).RequeueAfter; pause != retryPause {
				t.Errorf("another control plane waits for %s", pause)
			}

			r.again(t.Context(), key, test.result, nil)

			if pause := r.again(t.Context(), key, ctrl.Result{}, fault).RequeueAfter; pause != retryPause {
				t.Errorf("it is the first failure since all was well, and it waits for %s", pause)
			}
		})
	}
}

// What is awaited, and what somebody else was faster with, is no failure that people are told of.
func TestRecordAction(t *testing.T) {
	node := errors.New("machine cp-1: etcd cannot be bootstrapped yet: time is not in sync yet")

	tests := map[string]struct {
		fault error
		want  int
	}{
		"done":     {nil, 1},
		"failed":   {node, 1},
		"awaited":  {fmt.Errorf("bootstrap: %w", &notYetError{node}), 0},
		"conflict": {apierrors.NewConflict(schema.GroupResource{}, "cp", node), 0},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(2)
			r := &Reconciler{Recorder: recorder}

			r.recordAction(&observation{controlPlane: planeWith(nil)}, rollout.Decision{Action: rollout.Bootstrap{Machine: "cp-1"}, Reason: "X"}, test.fault)

			if got := len(recorder.Events); got != test.want {
				t.Errorf("%d events, %d wanted", got, test.want)
			}
		})
	}
}

func TestBootstrapAwaitsTheNode(t *testing.T) {
	record := rollout.BootstrapRecord{Machine: "cp-1"}
	tcp := planeWith(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Annotations = map[string]string{controlplanev1.BootstrapAnnotation: record.Marshal()}
	})

	scheme := runtime.NewScheme()
	if err := controlplanev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	r := &Reconciler{
		APIReader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tcp).Build(),
		Clock:     clocktesting.NewFakePassiveClock(time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)),
	}
	call := func(class error) error {
		return r.bootstrap(t.Context(), &observation{
			controlPlane: tcp, plane: newMemory().of(client.ObjectKeyFromObject(tcp), tcp.UID),
			nodes:    answers{err: &talos.Error{Machine: "cp-1", Class: class}},
			machines: []*machine{{object: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "cp-1", UID: "u1"}}}},
		}, "cp-1")
	}

	for class, awaited := range map[error]bool{talos.ErrNotReady: true, talos.ErrRefused: false, talos.ErrUnreachable: false} {
		err := call(class)

		if _, waits := errors.AsType[*notYetError](err); waits != awaited || !errors.Is(err, class) {
			t.Errorf("%v: %v, awaited: %t", class, err, waits)
		}
	}

	if err := call(talos.ErrAlreadyExists); err != nil {
		t.Error(err)
	}
}
