// SPDX-License-Identifier: Apache-2.0

package machineconfig

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

			filled[documentPath(i)] = append(filled[documentPath(i)], reference.Field)

			if reference.Pod {
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
