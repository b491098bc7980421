// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Error is what is wrong with one place of a patch. Its text names the
// document, its index and the field, and never a value of a secret field.
type Error struct {
	// Index is the position of the document in its patch, from 0; -1 outside a patch.
	Index int
	// ID is the document, as far as it is known.
	ID ID
	// Pointer is a JSON pointer within the document, "" for the document.
	Pointer string
	// Line is the line in the source, 0 when unknown.
	Line int
	// Err says what is wrong and what to do.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder

	if e.Index >= 0 {
		b.WriteString("document " + strconv.Itoa(e.Index))
	}

	if e.ID.Kind != "" {
		if b.Len() > 0 {
			b.WriteString(" ")
		}

		b.WriteString("(" + e.ID.String() + ")")
	}

	if e.Pointer != "" {
		if b.Len() > 0 {
			b.WriteString(": ")
		}

		b.WriteString(e.Pointer)
	}

	if b.Len() > 0 {
		b.WriteString(": ")
	}

	b.WriteString(e.Err.Error())

	if e.Line > 0 {
		b.WriteString(" (line " + strconv.Itoa(e.Line) + ")")
	}

	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// fieldError carries the path of a fault up the recursion; the tokens are
// innermost first.
type fieldError struct {
	tokens []string
	line   int
	err    error
}

func (e *fieldError) Error() string { return e.pointer() + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

func (e *fieldError) pointer() string {
	var b strings.Builder

	for _, v := range slices.Backward(e.tokens) {
		b.WriteByte('/')
		b.WriteString(escapeToken(v))
	}

	return b.String()
}

// under adds one token of the path on the way up.
func under(token string, err error) error {
	if err == nil {
		return nil
	}

	var fe *fieldError
	if !errors.As(err, &fe) {
		fe = &fieldError{err: err}
	}

	fe.tokens = append(fe.tokens, token)

	return fe
}

// inDocument turns a fault found inside a document into an Error.
func inDocument(index int, id ID, err error) error {
	if err == nil {
		return nil
	}

	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}

	if fe, ok := errors.AsType[*fieldError](err); ok {
		return &Error{Index: index, ID: id, Pointer: fe.pointer(), Line: fe.line, Err: fe.err}
	}

	return &Error{Index: index, ID: id, Err: err}
}

var (
	pointerEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

func escapeToken(token string) string {
	if !strings.ContainsAny(token, "~/") {
		return token
	}

	return pointerEscaper.Replace(token)
}

// splitPointer gives the tokens of a JSON pointer (RFC 6901), none for "".
func splitPointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}

	if pointer[0] != '/' {
		return nil, errors.New("a path begins with /, such as /provisioning/minSize (JSON pointer)")
	}

	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		tokens[i] = pointerUnescaper.Replace(token)
	}

	return tokens, nil
}
