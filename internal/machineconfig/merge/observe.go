// SPDX-License-Identifier: Apache-2.0

package merge

import "strings"

// Op says what happened to a leaf.
type Op uint8

const (
	// OpSet: the leaf was added (Old is nil), changed, or set to the value that it had.
	OpSet Op = iota + 1
	// OpDelete: the leaf is gone (New is nil).
	OpDelete
	// OpMove: the leaf is what it was, at another pointer, because an element
	// before it was removed from its list.
	OpMove
)

// String gives "set", "delete" or "move".
func (o Op) String() string {
	switch o {
	case OpSet:
		return "set"
	case OpDelete:
		return "delete"
	case OpMove:
		return "move"
	default:
		return "unknown"
	}
}

// Change is what a patch or a deletion did to one leaf. Changes are in the
// order in which they hold: one who carries them out on the leaves from before
// has the leaves from after.
type Change struct {
	Op Op
	ID ID
	// Pointer is where the leaf is (for OpDelete: was).
	Pointer string
	// From is where a moved leaf was.
	From string
	// Old and New are nil where the leaf was not, or is no longer, there.
	Old, New *Value
}

// Same tells a set that changes nothing.
func (c Change) Same() bool {
	return c.Op == OpSet && c.Old != nil && c.New != nil && *c.Old == *c.New
}

// Observer is told every leaf that an Apply or Delete sets, removes or moves. A
// value that is set again to what it was is reported too, since the source has
// set it last then. What identifies a modern document (apiVersion, kind, name)
// is reported only when the document is added or deleted. A nil Observer costs
// nothing.
type Observer func(Change)

// recorder keeps the path during a merge, and what the merge set. All methods
// do nothing on nil.
type recorder struct {
	path   []byte
	ends   []int
	marks  map[string]struct{}
	list   string // a list that lost an element
	gone   int    // which one
	length int    // how many it had
}

func newRecorder(observe Observer) *recorder {
	if observe == nil {
		return nil
	}

	return &recorder{marks: map[string]struct{}{}}
}

func (r *recorder) push(token string) {
	if r == nil {
		return
	}

	r.ends = append(r.ends, len(r.path))
	r.path = append(append(r.path, '/'), escapeToken(token)...)
}

func (r *recorder) pop() {
	if r == nil {
		return
	}

	r.path = r.path[:r.ends[len(r.ends)-1]]
	r.ends = r.ends[:len(r.ends)-1]
}

// mark notes that the value at the path was set, as a whole.
func (r *recorder) mark() {
	if r != nil {
		r.marks[string(r.path)] = struct{}{}
	}
}

// removed notes that the list at the path lost an element.
func (r *recorder) removed(index, length int) {
	if r != nil {
		r.list, r.gone, r.length = string(r.path), index, length
	}
}

func (r *recorder) marked(pointer string) bool {
	if len(r.marks) == 0 {
		return false
	}

	for {
		if _, ok := r.marks[pointer]; ok {
			return true
		}

		i := strings.LastIndexByte(pointer, '/')
		if i < 0 {
			return false
		}

		pointer = pointer[:i]
	}
}

// report compares the leaves from before and after and tells the difference.
func (r *recorder) report(id ID, before, after []Leaf, observe Observer) {
	old := make(map[string]Value, len(before))
	order := make([]string, 0, len(before))

	for _, leaf := range before {
		pointer := leaf.Pointer

		if moved, gone := r.moved(pointer); gone {
			observe(Change{Op: OpDelete, ID: id, Pointer: pointer, Old: &leaf.Value})

			continue
		} else if moved != pointer {
			observe(Change{Op: OpMove, ID: id, From: pointer, Pointer: moved, Old: &leaf.Value, New: &leaf.Value})

			pointer = moved
		}

		old[pointer] = leaf.Value
		order = append(order, pointer)
	}

	now := make(map[string]struct{}, len(after))
	for i := range after {
		now[after[i].Pointer] = struct{}{}
	}

	for _, pointer := range order {
		if _, still := now[pointer]; !still {
			value := old[pointer]
			observe(Change{Op: OpDelete, ID: id, Pointer: pointer, Old: &value})
		}
	}

	for i := range after {
		leaf := &after[i]
		value := leaf.Value

		was, there := old[leaf.Pointer]

		switch {
		case !there:
			observe(Change{Op: OpSet, ID: id, Pointer: leaf.Pointer, New: &value})
		case was != value || r.marked(leaf.Pointer):
			observe(Change{Op: OpSet, ID: id, Pointer: leaf.Pointer, Old: &was, New: &value})
		}
	}
}

// moved tells where a leaf is after the removal of a list element, and whether
// it was part of that element.
func (r *recorder) moved(pointer string) (string, bool) {
	if r.length == 0 {
		return pointer, false
	}

	rest, ok := strings.CutPrefix(pointer, r.list+"/")
	if !ok {
		return pointer, false
	}

	token, rest, deeper := strings.Cut(rest, "/")

	for i := r.gone; i < r.length; i++ {
		if token != itoa(i) {
			continue
		}

		if i == r.gone {
			return pointer, true
		}

		moved := r.list + "/" + itoa(i-1)
		if deeper {
			moved += "/" + rest
		}

		return moved, false
	}

	return pointer, false
}
