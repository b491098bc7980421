// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
)

// TestNoSecondEtcd gives a management cluster the secrets and the endpoint of a control plane that lives, and none of its Machines. Nothing is
// begun beside it, also when it is out of reach for a while and when a manager starts anew; who says that it is gone for good gets a new one.
//
// contract: etcd is never bootstrapped beside a control plane of the cluster that lives.
func TestNoSecondEtcd(t *testing.T) {
	ctrl.SetLogger(logr.Discard())

	made := newLifeSecrets(t)

	cases := map[string]struct {
		// secrets are there before the first machine is made.
		secrets bool

		machines int
	}{
		"the secrets are there from the beginning": {true, 0},
		"the secrets come with the first machine":  {false, 1},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, 1, made, 1)
			defer l.end()

			l.storm = false
			l.alive.Store(true)

			if test.secrets {
				l.makeSecrets()
			}

			rounds := func(n int) {
				t.Helper()

				for range n {
					l.round()
				}

				if got := len(l.machines()); l.once() != 0 || got != test.machines {
					t.Fatalf("etcd was bootstrapped %d times, and %d machines are there\n%s", l.once(), got, l)
				}

				tcp := l.controlPlane()
				condition := meta.FindStatusCondition(tcp.Status.Conditions, controlplanev1.InitializedCondition)

				if plan := tcp.Status.Plan; plan.Reason != controlplanev1.PlanServedElsewhereReason || condition == nil ||
					condition.Reason != controlplanev1.ServedElsewhereReason || !strings.Contains(condition.Message, controlplanev1.ServedElsewhereAnnotation) {
					t.Fatalf("the plan says %s %s, and the condition %v\n%s", plan.Reason, plan.Message, condition, l)
				}
			}

			rounds(30)

			l.alive.Store(false)
			l.processes[0].kill()
			rounds(10)

			tcp := l.controlPlane()
			before := tcp.DeepCopy()
			delete(tcp.Annotations, controlplanev1.ServedElsewhereAnnotation)
			l.must(l.store.Patch(l.ctx, tcp, client.MergeFrom(before)))

			l.finish(1, false)
		})
	}
}
