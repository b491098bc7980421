// SPDX-License-Identifier: Apache-2.0

package machineconfig

import "strings"

// What stands for the values that a patch refers to, where only the patch is looked at: they come later, or may not be read there.
const (
	standIn    = "stand-in"
	standInPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"stand-in","namespace":"kube-system"},"spec":{"containers":[{"name":"stand-in","image":"stand-in"}]}}`
)

// filledFields are the fields of each document, by its path in the patch, that stand-ins are in.
type filledFields map[string][]string

// has tells a fault that may be the stand-in's, and not the user's. That a reference cannot be is never the stand-in's.
func (f filledFields) has(fault *Error) bool {
	return fault.Reason != ReasonInvalidReference && isWithinAny(fault.Field, f[fault.Source.Path])
}

// withStandIns is the patch with its documents read, whatever they refer to.
func (p *Patch) withStandIns() (*Patch, filledFields) {
	objects := map[ObjectKey]Object{}
	filled := filledFields{}

	for _, i := range p.waiting {
		for _, reference := range p.object.Spec.Documents[i].References() {
			object := ObjectKey{reference.Source.Kind, reference.Source.Name}
			if _, ok := objects[object]; !ok {
				objects[object] = Object{data: map[string][]byte{}}
			}

			field, isPod := fieldOfReference(fieldPointer(reference.Path))
			filled[documentPath(i)] = append(filled[documentPath(i)], field)

			if isPod {
				objects[object].data[reference.Source.Key] = []byte(standInPod)
			} else if objects[object].data[reference.Source.Key] == nil {
				objects[object].data[reference.Source.Key] = []byte(standIn)
			}
		}
	}

	references := NewReferences(objects)
	references.reserved = reservedNames(p.object.Spec.ClusterName, nil)

	return p.resolve(references), filled
}

// fieldOfReference is the field that a reference fills: "/peers/0/presharedKey" of "/peers/0/presharedKeySecretRef", and of a map of
// references the whole map, since it fills a list in some documents.
func fieldOfReference(pointer string) (field string, isPod bool) {
	tokens := strings.Split(pointer, "/")

	for i, token := range tokens {
		name, found := strings.CutSuffix(token, "SecretRef")
		if !found {
			name, found = strings.CutSuffix(token, "From")
		}

		if found {
			tokens[i] = name

			return strings.Join(tokens[:i+1], "/"), strings.HasPrefix(name, "pod")
		}
	}

	return pointer, false
}
