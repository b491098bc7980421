// SPDX-License-Identifier: Apache-2.0

package talosconfigpatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/moving"
	"github.com/maesh-dev/ichor/bootstrap/pausing"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosconfigpatches;talosconfigs;talosclusterconfigs;talosstorages,verbs=list;watch
// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosconfigpatches/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines;machinepools,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets;configmaps,verbs=get;list;watch;patch

// Reconciler reports on TalosConfigPatches.
type Reconciler struct {
	// Client reads from the cache, and writes.
	Client client.Client

	// Inputs reads what configs are rendered from.
	Inputs *inputs.Reader

	// Metadata knows of every Secret and ConfigMap that it exists and when it changes, and no value.
	Metadata cache.Cache

	// Clock gives the time for the certificates of the bundles that stand in for the clusters' own.
	Clock clock.PassiveClock

	// Settle is how long changes of other objects are gathered before a patch is looked at again.
	Settle time.Duration

	// WatchFilter is the value of the watch-filter label on the TalosConfigPatches to report on. Empty: all.
	WatchFilter string

	judged *lru.Cache

	standIns sync.Mutex
	bundles  map[string]*secrets.Bundle
}

const (
	// maxJudged bounds what is remembered of groups of machines.
	maxJudged = 4096

	// maxRendered is how many groups of machines are rendered for a patch. A namespace with more is one in which no two machines are alike.
	maxRendered = 256
)

// Reconcile brings the status of one TalosConfigPatch up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	patch := &bootstrapv1.TalosConfigPatch{}
	if err := r.Client.Get(ctx, req.NamespacedName, patch); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	if !patch.DeletionTimestamp.IsZero() || (r.WatchFilter != "" && patch.Labels[clusterv1.WatchLabel] != r.WatchFilter) {
		return ctrl.Result{}, nil
	}

	// The cache hands out this kind without a copy.
	patch = patch.DeepCopy()

	if stop, _, err := pausing.Ensure(ctx, r.Client, nil, patch, &patch.Status.ObservedGeneration); err != nil || stop {
		return ctrl.Result{}, err
	}

	found, err := r.survey(ctx, patch)
	if err != nil {
		return ctrl.Result{}, err
	}

	// A label that is refused, by a policy for example, hides nothing of what is reported.
	return ctrl.Result{}, errors.Join(
		r.report(ctx, patch, found),
		moving.Label(ctx, r.Client, r.Inputs, patch.Namespace, machineconfig.ParsePatch(patch).Objects()...),
	)
}

// survey is what is known of a patch on all machines that it applies to.
type survey struct {
	// alone are faults of the patch whatever machine it is for.
	alone []string

	// selected and applied count machines.
	selected, applied int32

	// own faults are those of the patch on a machine, foreign ones those of other objects.
	own, foreign []string

	// ineffective are machines on which the patch changes nothing.
	ineffective []string

	// rendered and skipped count groups of machines: skipped ones were too many.
	rendered, skipped int
}

// survey looks at the machines that the patch applies to.
func (r *Reconciler) survey(ctx context.Context, patch *bootstrapv1.TalosConfigPatch) (survey, error) {
	var found survey

	for _, fault := range machineconfig.Errors(machineconfig.ParsePatch(patch).Check()) {
		found.alone = append(found.alone, fault.Error())
	}

	groups, err := r.Inputs.Groups(ctx, patch.Namespace)
	if err != nil {
		return found, err
	}

	// All renders of one survey see one state of what is read live.
	live := r.Inputs.Live(patch.Namespace)

	for _, group := range groups {
		seen, err := r.Inputs.Observe(ctx, group.Subject)
		if err != nil {
			return found, err
		}

		applied, _ := seen.Applied() // A fault of the selection is the render's to report.
		if !slices.ContainsFunc(applied, func(each *machineconfig.Patch) bool { return each.Object().Name == patch.Name }) {
			continue
		}

		found.count(patch, group)

		if found.rendered == maxRendered {
			found.skipped++

			continue
		}

		verdict, err := r.judge(ctx, live, group, seen)
		if err != nil {
			return found, err
		}

		found.rendered++
		found.add(patch, group, verdict)
	}

	return found, nil
}

func (s *survey) count(patch *bootstrapv1.TalosConfigPatch, group inputs.Group) {
	for _, owner := range group.Owners {
		if pool, ok := owner.(*clusterv1.MachinePool); ok {
			s.selected += ptr.Deref(pool.Spec.Replicas, 1)

			continue
		}

		s.selected++

		if runs(owner, patch) {
			s.applied++
		}
	}
}

// runs says whether the machine's node runs a config with the patch as it is now.
func runs(machine metav1.Object, patch *bootstrapv1.TalosConfigPatch) bool {
	text, ok := machine.GetAnnotations()[bootstrapv1.RunningInputsAnnotation]
	if !ok {
		return false
	}

	var running []bootstrapv1.RenderedInput
	if err := json.Unmarshal([]byte(text), &running); err != nil {
		return false
	}

	return slices.ContainsFunc(running, func(input bootstrapv1.RenderedInput) bool {
		return input.Kind == machineconfig.KindTalosConfigPatch && input.Name == patch.Name && ptr.Deref(input.Generation, 0) == patch.Generation
	})
}

func (s *survey) add(patch *bootstrapv1.TalosConfigPatch, group inputs.Group, verdict verdict) {
	name := nameOf(group)

	for _, fault := range verdict.faults {
		if fault.patch == patch.Name {
			s.own = append(s.own, name+": "+fault.message)
		} else {
			s.foreign = append(s.foreign, name+": "+fault.message)
		}
	}

	if len(verdict.faults) == 0 && slices.Contains(verdict.ineffective, patch.Name) {
		s.ineffective = append(s.ineffective, name)
	}
}

// nameOf is "Machine w-1", or "Machine w-1 and 34 like it".
func nameOf(group inputs.Group) string {
	name := group.Machine.Kind + " " + group.Machine.Name
	if rest := len(group.Owners) - 1; rest > 0 {
		return fmt.Sprintf("%s and %d like it", name, rest)
	}

	return name
}
