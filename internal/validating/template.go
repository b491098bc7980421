// SPDX-License-Identifier: Apache-2.0

package validating

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/cluster-api/util/topology"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// ChangeOfTemplate is a Validator's Change for templates. It refuses every change: a template is what objects were made from. The topology
// controller must be able to ask what a change would come to, and makes a new template then.
func ChangeOfTemplate[T client.Object](request admission.Request, _, after T) (field.ErrorList, []string) {
	if topology.IsDryRunRequest(request, after) {
		return nil, nil
	}

	return field.ErrorList{field.Forbidden(field.NewPath("spec"),
		"a template cannot be changed: make one with another name, and refer to that")}, nil
}
