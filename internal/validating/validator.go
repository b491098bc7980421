// SPDX-License-Identifier: Apache-2.0

package validating

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/validation"
)

// Validator is the webhook of one kind.
type Validator[T client.Object] struct {
	// Room is that of all webhooks of the manager.
	Room *Room

	// Look finds what is wrong with an object by itself.
	Look func(T) validation.Report

	// Spec of an object. What is outside it is not looked at.
	Spec func(T) any

	// Change finds what is wrong with a change of the spec. Nil: every change is allowed.
	Change func(request admission.Request, before, after T) (field.ErrorList, []string)

	// Around warns of what other objects make of an object that is created, with nil before it, or changed. Nil: of nothing. It must not take
	// long, and says nothing when it cannot tell.
	Around func(ctx context.Context, before, after T) []string

	kind schema.GroupKind
}

// Register has the manager's webhook server ask the validator about objects of the kind.
func Register[T client.Object](mgr ctrl.Manager, object T, validator Validator[T]) error {
	gvk, err := apiutil.GVKForObject(object, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("webhook of %T: %w", object, err)
	}

	validator.kind = gvk.GroupKind()

	webhook := admission.WithValidator(mgr.GetScheme(), &validator)
	webhook.LogConstructor = func(base logr.Logger, request *admission.Request) logr.Logger {
		base = base.WithValues("webhookGroup", gvk.Group, "webhookKind", gvk.Kind)
		if request == nil {
			return base
		}

		return base.WithValues(gvk.Kind, klog.KRef(request.Namespace, request.Name), "user", request.UserInfo.Username, "requestID", request.UID)
	}

	mgr.GetWebhookServer().Register(pathOf(gvk), validator.Room.within(webhook))

	return nil
}

// pathOf is the webhook's path as the markers at the kinds' SetupWithManager have it.
func pathOf(kind schema.GroupVersionKind) string {
	return "/validate-" + strings.ReplaceAll(kind.Group, ".", "-") + "-" + kind.Version + "-" + strings.ToLower(kind.Kind)
}

// ValidateCreate refuses an object that is wrong by itself.
func (v *Validator[T]) ValidateCreate(ctx context.Context, object T) (admission.Warnings, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}

	if tooLarge := checkSize(request); tooLarge != nil {
		return nil, v.invalid(object, field.ErrorList{tooLarge})
	}

	report := v.Look(object)

	var nothing T

	return append(warningsOf(report), v.around(ctx, nothing, object)...), v.invalid(object, errorsOf(report.Faults))
}

func (v *Validator[T]) around(ctx context.Context, before, after T) admission.Warnings {
	if v.Around == nil {
		return nil
	}

	return capWarnings(v.Around(ctx, before, after))
}

// ValidateUpdate refuses a change that may not be made, and faults that it brings. Faults that were there already are tolerated where
// nothing was changed, as Kubernetes does: a rule that is newer than an object must not stop who mends something else in it, and least
// of all who removes a finalizer.
func (v *Validator[T]) ValidateUpdate(ctx context.Context, before, after T) (admission.Warnings, error) {
	if !after.GetDeletionTimestamp().IsZero() || equality.Semantic.DeepEqual(v.Spec(before), v.Spec(after)) {
		return nil, nil
	}

	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}

	if tooLarge := checkSize(request); tooLarge != nil {
		return nil, v.invalid(after, field.ErrorList{tooLarge})
	}

	report := v.Look(after)
	warnings := warningsOf(report)
	faults := report.Faults

	if len(faults) > 0 {
		if faults, err = broughtBy(before, after, v.Look(before).Faults, faults); err != nil {
			return nil, err
		}
	}

	errs := errorsOf(faults)

	if v.Change != nil {
		refused, suspicious := v.Change(request, before, after)
		errs = append(errs, refused...)
		warnings = append(warnings, capWarnings(suspicious)...)
	}

	warnings = append(warnings, v.around(ctx, before, after)...)

	return warnings, v.invalid(after, errs)
}

// ValidateDelete allows every deletion. It is not asked: the webhooks are registered for creations and updates.
func (*Validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

func (v *Validator[T]) invalid(object T, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}

	name := object.GetName()
	if name == "" {
		name = object.GetGenerateName()
	}

	return apierrors.NewInvalid(v.kind, name, capErrors(errs))
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
		err.Field = prose.ShortenTo(err.Field, maxWarning)
		err.Detail = prose.ShortenTo(err.Detail, maxDetail)
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
		all = append(all, prose.ShortenTo(warning, maxWarning))
	}

	if more := len(warnings) - maxWarnings; more > 0 {
		all = append(all, fmt.Sprintf("%d more warnings are not shown", more))
	}

	return all
}
