// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
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

	var b strings.Builder

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

// plain refuses what may take for ever.
func plain(node parse.Node) error {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil // an else that is not there
		}

		for _, each := range n.Nodes {
			if err := plain(each); err != nil {
				return err
			}
		}

		return nil
	case *parse.IfNode:
		return errors.Join(plain(n.List), plain(n.ElseList))
	case *parse.TextNode, *parse.ActionNode, *parse.CommentNode:
		return nil
	default:
		return fmt.Errorf("%s is not allowed: use text, variables, functions and if", node)
	}
}
