// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/maesh-dev/ichor/internal/cli/inventory"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// RenderResult is what `render` writes.
type RenderResult struct {
	Machines []RenderedMachine `json:"machines"`
}

// MachineRef names a machine and says what it is.
type MachineRef struct {
	// Name of the machine; "<owner>-template" for one that is still to be made.
	Name string `json:"name"`

	// Object is the object that the machine is, or that makes it.
	Object manifest.Ref `json:"object"`

	// Cluster is the name of its Cluster.
	Cluster string `json:"cluster"`

	// Role is ControlPlane or Worker.
	Role string `json:"role"`

	// ConfigContract is the format of its config.
	ConfigContract string `json:"configContract"`
}

// RenderedMachine is the config of one machine.
type RenderedMachine struct {
	MachineRef `json:",inline"`

	// ThrowawayBundle is true when the cluster's secrets were made for this output alone.
	ThrowawayBundle bool `json:"throwawayBundle,omitempty"`

	// SecretsMasked is true when Config is not what the node gets, but has a mask in the place of each secret.
	SecretsMasked bool `json:"secretsMasked,omitempty"`

	// Hash is the SHA-256 of the config that the node gets, secrets included. Absent with a throwaway bundle.
	Hash string `json:"hash,omitempty"`

	// Inputs are the objects that went in, in the order in which they did.
	Inputs []Input `json:"inputs"`

	// Warnings are what is allowed and probably not meant.
	Warnings []string `json:"warnings,omitempty"`

	// Config is the machine config: YAML documents.
	Config string `json:"config"`
}

// Input is an object that went into a config.
type Input struct {
	Layer        machineconfig.Layer `json:"layer"`
	manifest.Ref `json:",inline"`

	// Location of the object. Absent when it was not among the files.
	Location *manifest.Location `json:"location,omitempty"`
}

type renderOptions struct {
	inputOptions
	output      outputFlag
	machine     string
	showSecrets bool
}

func newRenderCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &renderOptions{inputOptions: inputOptions{IOStreams: streams}}

	command := &cobra.Command{
		Use:   "render -f FILE...",
		Short: "Print the machine config that each machine would get",
		Long: `Print the machine config that each machine would get, with secrets masked.

` + filesHelp + `

Without the cluster's secrets bundle (Secret CLUSTER-talos) among the files, a throwaway one is made, and said so.`,
		Example: `  clusterctl ichor render -f cluster/ --machine worker-1
  kubectl get cluster-api -o yaml | clusterctl ichor render -f - -f secrets.yaml`,
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
	command.Flags().StringVar(&o.machine, "machine", "", "only this machine: NAME, KIND/NAME or NAMESPACE/NAME")
	command.Flags().BoolVar(&o.showSecrets, "show-secrets", false, "print secrets instead of masking them")

	return command
}

func (o *renderOptions) validate(command *cobra.Command, args []string) error {
	if err := o.inputOptions.validate(command, args); err != nil {
		return err
	}

	return o.output.validate()
}

func (o *renderOptions) run() error {
	set, err := o.load()
	if err != nil {
		return err
	}

	found := &findings{set: set}
	found.addProblems()

	if set.Failed() {
		return found.tellAll(&o.inputOptions)
	}

	subjects, err := o.chosen(set, found)
	if err != nil {
		return err
	}

	result := RenderResult{Machines: []RenderedMachine{}}
	renderer := inventory.NewRenderer(set)
	throwaways := newThrowaways(&o.inputOptions)

	for _, subject := range subjects {
		rendered, err := renderer.Render(subject, false)
		if err != nil {
			found.addRender(subject, err)

			continue
		}

		throwaways.tell(subject, rendered)

		machine, err := o.machineOf(set, subject, rendered)
		if err != nil {
			return err
		}

		result.Machines = append(result.Machines, machine)
		found.addWarnings(subject, rendered)
	}

	if len(result.Machines) > 0 {
		if err = o.output.write(o.Out, result, result.text); err != nil {
			return err
		}
	}

	return found.tellAll(&o.inputOptions)
}

