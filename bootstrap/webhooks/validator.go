// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/maesh-dev/ichor/internal/validation"
)

// validator is the webhook of one kind.
type validator[T client.Object] struct {
	room *room

	// look finds what is wrong with an object by itself.
	look func(T) validation.Report

	// spec of an object. What is outside it is not looked at.
	spec func(T) any

	// change finds what is wrong with a change of the spec. Nil: every change is allowed.
	change func(request admission.Request, before, after T) (field.ErrorList, []string)
}

// ValidateCreate refuses an object that is wrong by itself.
func (v *validator[T]) ValidateCreate(ctx context.Context, object T) (admission.Warnings, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}

	if tooLarge := checkSize(request); tooLarge != nil {
		return nil, v.invalid(object, field.ErrorList{tooLarge})
	}

	leave, err := v.room.enter(ctx, request)
	if err != nil {
		return nil, err
	}
	defer leave()

	report := v.look(object)

	return warningsOf(report), v.invalid(object, errorsOf(report.Faults))
}

// ValidateUpdate refuses a change that may not be made, and faults that it brings. Faults that were there already are tolerated where
// nothing was changed, as Kubernetes does: a rule that is newer than an object must not stop who mends something else in it, and least
// of all who removes a finalizer.
func (v *validator[T]) ValidateUpdate(ctx context.Context, before, after T) (admission.Warnings, error) {
	if !after.GetDeletionTimestamp().IsZero() || equality.Semantic.DeepEqual(v.spec(before), v.spec(after)) {
		return nil, nil
	}

	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}

	if tooLarge := checkSize(request); tooLarge != nil {
		return nil, v.invalid(after, field.ErrorList{tooLarge})
	}

	leave, err := v.room.enter(ctx, request)
	if err != nil {
		return nil, err
	}
	defer leave()

	report := v.look(after)
	warnings := warningsOf(report)
	faults := report.Faults

	if len(faults) > 0 {
		if faults, err = broughtBy(before, after, v.look(before).Faults, faults); err != nil {
			return nil, err
		}
	}

	errs := errorsOf(faults)

	if v.change != nil {
		refused, suspicious := v.change(request, before, after)
		errs = append(errs, refused...)
		warnings = append(warnings, capWarnings(suspicious)...)
	}

	return warnings, v.invalid(after, errs)
}

// ValidateDelete allows every deletion. It is not asked: the webhooks are registered for creations and updates.
func (*validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

func (v *validator[T]) invalid(object T, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}

	name := object.GetName()
	if name == "" {
		name = object.GetGenerateName()
	}

	return apierrors.NewInvalid(groupKindOf(object), name, capErrors(errs))
}

// What one answer holds. Who made more mistakes than that mends these first.
const (
	maxErrors  = 64
	maxDetail  = 1024
	maxWarning = 512
)

func errorsOf(faults []validation.Fault) field.ErrorList {
	errs := make(field.ErrorList, 0, min(len(faults), maxErrors+1))

	for _, fault := range faults {
		if len(errs) > maxErrors {
			break
		}

		errs = append(errs, fault.Error())
	}

	if more := len(faults) - maxErrors; more > 0 {
		errs[maxErrors] = &field.Error{
			Type: field.ErrorTypeInvalid, Field: "spec", BadValue: field.OmitValueType{},
			Detail: fmt.Sprintf("%d more faults are not shown: mend these first", more),
		}
	}

	return errs
}

func capErrors(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		err.Field = shorten(err.Field, maxWarning)
		err.Detail = shorten(err.Detail, maxDetail)
	}

	return errs
}

// maxWarnings is how many the API server passes on whole: it cuts off what is longer than 4096 characters in all.
const maxWarnings = 8

func warningsOf(report validation.Report) admission.Warnings {
	return capWarnings(report.Sentences())
}

func capWarnings(warnings []string) admission.Warnings {
	all := make(admission.Warnings, 0, min(len(warnings), maxWarnings+1))

	for _, warning := range warnings[:min(len(warnings), maxWarnings)] {
		all = append(all, shorten(warning, maxWarning))
	}

	if more := len(warnings) - maxWarnings; more > 0 {
		all = append(all, fmt.Sprintf("%d more warnings are not shown", more))
	}

	return all
}

func shorten(text string, limit int) string {
	const mark = "..."

	if len(text) <= limit {
		return text
	}

	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
