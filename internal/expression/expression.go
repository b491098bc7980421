// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
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

// ParseSelector reads an expression that selects among disks, volumes or links: true for some of them, as far as can be told without one.
// The error quotes the expression.
func ParseSelector(text string, env *cel.Env) (talos.Expression, error) {
	expression, err := ParseBoolean(text, env)

	switch {
	case err != nil && bareWord.MatchString(text):
		return talos.Expression{}, fmt.Errorf(`%q is a value and no condition: compare a field with it, such as disk.transport == "nvme" or link.driver == "igb" (%w)`, text, err)
	case err == nil && (neverTrue(text, env) || contradictory(text, env)):
		return talos.Expression{}, ErrNeverTrue
	default:
		return expression, err
	}
}

// bareWord is what stands in a selector when a condition is forgotten.
var bareWord = regexp.MustCompile(`^(?:["'][^"']*["']|[A-Za-z0-9/_:-]+)$`)

// ErrNeverTrue is of a selector that selects nothing, and that Talos takes.
var ErrNeverTrue = errors.New(`is false whatever is looked at, and selects nothing: compare a field without quotes and with one value, such as disk.transport == "nvme", or remove the document`)

// maxCost bounds how long is looked for whether an expression can be true.
const maxCost = 10000

// neverTrue tells an expression that is false without a look at what it is asked about.
func neverTrue(text string, env *cel.Env) bool {
	tree, issues := env.Parse(text)
	if issues.Err() != nil || !hasConstant(tree) {
		return false
	}

	checked, issues := env.Check(tree)
	if issues.Err() != nil {
		return false
	}

	var unknown []*cel.AttributePatternType
	for _, ident := range ast.MatchDescendants(ast.NavigateAST(tree.NativeRep()), ast.KindMatcher(ast.IdentKind)) {
		unknown = append(unknown, cel.AttributePattern(ident.AsIdent()))
	}

	input, err := cel.PartialVars(map[string]any{}, unknown...)
	if err != nil {
		return false
	}

	program, err := env.Program(checked, cel.EvalOptions(cel.OptPartialEval), cel.CostLimit(maxCost))
	if err != nil {
		return false
	}

	value, _, err := program.Eval(input)

	return err == nil && value == types.False
}

// hasConstant tells an expression in which something is the same whatever is looked at. Most have nothing of the sort, and need no second look.
func hasConstant(tree *cel.Ast) bool {
	literal := func(expr ast.Expr) bool { return expr.Kind() == ast.LiteralKind }

	return len(ast.MatchDescendants(ast.NavigateAST(tree.NativeRep()), func(expr ast.NavigableExpr) bool {
		switch expr.Kind() {
		case ast.LiteralKind:
			return expr.AsLiteral().Type() == types.BoolType
		case ast.CallKind:
			call := expr.AsCall()

			return len(call.Args()) > 0 && !slices.ContainsFunc(call.Args(), func(arg ast.Expr) bool { return !literal(arg) }) &&
				(!call.IsMemberFunction() || literal(call.Target()))
		default:
			return false
		}
	})) > 0
}

// ParseDouble reads an expression that must be a number with a fraction. The error quotes the expression.
func ParseDouble(text string, env *cel.Env) (talos.Expression, error) {
	return parse(text, env, talos.ParseDoubleExpression)
}

func parse(text string, env *cel.Env, typed func(string, *cel.Env) (talos.Expression, error)) (talos.Expression, error) {
	if length := utf8.RuneCountInString(text); length > MaxLength {
		return talos.Expression{}, fmt.Errorf("the expression has %d letters, at most %d are allowed", length, MaxLength)
	}

	// Each comprehension has a parenthesis. Most expressions have so few that they need not be parsed twice.
	if strings.Count(text, "(") > maxNesting {
		// The parser's bounds are its own, and it is fast. What it refuses, Talos refuses in the same words.
		parsed, issues := env.Parse(text)
		if err := issues.Err(); err != nil {
			return talos.Expression{}, shorten(err)
		}

		if nesting(parsed.NativeRep().Expr()) > maxNesting {
			return talos.Expression{}, fmt.Errorf("more than %d of all, exists, filter and map stand inside each other: write it more simply", maxNesting)
		}
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
