// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

// contradictory tells an expression that asks two things of one field which no value has at once, such as a transport that is NVMe and SATA.
// It knows comparisons of a field with constants, joined by &&, || and !; of all else it believes that it may be true.
func contradictory(text string, env *cel.Env) bool {
	if !strings.Contains(text, "&&") {
		return false
	}

	tree, issues := env.Parse(text)
	if issues.Err() != nil {
		return false
	}

	c := contradictions{env: env, info: tree.NativeRep().SourceInfo(), constants: map[string]any{}}

	return c.impossible(tree.NativeRep().Expr())
}

type contradictions struct {
	env  *cel.Env
	info *ast.SourceInfo

	// constants are values by their text; what is none has nil.
	constants map[string]any
}

// demand is what is asked of a field.
type demand struct {
	// values are those at which the answer may change.
	values []any
	fits   func(any) bool
}

// impossible tells an expression that nothing can make true.
func (c contradictions) impossible(expr ast.Expr) bool {
	switch function, args := called(expr); function {
	case operators.LogicalOr:
		return c.impossible(args[0]) && c.impossible(args[1])
	case operators.LogicalAnd:
		demands := map[string][]demand{}

		return !c.collect(expr, demands) || slices.ContainsFunc(slices.Collect(maps.Values(demands)), unsatisfiable)
	default:
		return false
	}
}

// collect gathers what a conjunction asks of fields. It is false when a part of it is impossible by itself.
func (c contradictions) collect(expr ast.Expr, demands map[string][]demand) bool {
	if function, args := called(expr); function == operators.LogicalAnd {
		return c.collect(args[0], demands) && c.collect(args[1], demands)
	}

	if path, asked, ok := c.demandOf(expr); ok {
		demands[path] = append(demands[path], asked)

		return true
	}

	return !c.impossible(expr)
}

// unsatisfiable tries the values at which answers change, and those beside them.
func unsatisfiable(demands []demand) bool {
	if len(demands) < 2 {
		return false
	}

	for _, asked := range demands {
		for _, value := range asked.values {
			if !slices.ContainsFunc(demands, func(each demand) bool { return !each.fits(value) }) {
				return false
			}
		}
	}

	return true
}

// demandOf reads a comparison of a field with a constant, or a field that is true or false itself.
func (c contradictions) demandOf(expr ast.Expr) (path string, asked demand, ok bool) {
	if path = pathOf(expr); path != "" {
		return path, equals(true), true
	}

	function, args := called(expr)

	switch {
	case function == operators.LogicalNot:
		path = pathOf(args[0])

		return path, equals(false), path != ""
	case len(args) != 2:
		return "", demand{}, false
	case function == operators.In:
		return c.membership(args)
	}

	left, right := args[0], args[1]
	constant, known := c.constant(right)

	if !known {
		left, function = right, mirrored[function]
		constant, known = c.constant(args[0])
	}

	if path = pathOf(left); path == "" || !known {
		return "", demand{}, false
	}

	asked, ok = compare(function, constant)

	return path, asked, ok
}

// mirrored are comparisons as they are with their sides changed.
var mirrored = map[string]string{
	operators.Equals: operators.Equals, operators.NotEquals: operators.NotEquals,
	operators.Less: operators.Greater, operators.LessEquals: operators.GreaterEquals,
	operators.Greater: operators.Less, operators.GreaterEquals: operators.LessEquals,
}

// membership reads a field that is one of a list of constants.
func (c contradictions) membership(args []ast.Expr) (path string, asked demand, ok bool) {
	path = pathOf(args[0])
	if path == "" || args[1].Kind() != ast.ListKind {
		return "", demand{}, false
	}

	for _, element := range args[1].AsList().Elements() {
		constant, known := c.constant(element)
		if !known {
			return "", demand{}, false
		}

		asked.values = append(asked.values, constant)
	}

	asked.fits = func(value any) bool { return slices.Contains(asked.values, value) }

	return path, asked, true
}

func equals(constant any) demand {
	return demand{[]any{constant}, func(value any) bool { return value == constant }}
}

// anotherText stands for every text that no constant is.
const anotherText = "\x00"

func compare(function string, constant any) (demand, bool) {
	switch function {
	case operators.Equals:
		return equals(constant), true
	case operators.NotEquals:
		return demand{others(constant), func(value any) bool { return value != constant }}, true
	}

	number, isNumber := constant.(float64)
	if !isNumber {
		return demand{}, false
	}

	holds, known := map[string]func(float64) bool{
		operators.Less:          func(value float64) bool { return value < number },
		operators.LessEquals:    func(value float64) bool { return value <= number },
		operators.Greater:       func(value float64) bool { return value > number },
		operators.GreaterEquals: func(value float64) bool { return value >= number },
	}[function]

	return demand{[]any{number - 1, number, number + 1}, func(value any) bool {
		given, isNumber := value.(float64)

		return isNumber && holds(given)
	}}, known
}

// others are values beside a constant.
func others(constant any) []any {
	switch constant := constant.(type) {
	case bool:
		return []any{!constant}
	case float64:
		return []any{constant - 1, constant + 1}
	default:
		return []any{anotherText}
	}
}

// constant is the value of an expression that has no field in it, such as 100u * GB.
func (c contradictions) constant(expr ast.Expr) (any, bool) {
	text, err := parser.Unparse(expr, c.info)
	if err != nil {
		return nil, false
	}

	if value, seen := c.constants[text]; seen {
		return value, value != nil
	}

	value := c.evaluate(text)
	c.constants[text] = value

	return value, value != nil
}

func (c contradictions) evaluate(text string) any {
	tree, issues := c.env.Compile(text)
	if issues.Err() != nil {
		return nil
	}

	program, err := c.env.Program(tree, cel.CostLimit(maxCost))
	if err != nil {
		return nil
	}

	result, _, err := program.Eval(cel.NoVars())
	if err != nil {
		return nil
	}

	switch result := result.(type) {
	case types.String:
		return string(result)
	case types.Bool:
		return bool(result)
	case types.Int:
		return float64(result)
	case types.Uint:
		return float64(result)
	case types.Double:
		return float64(result)
	default:
		return nil
	}
}

// called is the function of a call with its arguments.
func called(expr ast.Expr) (function string, args []ast.Expr) {
	if expr.Kind() != ast.CallKind || expr.AsCall().IsMemberFunction() {
		return "", nil
	}

	return expr.AsCall().FunctionName(), expr.AsCall().Args()
}

// pathOf is the path of a field, such as disk.transport, empty for anything else.
func pathOf(expr ast.Expr) string {
	switch expr.Kind() { //nolint:exhaustive // nothing else is a field
	case ast.IdentKind:
		return expr.AsIdent()
	case ast.SelectKind:
		selected := expr.AsSelect()
		if operand := pathOf(selected.Operand()); operand != "" && !selected.IsTestOnly() {
			return operand + "." + selected.FieldName()
		}
	}

	return ""
}
