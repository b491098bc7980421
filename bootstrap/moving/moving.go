// SPDX-License-Identifier: Apache-2.0

// Package moving sees to it that `clusterctl move` takes along what users refer to by name. It is not pure; the reconcilers of kinds with
// references import it.
package moving

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/secrets"
)

const (
	// maxTried bounds what is remembered of Secrets and ConfigMaps. One that is forgotten may be written once more.
	maxTried = 16384

	// refusalPause is how long a refused write is not tried again: nothing that is watched tells when a right or a policy changes.
	refusalPause = 10 * time.Minute
)

// Labeller gives Secrets and ConfigMaps the label that a move goes by. All reconcilers of a manager share one.
//
// Each object is written once. Somebody who takes the label away again, such as an operator that restores its own labels, is not fought
// with; the condition tells, and the label belongs where the object comes from.
type Labeller struct {
	writer client.Writer
	reader *inputs.Reader
	clock  clock.PassiveClock
	tried  *lru.Cache

	// failing knows of writes that have failed for no refusal, by object.
	failing *reporting.Failing
}

// NewLabeller returns a Labeller. The reader knows of every Secret and ConfigMap which labels it has.
func NewLabeller(writer client.Writer, reader *inputs.Reader, clock clock.PassiveClock) *Labeller {
	return &Labeller{writer: writer, reader: reader, clock: clock, tried: lru.New(maxTried), failing: reporting.NewFailing(clock)}
}

// attempt is the one write of an object.
type attempt struct {
	// version is that of the object before the write. The write holds for this version only, so that every other version without the
	// label is one from which somebody has taken it.
	version string

	// refused is what the API server called its refusal, and at when; empty for a write that it took.
	refused string
	at      time.Time
}

// Label labels those of the objects that exist, unless paused names Clusters that are paused: they may be on their way to another
// management cluster. Nothing else of the objects is changed or read. It returns the Movable condition, nil when none of the objects exists. With
// an error, after which it is to be tried again, the condition is nil, or says for how long that has gone on.
func (l *Labeller) Label(ctx context.Context, namespace string, paused []string, keys ...machineconfig.ObjectKey) (*metav1.Condition, error) {
	var (
		faults prose.Findings
		reason string
		exist  bool
		failed []error
		untold bool
	)

	for _, key := range keys {
		object, err := l.reader.Metadata(ctx, namespace, key)
		if err != nil {
			return nil, err
		}

		if object == nil {
			continue
		}

		exist = true

		fault, err := l.label(ctx, key, object, len(paused) > 0)
		if err != nil {
			failed, untold = append(failed, err), untold || fault == (lack{})
		}

		if fault != (lack{}) {
			faults.Add(key.Kind+" "+key.Name, fault.message)
			reason = max(reason, fault.reason)
		}
	}

	err := errors.Join(failed...)

	switch {
	case !exist || untold:
		return nil, err
	case faults.Empty():
		return new(reporting.Condition(bootstrapv1.MovableCondition, metav1.ConditionTrue, bootstrapv1.MovableReason, "")), nil
	}

	return new(reporting.Condition(bootstrapv1.MovableCondition, metav1.ConditionFalse, reason, faults.String())), err
}

// lack is why an object has no label.
type lack struct{ reason, message string }

const label = clusterctlv1.ClusterctlMoveLabel

// label labels one object. That it has just been written, and the cache is behind, is no lack. A write that has failed is an error, and a lack as well
// when that has gone on for some time.
func (l *Labeller) label(ctx context.Context, key machineconfig.ObjectKey, object *metav1.PartialObjectMetadata, paused bool) (lack, error) {
	if _, labelled := object.Labels[label]; labelled {
		return lack{}, nil
	}

	if cached, ok := l.tried.Get(object.UID); ok {
		last, _ := cached.(attempt)

		switch same := last.version == object.ResourceVersion; {
		case last.refused != "" && l.clock.Since(last.at) < refusalPause:
			return refused(last.refused), nil
		case last.refused == "" && same:
			return lack{}, nil
		case last.refused == "":
			return lack{
				bootstrapv1.MoveLabelRemovedReason,
				"the label " + label + " was set and has been taken away again: set it where the object comes from, or a move leaves the object behind",
			}, nil
		}
	}

	if paused {
		return lack{bootstrapv1.MovePausedReason, "has no label " + label + ": it is set when no Cluster is paused"}, nil
	}

	return l.write(ctx, key, object)
}

func (l *Labeller) write(ctx context.Context, key machineconfig.ObjectKey, object *metav1.PartialObjectMetadata) (lack, error) {
	next := attempt{version: object.ResourceVersion, at: l.clock.Now()}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"metadata":{"uid":%q,"resourceVersion":%q,"labels":{%q:""}}}`, object.UID, object.ResourceVersion, label))

	err := l.writer.Patch(ctx, object.DeepCopy(), patch)
	said := l.failing.Say(object.UID, err)

	switch {
	case err == nil:
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// The cache is behind. What it lacks wakes whoever refers to the object.
		return lack{}, nil
	case secrets.IsRefusal(err):
		// The API server's words may quote what the object holds.
		next.refused = secrets.AnswerOf(err)
	default:
		err = fmt.Errorf("%s %s: set the label %s: %w", key.Kind, key.Name, label, secrets.WithoutWords(err))
		if said == "" {
			return lack{}, err
		}

		return lack{bootstrapv1.MoveLabelNotSetReason, fmt.Sprintf("has no label %s, which cannot be set: %s; it is tried again", label, said)}, err
	}

	l.failing.Passed(object.UID)
	l.tried.Add(object.UID, next)

	if next.refused != "" {
		return refused(next.refused), nil
	}

	return lack{}, nil
}

func refused(answer string) lack {
	return lack{bootstrapv1.MoveLabelRefusedReason, fmt.Sprintf(
		"has no label %s, and the API server refuses that the manager sets it (%s): set it, or a move leaves the object behind", label, answer)}
}
