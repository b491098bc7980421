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
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/suggest"
)

// ExplainResult is what `explain` writes.
type ExplainResult struct {
	Machine MachineRef `json:"machine"`

	// Values of the config, in the order of its documents.
	Values []ExplainedValue `json:"values"`
}

// ExplainedValue is a value of a config and where it comes from.
type ExplainedValue struct {
	// Document is the Talos document, for example "UserVolumeConfig/longhorn"; "Config" is the legacy document.
	Document string `json:"document"`

	// Path is the value's JSON Pointer within the document.
	Path string `json:"path"`

	// Value in text form; a mask for a secret one.
	Value string `json:"value"`

	// Secret is true for a value that is masked unless --show-secrets is given.
	Secret bool `json:"secret,omitempty"`

	// SetBy is what set the value last.
	SetBy Origin `json:"setBy"`

	// Covered are the earlier settings of the value, the latest first.
	Covered []CoveredValue `json:"covered,omitempty"`
}

// CoveredValue is a value that a later layer has covered.
type CoveredValue struct {
	Value string `json:"value"`
	SetBy Origin `json:"setBy"`
}

// Origin is what set a value.
type Origin struct {
	Layer        machineconfig.Layer `json:"layer"`
	manifest.Ref `json:",inline"`

	// Path is the field within the object. Absent when the whole object is meant.
	Path string `json:"path,omitempty"`

	// Location is where that stands. Absent when the object was not among the files.
	Location *manifest.Location `json:"location,omitempty"`
}

// String is "Pool layer, TalosConfigPatch default/gpu spec.documents[0] (gpu.yaml:12: document 1)", or "Base layer, Talos v1.14 defaults".
func (o Origin) String() string {
	if o.Kind == machineconfig.KindTalos {
		return fmt.Sprintf("%s layer, %s %s %s", o.Layer, o.Kind, o.Name, o.Path)
	}

	text := fmt.Sprintf("%s layer, %s", o.Layer, o.Ref)
	if o.Path != "" {
		text += " " + o.Path
	}

	if o.Location != nil {
		text += fmt.Sprintf(" (%s:%d)", o.Location.File, o.Location.Line)
	}

	return text
}

type explainOptions struct {
	inputOptions
	output      outputFlag
	machine     string
	path        string
	showSecrets bool
}

func newExplainCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &explainOptions{inputOptions: inputOptions{IOStreams: streams}}

	command := &cobra.Command{
		Use:   "explain -f FILE... --machine NAME [PATH]",
		Short: "Tell which layer and object set each value of a machine's config, and what it covered",
		Long: `Tell which layer and object set each value of a machine's config, and what it covered.

` + filesHelp + `

PATH limits the output to one Talos document, or to what is at or below a place in one:
  UserVolumeConfig                                   every document of a kind
  UserVolumeConfig/longhorn                          one document
  UserVolumeConfig/longhorn:/provisioning/maxSize    a place in it, as a JSON Pointer
  Config:/machine/sysctls                            a place in the legacy document
  /machine/sysctls                                   the same place in every document that has it

The text format leaves out the values that only say which document they are in; the others have them.`,
		Example: `  clusterctl ichor explain -f cluster/ --machine worker-1 UserVolumeConfig/longhorn`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%q is not expected: want one PATH at most; name a directory with -f instead of many files (see '%s --help')",
					args[1], command.CommandPath())
			}

			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.path = args[0]
			}

			if err := o.validate(command); err != nil {
				return err
			}

			return o.run()
		},
	}

	o.addTo(command)
	o.output.addTo(command)
	command.Flags().StringVar(&o.machine, "machine", "", "the machine: NAME, KIND/NAME or NAMESPACE/NAME")
	command.Flags().BoolVar(&o.showSecrets, "show-secrets", false, "print secrets instead of masking them")

	return command
}

func (o *explainOptions) validate(command *cobra.Command) error {
	if err := o.inputOptions.validate(command, nil); err != nil {
		return err
	}

	if o.machine == "" {
		return usagef("--machine is missing: name the machine to explain")
	}

	if _, err := parsePlace(o.path); err != nil {
		return err
	}

	return o.output.validate()
}

func (o *explainOptions) run() error {
	set, err := o.load()
	if err != nil {
		return err
	}

	found := &findings{set: set}
	found.addProblems()

	if set.Failed() {
		return found.tellAll(&o.inputOptions)
	}

	subject, err := o.subject(set, o.machine)
	if err != nil {
		return err
	}

	rendered, err := inventory.NewRenderer(set).Render(subject, true)
	if err != nil {
		found.addRender(subject, err)

		return found.tellAll(&o.inputOptions)
	}

	newThrowaways(&o.inputOptions).tell(subject, rendered)

	where, err := parsePlace(o.path)
	if err != nil {
		return err
	}

	result := ExplainResult{Machine: machineRef(subject, rendered), Values: []ExplainedValue{}}

	for _, leaf := range rendered.Provenance.Leaves {
		if where.covers(leaf) {
			result.Values = append(result.Values, o.explained(set, subject, leaf, &rendered))
		}
	}

	if len(result.Values) == 0 {
		return &findingError{fmt.Errorf("the config of %s has nothing at %s; %s", subject.Machine.Name, o.path, where.instead(rendered.Provenance.Leaves))}
	}

	return o.output.write(o.Out, result, result.text)
}

