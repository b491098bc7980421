// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"reflect"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
)

// HasField says whether documents of the kind have the field at a JSON pointer, set or not. Below free-form values all is had.
func HasField(document config.Document, pointer string) bool {
	tokens, err := splitPointer(pointer)
	if err != nil {
		return false
	}

	p, err := planFor(reflect.TypeOf(document).Elem())
	if err != nil {
		return false
	}

	for _, token := range tokens {
		for p.shape == shapePointer {
			p = p.elem
		}

		switch p.shape {
		case shapeStruct:
			f := p.field(token)
			if f == nil {
				return false
			}

			p = f.plan
		case shapeMap, shapeList:
			p = p.elem
		case shapeFreeForm:
			return true
		default:
			return false
		}
	}

	return true
}
