// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/maesh-dev/ichor/internal/cli/inventory"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// ValidateResult is what `validate` writes.
type ValidateResult struct {
	// Valid is true when there are no errors.
	Valid bool `json:"valid"`

	// Errors and Warnings count the findings.
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`

	// Machines are those whose config was rendered and found valid, sorted.
	Machines []string `json:"machines"`

	// Findings in the order of the input.
	Findings []*Finding `json:"findings"`
}

type validateOptions struct {
	inputOptions
	output outputFlag
	strict bool
}

func newValidateCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &validateOptions{inputOptions: inputOptions{IOStreams: streams}}

	command := &cobra.Command{
		Use:   "validate -f FILE...",
		Short: "Find what admission of Ichor's kinds and rendering would refuse, and what is probably not meant",
		Long: `Find what admission of Ichor's kinds and rendering would refuse, and what is probably not meant. For pipelines.

` + filesHelp + `

Objects of Ichor's kinds are checked by the same schemas and rules as in the API server, then the config of each machine is
rendered and checked. Cluster API's own objects are only read: its webhooks may refuse more. Secrets that are not among the files, and a control-plane endpoint that is not set yet, are warnings: they
often come later.`,
		Example: `  clusterctl ichor validate -f cluster/ -o json`,
		RunE: func(command *cobra.Command, args []string) error {
			o.complete(args)

			if err := o.validate(command, args); err != nil {
				return err
			}

			return o.run()
		},
	}

	o.addTo(command)
	o.output.addTo(command)
	command.Flags().BoolVar(&o.strict, "strict", false, "exit with 1 for warnings too")

	return command
}

func (o *validateOptions) validate(command *cobra.Command, args []string) error {
	if err := o.inputOptions.validate(command, args); err != nil {
		return err
	}

	return o.output.validate()
}

func (o *validateOptions) run() error {
	set, err := o.load()
	if err != nil {
		return err
	}

	found := &findings{set: set}
	found.addProblems()
	found.checkObjects()

	result := ValidateResult{Machines: []string{}}

	// A broken object would make others look broken that refer to it, so machines are rendered once all objects are sound.
	if found.count(SeverityError) == 0 {
		result.Machines = o.renderAll(set, found)
	} else if n := len(set.Machines) + len(set.MachinePools) + len(set.MachineSets) + len(set.MachineDeployments) + len(set.TalosControlPlanes); n > 0 {
		o.tell("note", "machine configs are not checked before these errors are mended")
	}

	found.sort()

	result.Findings = slices.Concat([]*Finding{}, found.all)
	result.Errors, result.Warnings = found.count(SeverityError), found.count(SeverityWarning)
	result.Valid = result.Errors == 0

	if err = o.output.write(o.Out, result, result.text); err != nil {
		return err
	}

	if !result.Valid || o.strict && result.Warnings > 0 {
		return errFindings
	}

	return nil
}

// renderAll renders every machine and returns the names of those without errors.
func (o *validateOptions) renderAll(set *manifest.Set, found *findings) []string {
	subjects := o.subjects(set, found)
	complete := found.count(SeverityError) == 0

	if complete && len(subjects) == 0 {
		o.tell("note", "there is no machine among the files, so no config is checked as a whole: add the files of the Cluster and its machines with -f")
	}

	renderer := inventory.NewRenderer(set)
	renderer.StandIns = true

	for namespace, patches := range renderer.AllPatches() {
		found.addPatches(namespace, patches)
	}

	names := []string{}

	for _, subject := range subjects {
		rendered, err := renderer.Render(subject, true)

		for _, standIn := range rendered.StandIns {
			found.warn(standIn.Ref, standIn.Field, "", "%s", standIn.Message)
		}

		if err != nil {
			found.addRender(subject, err)

			continue
		}

		names = append(names, subject.Machine.Name)
		found.addWarnings(subject, rendered)

		for _, source := range rendered.Provenance.Ineffective {
			if source.Kind == machineconfig.KindTalosConfigPatch {
				ref, path := subject.Object(source)
				found.warn(ref, path, subject.Machine.Name, "changes nothing: what it sets is so already, or what it removes is not there")
			}
		}
	}

	// A machine that could not be put together may be the one that an object is for.
	if complete {
		found.checkUse(subjects)
	}

	slices.Sort(names)

	return names
}

// text writes a line for each finding, and what it comes to.
func (r ValidateResult) text(out io.Writer) error {
	var b strings.Builder

	for _, finding := range r.Findings {
		fmt.Fprintf(&b, "%s: %s\n", finding.Severity, finding)
	}

	fmt.Fprintf(&b, "%s, %s; %s valid\n", plural(r.Errors, "error"), plural(r.Warnings, "warning"), plural(len(r.Machines), "machine config"))

	_, err := io.WriteString(out, b.String())

	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}

	return fmt.Sprintf("%d %ss", n, what)
}
