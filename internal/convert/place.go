// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/version"
)

// Find gives the place in the input of a field of the patch, such as "spec.documents[2].wireguardConfig.privateKeySecretRef". It is
// false for a field that comes from no document.
func (r *Result) Find(path string) (Place, bool) {
	tokens := pathTokens(path)
	if len(tokens) < 3 || tokens[0] != "spec" {
		return Place{}, false
	}

	index, err := strconv.Atoi(tokens[2])
	if err != nil || index < 0 {
		return Place{}, false
	}

	switch {
	case tokens[1] == "deletions" && index < len(r.deletions):
		d := r.deletions[index]
		place := d.place
		place.Line, place.Document, place.Pointer = d.line, d.id.String(), d.pointer()

		return place, true
	case tokens[1] != "documents" || index >= len(r.documents):
		return Place{}, false
	}

	return r.FindField(index, plainPointer(tokens[min(4, len(tokens)):]))
}

// plainPointer is the pointer in the Talos document of what a field of the patch stands for: of a reference, the field that it fills.
func plainPointer(tokens []string) string {
	var b strings.Builder

	for i, token := range tokens {
		if i > 0 && (token == "secretKeyRef" || token == "configMapKeyRef") {
			break // what follows is about the reference alone
		}

		plain, refers := strings.CutSuffix(token, "SecretRef")
		if !refers {
			plain = strings.TrimSuffix(token, "From")
		}

		b.WriteString("/" + merge.EscapePointer(plain))

		if refers {
			break
		}
	}

	return b.String()
}

// FindField gives the place in the input of a field of one of the patch's documents, as a JSON Pointer in the Talos document.
func (r *Result) FindField(index int, pointer string) (Place, bool) {
	if index < 0 || index >= len(r.documents) {
		return Place{}, false
	}

	return r.documents[index].at(pointer), true
}

// OldForms tells the settings of legacy documents that the config contract has in documents of their own, in the order of the input. They
// are no faults: Talos takes both forms.
func (r *Result) OldForms(contract version.Contract) []Fault {
	var old []Fault

	for _, s := range r.documents {
		first := len(old)

		for _, form := range machineconfig.OldForms(contract, s.document) {
			old = append(old, Fault{Place: s.at(form.Pointer), Message: fmt.Sprintf("is the older form: config contract %s has it as %s", contract, form.Write)})
		}

		slices.SortStableFunc(old[first:], func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	}

	return old
}

// pathTokens takes "spec.documents[0].config.machine.sysctls[net.core.somaxconn]" apart: a dot within brackets belongs to a key.
func pathTokens(path string) []string {
	var tokens []string

	for path != "" {
		if path[0] == '[' {
			key, rest, _ := strings.Cut(path[1:], "]")
			tokens, path = append(tokens, key), strings.TrimPrefix(rest, ".")

			continue
		}

		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(tokens, path)
		}

		tokens = append(tokens, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}

	return tokens
}
