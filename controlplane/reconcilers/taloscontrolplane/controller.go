// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/finalizers"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/consistency"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/talos"
)

// The rights of the manager. What it makes machines from, and those machines, are of any kind: the rights to them are aggregated from those
// that infrastructure providers give to Cluster API's own manager.
//
// +kubebuilder:rbac:groups=controlplane.ichor.maesh.dev,resources=taloscontrolplanes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=controlplane.ichor.maesh.dev,resources=taloscontrolplanes/status,verbs=patch
// +kubebuilder:rbac:groups=controlplane.ichor.maesh.dev,resources=taloscontrolplanes/finalizers,verbs=update
// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosconfigs,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosclusterconfigs,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinepools,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Reconciler sees to TalosControlPlanes.
type Reconciler struct {
	// Client reads from the cache, which has of Secrets only those with the cluster-name label, and writes.
	Client client.Client

	// APIReader reads live, for what must not be decided by an old copy.
	APIReader client.Reader

	// Metadata knows of every Secret that it exists and when it changes, and no value.
	Metadata cache.Cache

	// Recorder writes events.
	Recorder events.EventRecorder

	// Secrets looks at the secrets of clusters.
	Secrets *clustersecrets.Keeper

	// ClusterCache has the connections to workload clusters.
	ClusterCache clustercache.ClusterCache

	// Talos has the connections to nodes.
	Talos *talos.Pool

	Clock clock.PassiveClock

	// WatchFilter is the value of the watch-filter label on the TalosControlPlanes to reconcile. Empty: all.
	WatchFilter string

	// GracePeriod is how long a node may be out of reach before the conditions of its Machine become unknown.
	GracePeriod time.Duration

	// HealthInterval is how often nodes are looked at when there is nothing to do.
	HealthInterval time.Duration

	// PollInterval is how often nodes are looked at while something is awaited that nothing watches.
	PollInterval time.Duration

	// deletions deletes Machines, and has what they are then.
	deletions capicontroller.ClientWithDeleteResponse

	deferrer consistency.Deferrer
	memory   *memory

	authorities *authorityCache

	// retries says when to try again what failed.
	retries workqueue.TypedRateLimiter[client.ObjectKey]
}

// conflictPause is how long to wait for the cache after somebody else has written first.
const conflictPause = time.Second

// Reconcile brings one control plane a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	tcp := &controlplanev1.TalosControlPlane{}
	if err := r.Client.Get(ctx, req.NamespacedName, tcp); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			r.retries.Forget(req.NamespacedName)
		}

		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	if !r.responsible(tcp) {
		return ctrl.Result{}, nil
	}

	if added, err := finalizers.EnsureFinalizer(ctx, r.Client, tcp, controlplanev1.TalosControlPlaneFinalizer); err != nil || added {
		return ctrl.Result{}, err
	}

	cluster, err := r.cluster(ctx, tcp)
	if err != nil {
		return ctrl.Result{}, err
	}

	if stop, err := r.ensurePaused(ctx, cluster, tcp); err != nil || stop {
		return ctrl.Result{}, err
	}

	if cluster != nil {
		ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues("Cluster", klog.KObj(cluster)))
	}

	result, err := r.step(ctx, cluster, tcp)

	return r.again(ctx, req.NamespacedName, result, err), nil
}

// retryPause is how long to wait after the first failure. Each further one doubles it, up to the interval at which nodes are polled.
const retryPause = time.Second

// newRetries makes what says when to try again.
func newRetries(longest time.Duration) workqueue.TypedRateLimiter[client.ObjectKey] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[client.ObjectKey](min(retryPause, longest), longest)
}

// again is when to look again. A failure brings that forward and never puts it off for longer than nodes are polled at: one label that cannot
// be written must not keep health and rollouts from going on. So it is not for the queue, which would wait ever longer.
func (r *Reconciler) again(ctx context.Context, key client.ObjectKey, result ctrl.Result, fault error) ctrl.Result {
	if fault == nil {
		r.retries.Forget(key)

		return result
	}

	if _, waits := errors.AsType[*notYetError](fault); waits {
		ctrl.LoggerFrom(ctx).Info("It is tried again", "why", fault.Error())
	} else {
		ctrl.LoggerFrom(ctx).Error(fault, "Something failed, and is tried again")
	}

	pause := r.retries.When(key)
	if result.RequeueAfter > afterAction {
		pause = min(pause, result.RequeueAfter)
	}

	return ctrl.Result{RequeueAfter: pause}
}

// step looks at the control plane, decides, does the one thing that was decided, and reports.
func (r *Reconciler) step(ctx context.Context, cluster *clusterv1.Cluster, tcp *controlplanev1.TalosControlPlane) (ctrl.Result, error) {
	seen, err := r.observe(ctx, cluster, tcp)
	if err != nil {
		counted(actionObserve, err)

		return ctrl.Result{}, errors.Join(fmt.Errorf("observe: %w", err), r.reportBlind(ctx, tcp))
	}

	decision := r.decide(ctx, seen)
	fault := r.execute(ctx, seen, decision)

	result, err := r.report(ctx, seen, decision, fault)
	if err != nil {
		counted(actionReport, err)
	}

	// Somebody else has written first: what to do is decided anew when the cache has it.
	if apierrors.IsConflict(fault) {
		return ctrl.Result{RequeueAfter: conflictPause}, err
	}

	return result, errors.Join(fault, err)
}

// decide has the planner decide. What changes something is decided by what nodes say now, and not by what they said a while ago.
func (r *Reconciler) decide(ctx context.Context, seen *observation) rollout.Decision {
	if seen.invalid != nil && !seen.snapshot.ControlPlane.Deleting {
		return rollout.Decision{
			Action: rollout.Wait{}, Reason: controlplanev1.PlanRecordInvalidReason,
			Message: seen.invalid.Error() + ". Correct it, or remove it",
		}
	}

	decision := rollout.Plan(seen.snapshot)

	if acts(decision.Action) && !seen.fresh {
		r.inspect(ctx, seen, true)

		decision = rollout.Plan(seen.snapshot)
	}

	if _, creates := decision.Action.(rollout.CreateMachine); creates && seen.missing != "" {
		decision.Action, decision.Reason, decision.Message = rollout.Wait{}, controlplanev1.PlanWaitingForTemplateReason, "No machine can be made: "+seen.missing
		decision.RetryAfter = 0
	}

	return decision
}

// responsible says whether this manager reconciles the control plane. Other objects may wake any.
func (r *Reconciler) responsible(tcp *controlplanev1.TalosControlPlane) bool {
	return r.WatchFilter == "" || tcp.Labels[clusterv1.WatchLabel] == r.WatchFilter
}

// acts says whether an action changes something.
func acts(action rollout.Action) bool {
	_, rests := action.(rollout.Rest)
	_, waits := action.(rollout.Wait)

	return !rests && !waits
}
