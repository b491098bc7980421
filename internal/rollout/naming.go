// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// RandomLength is how many random letters and digits are in a Machine's name.
	RandomLength = 5

	// maxName is that of a DNS label: the name is a host's too.
	maxName = 63

	defaultNaming = "{{ .talosControlPlane.name }}-{{ .random }}"
)

// Naming is what the template of a Machine's name may use.
type Naming struct {
	// Cluster and ControlPlane are names of objects.
	Cluster, ControlPlane string

	// Random are RandomLength letters and digits in lower case.
	Random string
}

// MachineName is the name of a new Machine by spec.machineNaming.template; an empty template is the default. A name that is too long is cut,
// and ends with what is random. The error says what is wrong with the template.
func MachineName(text string, naming Naming) (string, error) {
	if text == "" {
		text = defaultNaming
	}

	parsed, err := parseNaming(text)
	if err != nil {
		return "", err
	}

	var b boundedText

	if err = parsed.Execute(&b, map[string]any{
		"cluster":           map[string]any{"name": naming.Cluster},
		"talosControlPlane": map[string]any{"name": naming.ControlPlane},
		"random":            naming.Random,
	}); err != nil {
		return "", fmt.Errorf("%w: the variables are .cluster.name, .talosControlPlane.name and .random", err)
	}

	name := b.String()
	if len(name) > maxName {
		name = name[:maxName-len(naming.Random)] + naming.Random
	}

	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		return "", fmt.Errorf("it gives the name %q, and %s", name, strings.Join(faults, ", "))
	}

	return name, nil
}

// CheckNaming says what is wrong with a spec.machineNaming.template, or nil: whatever the Cluster is called, names must be valid, and differ
// as what is random differs. It never quotes more than the template and what becomes of it.
func CheckNaming(text string) error {
	for _, name := range []string{"c", strings.Repeat("c", maxName)} {
		var made []string

		for _, random := range []string{"aaaaa", "bbbbb"} {
			each, err := MachineName(text, Naming{Cluster: name, ControlPlane: name, Random: random})
			if err != nil {
				return err
			}

			made = append(made, each)
		}

		if made[0] == made[1] {
			return errors.New("every Machine would have the same name: it must contain {{ .random }}")
		}
	}

	return nil
}

func parseNaming(text string) (*template.Template, error) {
	parsed, err := template.New("template").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}

	if len(parsed.Templates()) > 1 {
		return nil, errors.New("define and block are not allowed")
	}

	return parsed, plain(parsed.Root)
}

// namingFunctions are those of text/template by which a name can be made. The others write what no name may hold, and js can double a text
// each time.
var namingFunctions = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice", "print", "printf"}

// namingFormat is what printf may be given: each value once, and no wider than a name can be.
var namingFormat = regexp.MustCompile(`^([^%]|%[-+ 0]*[0-9]{0,2}(\.[0-9]{0,2})?[sdv]|%%)*$`)

// plain refuses what may take for ever, or more memory than a name is worth: with loops, variables and wide formats a few letters write
// gigabytes, and one object would bring down the manager.
func plain(node parse.Node) error {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil // an else that is not there
		}

		return plainAll(n.Nodes)
	case *parse.IfNode:
		return errors.Join(plainPipe(n.Pipe), plain(n.List), plain(n.ElseList))
	case *parse.ActionNode:
		return plainPipe(n.Pipe)
	case *parse.TextNode, *parse.CommentNode:
		return nil
	default:
		return fmt.Errorf("%s is not allowed: use text, variables, functions and if", node)
	}
}

func plainAll(nodes []parse.Node) error {
	for _, each := range nodes {
		if err := plain(each); err != nil {
			return err
		}
	}

	return nil
}

func plainPipe(pipe *parse.PipeNode) error {
	if len(pipe.Decl) > 0 {
		return fmt.Errorf("%s is not allowed: variables of your own cannot be used", pipe)
	}

	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			if err := plainArgument(argument); err != nil {
				return err
			}
		}

		if err := plainFormat(command); err != nil {
			return err
		}
	}

	return nil
}

func plainArgument(argument parse.Node) error {
	switch n := argument.(type) {
	case *parse.PipeNode:
		return plainPipe(n)
	case *parse.ChainNode:
		return plainArgument(n.Node)
	case *parse.IdentifierNode:
		if !slices.Contains(namingFunctions, n.Ident) {
			return fmt.Errorf("the function %s is not allowed: those that are allowed are %s", n.Ident, strings.Join(namingFunctions, ", "))
		}
	}

	return nil
}

// plainFormat looks at the format of a printf, which must be there to look at.
func plainFormat(command *parse.CommandNode) error {
	if called, ok := command.Args[0].(*parse.IdentifierNode); !ok || called.Ident != "printf" {
		return nil
	}

	if len(command.Args) > 1 {
		if format, ok := command.Args[1].(*parse.StringNode); ok && namingFormat.MatchString(format.Text) {
			return nil
		}
	}

	return fmt.Errorf("%s is not allowed: printf takes a text with %%s, %%d and %%v, each at most 99 wide", command)
}

// boundedText takes a text up to a length, and refuses what is longer.
type boundedText struct{ strings.Builder }

// maxWritten is more than any name that a template writes by mistake.
const maxWritten = 1024

func (b *boundedText) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxWritten {
		return 0, fmt.Errorf("the name has more than %d letters", maxWritten)
	}

	return b.Builder.Write(p)
}