// instead says what there is where nothing is: the values of the document, else the kind that may be meant, else the documents.
func (p place) instead(leaves []machineconfig.Leaf) string {
	var paths []string

	for _, leaf := range leaves {
		value := ExplainedValue{Document: leaf.Document, Path: leaf.Path, Value: leaf.Value.String()}
		if p.document != "" && p.pointer != "" && (place{document: p.document}).covers(leaf) && !value.identifies() {
			paths = append(paths, leaf.Document+":"+leaf.Path)
		}
	}

	if len(paths) > 0 {
		return "there are " + strings.Join(paths, ", ")
	}

	names := documentNames(leaves)

	for _, candidates := range [][]string{names, kinds(names)} {
		if near := suggest.Nearest(p.document, candidates); near != "" {
			return fmt.Sprintf("did you mean %s?", near)
		}
	}

	return "its documents are " + strings.Join(names, ", ")
}

// kinds are those of documents, each once.
func kinds(documents []string) (all []string) {
	for _, document := range documents {
		kind, _, _ := strings.Cut(document, "/")
		all = append(all, kind)
	}

	slices.Sort(all)

	return slices.Compact(all)
}

func documentNames(leaves []machineconfig.Leaf) []string {
	var names []string

	for _, leaf := range leaves {
		if !slices.Contains(names, leaf.Document) {
			names = append(names, leaf.Document)
		}
	}

	return names
}

func (o *explainOptions) explained(set *manifest.Set, subject *inventory.Subject, leaf machineconfig.Leaf, rendered *inventory.Result) ExplainedValue {
	show := func(value merge.Value) string {
		if o.showSecrets {
			return value.Reveal()
		}

		return rendered.Steady(value.String())
	}

	value := ExplainedValue{
		Document: leaf.Document, Path: leaf.Path, Value: show(leaf.Value), Secret: leaf.Secret, SetBy: originOf(set, subject, leaf.SetBy),
	}

	for _, covered := range leaf.Covered {
		value.Covered = append(value.Covered, CoveredValue{Value: show(covered.Value), SetBy: originOf(set, subject, covered.Source)})
	}

	return value
}

func originOf(set *manifest.Set, subject *inventory.Subject, source machineconfig.Source) Origin {
	ref, path := subject.Object(source)
	origin := Origin{Layer: source.Layer, Ref: ref, Path: path}

	if object := set.Object(ref); object != nil {
		location := object.At(path)
		origin.Location = &location
	}

	return origin
}

func (r ExplainResult) text(out io.Writer) error {
	var b strings.Builder

	fmt.Fprintf(&b, "%s\n", r.Machine)

	document := ""

	for _, value := range r.Values {
		if len(r.Values) > 1 && value.identifies() {
			continue
		}

		if value.Document != document {
			document = value.Document
			fmt.Fprintf(&b, "\n%s\n", document)
		}

		fmt.Fprintf(&b, "  %s: %s\n    set by  %s\n", value.Path, oneLine(value.Value), value.SetBy)

		for _, covered := range value.Covered {
			fmt.Fprintf(&b, "    covers  %s from %s\n", oneLine(covered.Value), covered.SetBy)
		}
	}

	_, err := io.WriteString(out, b.String())

	return err
}

// identifies tells a value that only says which document it is in.
func (v ExplainedValue) identifies() bool {
	switch v.Path {
	case "/apiVersion", "/kind":
		return v.Document != merge.LegacyKind
	case "/name":
		return strings.HasSuffix(v.Document, "/"+v.Value)
	default:
		return false
	}
}

// oneLine keeps a value of several lines from breaking the layout.
func oneLine(value string) string {
	if value == "" || strings.ContainsAny(value, "\n\t") {
		return fmt.Sprintf("%q", value)
	}

	return value
}

// place is a part of a config: documents by kind or identity, and a JSON Pointer; each empty for all.
type place struct{ document, pointer string }

func parsePlace(path string) (place, error) {
	if strings.HasPrefix(path, "/") {
		return place{pointer: strings.TrimRight(path, "/")}, nil
	}

	document, pointer, _ := strings.Cut(path, ":/")
	if pointer != "" {
		pointer = "/" + strings.TrimRight(pointer, "/")
	}

	if path != "" && (document == "" || strings.ContainsAny(document, " \t")) {
		return place{}, usagef("PATH is %q: write KIND/NAME:/json/pointer, KIND/NAME, KIND or /json/pointer", path)
	}

	return place{document: strings.TrimSuffix(document, ":"), pointer: pointer}, nil
}

func (p place) covers(leaf machineconfig.Leaf) bool {
	if p.document != "" && leaf.Document != p.document && !strings.HasPrefix(leaf.Document, p.document+"/") {
		return false
	}

	return leaf.Path == p.pointer || strings.HasPrefix(leaf.Path, p.pointer+"/")
}
