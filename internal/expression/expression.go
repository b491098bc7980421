// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	talos "github.com/siderolabs/talos/pkg/machinery/cel"
)

const (
	// MaxLength is how many letters an expression may have. Talos' own examples have fewer than a hundred.
	MaxLength = 2048

	// maxNesting is how many comprehensions (all, exists, filter, map) may stand inside each other. Talos offers nothing with lists in
	// lists; the time of the type checker doubles with each.
	maxNesting = 4

	// maxError is how much is told of what is wrong. The parser tells of every letter that it does not know.
	maxError = 512
)

// ParseBoolean reads an expression that must be true or false. The error quotes the expression.
func ParseBoolean(text string, env *cel.Env) (talos.Expression, error) {
	return parse(text, env, talos.ParseBooleanExpression)
}

// ParseDouble reads an expression that must be a number with a fraction. The error quotes the expression.
func ParseDouble(text string, env *cel.Env) (talos.Expression, error) {
	return parse(text, env, talos.ParseDoubleExpression)
}

func parse(text string, env *cel.Env, typed func(string, *cel.Env) (talos.Expression, error)) (talos.Expression, error) {
	if length := utf8.RuneCountInString(text); length > MaxLength {
		return talos.Expression{}, fmt.Errorf("the expression has %d letters, at most %d are allowed", length, MaxLength)
	}

	// The parser's bounds are its own, and it is fast. What it refuses, Talos refuses in the same words.
	parsed, issues := env.Parse(text)
	if err := issues.Err(); err != nil {
		return talos.Expression{}, shorten(err)
	}

	if nesting(parsed.NativeRep().Expr()) > maxNesting {
		return talos.Expression{}, fmt.Errorf("more than %d of all, exists, filter and map stand inside each other: write it more simply", maxNesting)
	}

	expression, err := typed(text, env)
	if err != nil {
		return talos.Expression{}, shorten(err)
	}

	return expression, nil
}

func shorten(err error) error {
	text := err.Error()
	if len(text) <= maxError {
		return err
	}

	return errors.New(strings.ToValidUTF8(text[:maxError], "") + "...")
}

// nesting is how many comprehensions stand inside each other at most. The parser bounds the depth of the tree.
func nesting(expr ast.Expr) int {
	deepest := 0
	below := func(exprs ...ast.Expr) {
		for _, each := range exprs {
			deepest = max(deepest, nesting(each))
		}
	}

	switch expr.Kind() {
	case ast.CallKind:
		call := expr.AsCall()
		if call.IsMemberFunction() {
			below(call.Target())
		}

		below(call.Args()...)
	case ast.ComprehensionKind:
		comprehension := expr.AsComprehension()
		below(comprehension.IterRange(), comprehension.AccuInit(), comprehension.LoopCondition(), comprehension.LoopStep(), comprehension.Result())
		deepest++
	case ast.ListKind:
		below(expr.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range expr.AsMap().Entries() {
			below(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.SelectKind:
		below(expr.AsSelect().Operand())
	case ast.StructKind:
		for _, field := range expr.AsStruct().Fields() {
			below(field.AsStructField().Value())
		}
	case ast.UnspecifiedExprKind, ast.IdentKind, ast.LiteralKind:
	}

	return deepest
}
