// SPDX-License-Identifier: Apache-2.0

package talosconfigpatch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/prose"
)

// maxRendered is for how many groups of machines a patch has renders made. A patch with more is one on machines of which no two are alike.
const maxRendered = 256

// survey is what is known of all patches of a namespace, for one state of the caches. Nothing in it changes once it is made.
type survey struct {
	patches map[string]*findings
	changes uint64
	made    time.Time

	// unread says that something could not be read, of which nothing that is watched tells when it can.
	unread bool
}

// lasts is how long a survey is good when nothing has changed. One that lacks something is made again as soon as any.
func (s *survey) lasts(settle time.Duration) time.Duration {
	if s.unread {
		return settle
	}

	return maxAge
}

// has says whether the patch is in it as it is now.
func (s *survey) has(patch *bootstrapv1.TalosConfigPatch) bool {
	found, ok := s.patches[patch.Name]

	return ok && found.parsed.Object().UID == patch.UID && found.parsed.Object().Generation == patch.Generation
}

// findings is what is known of a patch on all machines that it applies to.
type findings struct {
	parsed *machineconfig.Patch

	// clusters have a machine that it applies to.
	clusters sets.Set[string]

	// selected, applied, rendered and failed count machines: those that it applies to, those whose node runs it as it is, those that were
	// rendered with it, with and without a fault, and those of them that have one.
	selected, applied, rendered, failed int32

	// own faults are those of the patch on a machine, foreign ones those of other objects.
	own, foreign prose.Findings

	// unread is why machines that it applies to could not be judged, which is no fault of what users have written: the first such error.
	unread error

	// ineffective are machines on which the patch changes nothing.
	ineffective []string

	// groups and skipped count groups of machines that were rendered, and those that were too many.
	groups, skipped int
}

// make looks at all machines of a namespace.
func (r *Reconciler) make(ctx context.Context, namespace string) (*survey, error) {
	groups, patches, err := r.Inputs.Groups(ctx, namespace)
	if err != nil {
		return nil, err
	}

	made := &survey{patches: make(map[string]*findings, len(patches))}
	for _, patch := range patches {
		made.patches[patch.Object().Name] = &findings{parsed: patch, clusters: sets.New[string]()}
	}

	pass := &pass{Reconciler: r, live: r.Inputs.Live(namespace), pins: map[string]string{}, running: map[string]map[string]int64{}}

	for _, group := range groups {
		if err := pass.look(ctx, made, group); err != nil {
			return nil, err
		}
	}

	return made, nil
}

// pass is one making of a survey: all renders of it see one state of what is read live.
type pass struct {
	*Reconciler

	live *inputs.Live

	// pins are the config contracts of Clusters, by name.
	pins map[string]string

	// running are the patches that nodes run, with their generations, by the text of the annotation, which many machines share.
	running map[string]map[string]int64
}

// look adds what is found for a group of machines to all patches that apply to it.
func (p *pass) look(ctx context.Context, made *survey, group inputs.Group) error {
	selected, _ := group.Applied() // A fault of the selection is the render's to report.

	var (
		applied []*findings
		wanted  bool
	)

	for _, patch := range selected {
		if found, ok := made.patches[patch.Object().Name]; ok {
			applied = append(applied, found)
			wanted = wanted || found.groups < maxRendered
		}
	}

	if len(applied) == 0 {
		return nil
	}

	machines, err := p.count(ctx, applied, group)
	if err != nil {
		return err
	}

	if !wanted {
		for _, found := range applied {
			found.skipped++
		}

		return nil
	}

	verdict, err := p.judge(ctx, group)

	switch {
	case err == nil:
	case ctx.Err() != nil:
		// There is no time left for the others.
		return err
	default:
		made.lacks(applied, err)

		return nil
	}

	name := nameOf(group)
	for _, found := range applied {
		found.add(name, machines, verdict)
	}

	return nil
}

// lacks notes that machines could not be judged. Patches that are not on them are not concerned.
func (s *survey) lacks(applied []*findings, why error) {
	s.unread = true

	for _, found := range applied {
		if found.unread == nil {
			found.unread = why
		}
	}
}

// count counts the group's machines for the patches, and returns how many they are.
func (p *pass) count(ctx context.Context, applied []*findings, group inputs.Group) (machines int32, err error) {
	for _, owner := range group.Owners {
		if pool, ok := owner.(*clusterv1.MachinePool); ok {
			machines += ptr.Deref(pool.Spec.Replicas, 1)

			continue
		}

		machines++

		running, err := p.runs(ctx, owner)
		if err != nil {
			return 0, err
		}

		for _, found := range applied {
			if patch := found.parsed.Object(); running[patch.Name] == patch.Generation {
				found.applied++
			}
		}
	}

	for _, found := range applied {
		found.selected += machines
		found.clusters.Insert(group.Cluster.Name)
	}

	return machines, nil
}

// runs are the generations of the patches that the machine's node runs, by name: what is noted down of the node, else what the machine
// was given to boot from, once it has joined with it.
func (p *pass) runs(ctx context.Context, owner metav1.Object) (map[string]int64, error) {
	machine, ok := owner.(*clusterv1.Machine)

	if text, noted := owner.GetAnnotations()[bootstrapv1.RunningInputsAnnotation]; noted {
		found := p.noted(text)

		// As on a data Secret, an input may be noted without its name, which is that of the machine's TalosConfig then.
		if own, unnamed := found[""]; unnamed && ok {
			found = maps.Clone(found)
			found[machine.Spec.Bootstrap.ConfigRef.Name] = own
		}

		return found, nil
	}

	if !ok || !machine.Status.NodeRef.IsDefined() {
		return nil, nil
	}

	config := &bootstrapv1.TalosConfig{}

	// It is only read.
	err := p.Client.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.Bootstrap.ConfigRef.Name}, config, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}

	return generations(config.Status.Inputs), nil
}

// noted reads the annotation, which many machines have the same of.
func (p *pass) noted(text string) map[string]int64 {
	if known, ok := p.running[text]; ok {
		return known
	}

	var running []bootstrapv1.RenderedInput
	if err := json.Unmarshal([]byte(text), &running); err != nil {
		running = nil
	}

	p.running[text] = generations(running)

	return p.running[text]
}

// generations are those of the patches among the inputs.
func generations(all []bootstrapv1.RenderedInput) map[string]int64 {
	found := map[string]int64{}

	for _, input := range all {
		if input.Kind == machineconfig.KindTalosConfigPatch {
			found[input.Name] = ptr.Deref(input.Generation, 0)
		}
	}

	return found
}

func (f *findings) add(name string, machines int32, verdict verdict) {
	f.groups++
	f.rendered += machines

	if len(verdict.faults) > 0 {
		f.failed += machines
	}

	patch := f.parsed.Object().Name

	for _, fault := range verdict.faults {
		if fault.patch == patch {
			f.own.Add(name, fault.message)
		} else {
			f.foreign.Add(name, fault.message)
		}
	}

	if len(verdict.faults) == 0 && verdict.ineffective.Has(patch) {
		f.ineffective = append(f.ineffective, name)
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