// chosen are the machines to render: all, or the one that was named.
func (o *renderOptions) chosen(set *manifest.Set, found *findings) ([]*inventory.Subject, error) {
	if o.machine != "" {
		subject, err := o.subject(set, o.machine)

		return []*inventory.Subject{subject}, err
	}

	subjects := o.subjects(set, found)
	if len(subjects) == 0 && found.count(SeverityError) == 0 {
		return nil, usagef("there is no machine of Ichor among the files: add a Machine, MachinePool, MachineDeployment or MachineSet, or a TalosControlPlane and the Cluster that has it in spec.controlPlaneRef")
	}

	return subjects, nil
}

func (o *renderOptions) machineOf(set *manifest.Set, subject *inventory.Subject, rendered inventory.Result) (RenderedMachine, error) {
	machine := RenderedMachine{
		MachineRef:      machineRef(subject, rendered),
		ThrowawayBundle: rendered.ThrowawayBundle,
		SecretsMasked:   !o.showSecrets,
		Warnings:        rendered.Warnings,
	}

	if !rendered.ThrowawayBundle {
		machine.Hash = rendered.Hash
	}

	for _, source := range rendered.Inputs {
		ref, _ := subject.Object(source)
		input := Input{Layer: source.Layer, Ref: ref}

		if object := set.Object(ref); object != nil {
			input.Location = &object.Location
		}

		machine.Inputs = append(machine.Inputs, input)
	}

	if o.showSecrets {
		machine.Config = string(rendered.Bytes)

		return machine, nil
	}

	masked, err := rendered.Masked()
	if err != nil {
		return machine, fmt.Errorf("%s: %w", subject.Ref, err)
	}

	machine.Config = rendered.Steady(string(masked))

	return machine, nil
}

func machineRef(subject *inventory.Subject, rendered inventory.Result) MachineRef {
	return MachineRef{
		Name: subject.Machine.Name, Object: subject.Ref, Cluster: subject.Cluster.Name,
		Role: string(subject.Machine.Role()), ConfigContract: rendered.Contract.String(),
	}
}

// String says in a line what the machine is.
func (m MachineRef) String() string {
	return fmt.Sprintf("%s (%s), cluster %s, %s, config contract %s", m.Name, m.Object, m.Cluster, m.Role, m.ConfigContract)
}

// text writes the configs as one stream of YAML documents, each machine's after a comment.
func (r RenderResult) text(out io.Writer) error {
	for i, machine := range r.Machines {
		if i > 0 {
			if _, err := io.WriteString(out, "---\n"); err != nil {
				return err
			}
		}

		if _, err := fmt.Fprintf(out, "# %s\n%s", machine.MachineRef, machine.Config); err != nil {
			return err
		}
	}

	return nil
}

// addWarnings takes over what a render warns of.
func (fs *findings) addWarnings(subject *inventory.Subject, rendered inventory.Result) {
	for _, warning := range rendered.Warnings {
		fs.add(Finding{Severity: SeverityWarning, Message: warning}, subject.Machine.Name)
	}
}

// throwaways tells of each cluster once that its secrets were made up.
type throwaways struct {
	options *inputOptions
	told    map[manifest.Ref]bool
}

func newThrowaways(options *inputOptions) *throwaways {
	return &throwaways{options: options, told: map[manifest.Ref]bool{}}
}

func (t *throwaways) tell(subject *inventory.Subject, rendered inventory.Result) {
	cluster := manifest.Ref{Kind: machineconfig.KindCluster, Namespace: subject.Cluster.Namespace, Name: subject.Cluster.Name}
	if !rendered.ThrowawayBundle || t.told[cluster] {
		return
	}

	t.told[cluster] = true
	t.options.tell("note", fmt.Sprintf("%s: Secret %s is not among the files: a throwaway secrets bundle was made, and no node has its secrets",
		cluster, secrets.BundleName(subject.Cluster.Name)))
}
