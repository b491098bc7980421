// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	bootstrapcrd "github.com/maesh-dev/ichor/config/bootstrap/crd"
	controlplanecrd "github.com/maesh-dev/ichor/config/controlplane/crd"
	"github.com/maesh-dev/ichor/internal/cli/admission"
	"github.com/maesh-dev/ichor/internal/cli/inventory"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
)

const filesHelp = `FILE is a manifest with one or more YAML or JSON documents, a directory of them, or "-" for standard input. Of the objects,
these count: Cluster, Machine, MachinePool, MachineDeployment and MachineSet of Cluster API; TalosConfig, TalosConfigTemplate,
TalosClusterConfig, TalosConfigPatch, TalosStorage and TalosControlPlane; Secret and ConfigMap. A TalosControlPlane, MachineDeployment or
MachineSet stands for the machine that it would make, named NAME-template; a TalosControlPlaneTemplate is checked by itself. In messages,
documents are counted from 0.`

// inputOptions are the flags of commands that read manifests.
type inputOptions struct {
	genericiooptions.IOStreams

	files     []string
	recursive bool
	namespace string
	verbose   bool
}

func (o *inputOptions) addTo(command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVarP(&o.files, "file", "f", nil, `manifest, directory, or "-" for standard input; may be repeated`)
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "read directories below directories too")
	flags.StringVarP(&o.namespace, "namespace", "n", "default", "namespace of objects that name none")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "tell what was ignored, and why")
}

// complete adds the arguments to the files: a shell makes them of -f *.yaml.
func (o *inputOptions) complete(args []string) {
	if len(o.files) > 0 {
		o.files = append(o.files, args...)
	}
}

func (o *inputOptions) validate(command *cobra.Command, args []string) error {
	if len(o.files) == 0 {
		if len(args) > 0 {
			return noArguments(command, args)
		}

		return usagef("-f is missing: name the manifests to read (see '%s --help')", command.CommandPath())
	}

	if errs := validation.IsDNS1123Label(o.namespace); len(errs) > 0 {
		return usagef("--namespace is %q: %s", o.namespace, strings.Join(errs, "; "))
	}

	return nil
}

// loadRules reads the definitions in this program, which are costly to make into rules.
var loadRules = sync.OnceValues(func() (*admission.Rules, error) {
	return admission.Load(bootstrapcrd.Bases(), controlplanecrd.Bases())
})

// load reads the files. An error means that they could not be read; what is wrong with objects is in the set.
func (o *inputOptions) load() (*manifest.Set, error) {
	rules, err := loadRules()
	if err != nil {
		return nil, fmt.Errorf("the definitions in this program are broken: %w", err)
	}

	set, err := manifest.Load(manifest.Files{Names: o.files, Recursive: o.recursive, Stdin: o.In}, o.namespace, rules)
	if err != nil {
		return nil, err
	}

	for _, object := range set.Ignored {
		o.note("%s: %s %s plays no part in machine configs and is ignored", object.Location, object.GVK.GroupVersion(), object.Ref)
	}

	return set, nil
}

// note tells something that only -v asks for.
func (o *inputOptions) note(format string, args ...any) {
	if o.verbose {
		o.tell("note", fmt.Sprintf(format, args...))
	}
}

// tell writes a line to the error stream, whose own errors nobody could be told of.
func (o *inputOptions) tell(severity, message string) {
	_, _ = fmt.Fprintf(o.ErrOut, "%s: %s\n", severity, message)
}

// subjects lists the machines among the files. What machines refer to and is missing goes to the findings.
func (o *inputOptions) subjects(set *manifest.Set, findings *findings) []*inventory.Subject {
	subjects, others, err := inventory.Subjects(set)
	findings.addMissing(err)

	for _, other := range others {
		o.note("%s has no configRef to a kind of Ichor and is ignored", other)
	}

	return subjects
}

// subject is the one machine that a user named. What other machines lack is of no interest, unless the named one is not found:
// then that may be the reason, and is told.
func (o *inputOptions) subject(set *manifest.Set, name string) (*inventory.Subject, error) {
	missing := &findings{set: set}

	subject, err := choose(o.subjects(set, missing), name)
	if err != nil && missing.tellAll(o) != nil {
		return nil, errFindings
	}

	return subject, err
}

func choose(subjects []*inventory.Subject, name string) (*inventory.Subject, error) {
	var chosen, known []string

	var subject *inventory.Subject

	for _, each := range subjects {
		known = append(known, each.Ref.String())

		if each.Matches(name) {
			subject = each
			chosen = append(chosen, each.Ref.String())
		}
	}

	switch {
	case len(chosen) == 1:
		return subject, nil
	case len(chosen) > 1:
		return nil, usagef("--machine %q means more than one: %s; write KIND/NAME or NAMESPACE/NAME", name, strings.Join(chosen, ", "))
	case len(known) == 0:
		return nil, usagef("--machine %q: there is no machine of Ichor among the files", name)
	default:
		return nil, usagef("--machine %q is not among the files; there are %s", name, strings.Join(known, ", "))
	}
}
