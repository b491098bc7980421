// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// TestLeftoverOfAnEarlierCluster makes a Cluster whose name another had that has just been deleted: the garbage collector has not taken that one's
// Secrets yet, and they say that etcd was bootstrapped. Nothing is begun with them, and nothing of them is believed; when they are gone the new
// cluster comes up like any other.
func TestLeftoverOfAnEarlierCluster(t *testing.T) {
	ctrl.SetLogger(logr.Discard())

	t.Run("in the cache", func(t *testing.T) { leftover(t, true) })
	t.Run("in no cache", func(t *testing.T) { leftover(t, false) })
}

// leftover plays it. Without its label no cache has the earlier bundle.
func leftover(t *testing.T, labelled bool) {
	t.Helper()

	l := newLife(t, 1, newLifeSecrets(t), 1)
	defer l.end()

	l.storm = false

	earlier := metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterKind, Name: lifeCluster, UID: "earlier", Controller: new(true),
	}

	var left []*corev1.Secret

	for _, object := range l.secrets.objects {
		object = object.DeepCopy()
		object.OwnerReferences = []metav1.OwnerReference{earlier}

		if object.Name == secrets.BundleName(lifeCluster) {
			metav1.SetMetaDataAnnotation(&object.ObjectMeta, controlplanev1.BootstrapAnnotation, rollout.BootstrapRecord{Machine: "cp-old", Done: true}.Marshal())

			if !labelled {
				delete(object.Labels, clusterv1.ClusterNameLabel)
			}
		}

		l.create(object)
		left = append(left, object)
	}

	for range 5 {
		l.round()
	}

	tcp := l.controlPlane()
	if plan := tcp.Status.Plan; len(l.machines()) > 0 || tcp.Status.Initialization.ControlPlaneInitialized != nil ||
		plan.Reason != controlplanev1.PlanWaitingForSecretsReason || !strings.Contains(plan.Message, "earlier Cluster") {
		t.Fatalf("%d machines are there, initialized: %v, the plan says %s %s\n%s", len(l.machines()), tcp.Status.Initialization, plan.Reason, plan.Message, l)
	}

	for _, object := range left {
		l.must(client.IgnoreNotFound(l.store.Delete(l.ctx, object)))
	}

	l.finish(1, false)
}
