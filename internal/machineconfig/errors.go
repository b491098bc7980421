// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"strings"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/prose"
)

// Reason says what sort of thing is wrong with the inputs of a config. It is the reason of the ConfigRendered condition.
type Reason string

// The reasons, in the order in which a render meets them.
const (
	// ReasonContractUnknown means that nothing says which config contract the machine needs.
	ReasonContractUnknown Reason = bootstrapv1.TalosConfigContractUnknownReason

	// ReasonAmbiguousClusterConfig means that more than one TalosClusterConfig targets the Cluster.
	ReasonAmbiguousClusterConfig Reason = bootstrapv1.TalosConfigAmbiguousClusterConfigReason

	// ReasonInvalidReference means that a Secret or patch that is referred to is missing or lacks a key.
	ReasonInvalidReference Reason = bootstrapv1.TalosConfigReferenceInvalidReason

	// ReasonRenderFailed means that a layer cannot be applied.
	ReasonRenderFailed Reason = bootstrapv1.TalosConfigRenderFailedReason

	// ReasonValidationFailed means that the merged config is not one that Talos can run.
	ReasonValidationFailed Reason = bootstrapv1.TalosConfigValidationFailedReason
)

// Error is a fault in the inputs of a config, which only a user can mend. It names the layer, the object, the Talos
// document and the field as far as they are known. It never carries the value of a secret.
type Error struct {
	// Reason says what sort of fault it is.
	Reason Reason

	// Source is the object that is at fault, and its layer. Its zero value means that no single object is.
	Source Source

	// Document is the Talos document, for example "UserVolumeConfig/longhorn". Empty when none is meant.
	Document string

	// Field is a JSON Pointer within the document; without a document it is a field of the source. Empty when none is meant.
	Field string

	// Err says what is wrong and what to do.
	Err error
}

// Error is "Pool layer: TalosConfigPatch gpu spec.documents[0]: UserVolumeConfig/longhorn: /provisioning: min size or max size is required".
func (e *Error) Error() string {
	var parts []string

	if e.Source != (Source{}) {
		parts = append(parts, e.Source.String())
	}

	if e.Document != "" {
		parts = append(parts, prose.InLine(e.Document))
	}

	if e.Field != "" {
		parts = append(parts, prose.InLine(e.Field))
	}

	return strings.Join(append(parts, prose.Printable(e.Err.Error())), ": ")
}

// Unwrap returns the error below.
func (e *Error) Unwrap() error { return e.Err }

// Errors returns the Errors in err, which may be joined or wrapped, in order.
func Errors(err error) []*Error {
	if err == nil {
		return nil
	}

	if direct, ok := err.(*Error); ok { //nolint:errorlint // a walk over the tree looks at each node itself
		return []*Error{direct}
	}

	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, each := range joined.Unwrap() {
			all = append(all, Errors(each)...)
		}

		return all
	}

	if fault, ok := errors.AsType[*Error](err); ok {
		return []*Error{fault}
	}

	return nil
}

// ReasonOf returns the reason of the first Error in err, and "" when there is none.
func ReasonOf(err error) Reason {
	if faults := Errors(err); len(faults) > 0 {
		return faults[0].Reason
	}

	return ""
}
