// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/convert"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

const (
	machineTypeWorker       = "worker"
	machineTypeControlPlane = "controlplane"
)

var (
	machineTypes = []string{machineTypeWorker, machineTypeControlPlane}
	patchLayers  = []string{
		string(bootstrapv1.PatchLayerCluster), string(bootstrapv1.PatchLayerRole), string(bootstrapv1.PatchLayerPool), string(bootstrapv1.PatchLayerMachine),
	}
)

type convertOptions struct {
	inputOptions
	name        string
	layer       string
	contract    string
	machineType string
	secretsFile string
	noRender    bool
	format      string
}

func newConvertCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &convertOptions{inputOptions: inputOptions{IOStreams: streams}}

	command := &cobra.Command{
		Use:   "convert -f PATCH.yaml...",
		Short: "Turn Talos patches and configs into a TalosConfigPatch, and check that machines render with it",
		Long: `Turn Talos patches and configs into a TalosConfigPatch, print it, and check that machines render with it.

PATCH is a file with Talos documents in YAML or JSON, "$patch: delete" and the machine: and cluster: of older formats included; a
directory of such files; or "-" for standard input. Files are taken in their order. In messages, documents are counted from 0.

What a patch cannot hold is refused, with its place and what to do instead; then nothing is written. What belongs to the cluster
and comes from its secrets bundle has to be removed. Credentials go into a Secret that the patch refers to: its manifest is
written to --secrets-file, and nowhere else. Comments are not kept.

The result is rendered for a new machine of the config contract, with a throwaway secrets bundle: for --machine-type, or for both
types without it. A patch that only completes what other patches bring cannot be rendered alone: use --no-render.

It has no clusterName or clusterSelector, and applies where a TalosConfig has it in spec.patchRefs until one is set.`,
		Example: `  clusterctl ichor convert -f patch.yaml > talosconfigpatch.yaml
  clusterctl ichor convert -f controlplane-patch.yaml --contract v1.13 --machine-type controlplane
  clusterctl ichor convert -f wireguard.yaml --layer Machine --name node-1 --secrets-file node-1-secret.yaml`,
		RunE: func(command *cobra.Command, args []string) error {
			o.complete(args)

			if err := o.validate(command, args); err != nil {
				return err
			}

			return o.run()
		},
	}

	flags := command.Flags()
	flags.StringArrayVarP(&o.files, "file", "f", nil, `Talos documents to convert, or "-" for standard input; may be repeated`)
	flags.StringVar(&o.name, "name", "", "name of the TalosConfigPatch, and of its Secret (default: that of the first file)")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace to write into them (default: none)")
	flags.StringVar(&o.layer, "layer", "", "layer of the patch: "+strings.Join(patchLayers, ", ")+" (default: Role with --machine-type, else Cluster)")
	flags.StringVar(&o.contract, "contract", version.Newest().String(), "config contract to render for")
	flags.StringVar(&o.machineType, "machine-type", "", "machines to render for, and the role with layer Role: "+strings.Join(machineTypes, ", ")+" (default: both)")
	flags.StringVar(&o.secretsFile, "secrets-file", "", "file for the manifest of the Secret with the credentials; written with mode 0600")
	flags.BoolVar(&o.noRender, "no-render", false, "check the documents alone")
	flags.StringVarP(&o.format, "output", "o", outputYAML, "output format: yaml, json")

	for flag, values := range map[string][]string{"layer": patchLayers, "machine-type": machineTypes, "output": {outputYAML, outputJSON}} {
		if err := command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flags were defined above
		}
	}

	return command
}

// complete takes the "@" off, which those who know talosctl write before a file's name, and fills in what follows from the rest.
func (o *convertOptions) complete(args []string) {
	o.inputOptions.complete(args)

	for i, name := range o.files {
		o.files[i] = strings.TrimPrefix(name, "@")
	}

	if o.layer == "" {
		o.layer = string(bootstrapv1.PatchLayerCluster)
		if o.machineType != "" {
			o.layer = string(bootstrapv1.PatchLayerRole)
		}
	}

	for _, layer := range patchLayers {
		if strings.EqualFold(layer, o.layer) {
			o.layer = layer
		}
	}

	if o.name == "" && len(o.files) > 0 && o.files[0] != manifest.Stdin {
		o.name = nameOf(o.files[0])
	}
}

// nameOf makes the name of an object from that of a file.
func nameOf(file string) string {
	base := filepath.Base(filepath.Clean(file))
	stem := strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base)))

	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}

		return '-'
	}, stem)

	return strings.Trim(name, "-")
}

func (o *convertOptions) validate(command *cobra.Command, args []string) error {
	if len(o.files) == 0 {
		if len(args) > 0 {
			return noArguments(command, args)
		}

		return usagef("-f is missing: name the Talos documents to convert (see '%s --help')", command.CommandPath())
	}

	for _, name := range o.files {
		if strings.Contains(name, "\n") || strings.HasPrefix(name, "[") || strings.HasPrefix(name, "{") {
			return usagef("-f takes the name of a file: write the patch to a file, or pass it on standard input with -f -")
		}
	}

	if o.name == "" {
		return usagef("--name is missing: name the TalosConfigPatch")
	}

	if errs := validation.IsDNS1123Subdomain(o.name); len(errs) > 0 {
		return usagef("--name is %q: %s", o.name, strings.Join(errs, "; "))
	}

	if errs := validation.IsDNS1123Label(o.namespace); o.namespace != "" && len(errs) > 0 {
		return usagef("--namespace is %q: %s", o.namespace, strings.Join(errs, "; "))
	}

	return o.validateChoices()
}

func (o *convertOptions) validateChoices() error {
	for _, choice := range []struct {
		flag, value string
		of          []string
	}{
		{"layer", o.layer, patchLayers},
		{"machine-type", o.machineType, append([]string{""}, machineTypes...)},
		{"output", o.format, []string{outputYAML, outputJSON}},
	} {
		if !slices.Contains(choice.of, choice.value) {
			return usagef("--%s is %q: must be one of %s", choice.flag, choice.value, strings.Join(slices.DeleteFunc(choice.of, isEmpty), ", "))
		}
	}

	if o.layer == string(bootstrapv1.PatchLayerRole) && o.machineType == "" {
		return usagef("--machine-type is missing: it says which role a patch of layer Role is for")
	}

	contract, err := version.ParseContract(o.contract)
	if err != nil {
		return usagef("--contract: %w", err)
	}

	if !slices.ContainsFunc(version.Supported(), func(known version.Contract) bool { return known.String() == contract.String() }) {
		return usagef("--contract is %s: must be one of %s", contract, strings.Trim(fmt.Sprint(version.Supported()), "[]"))
	}

	return checkSecretsFile(o.secretsFile)
}

func isEmpty(text string) bool { return text == "" }

func (o *convertOptions) role() bootstrapv1.MachineRole {
	if o.machineType == machineTypeControlPlane {
		return bootstrapv1.MachineRoleControlPlane
	}

	return bootstrapv1.MachineRoleWorker
}

func (o *convertOptions) run() error {
	documents, err := o.read()
	if err != nil {
		return err
	}

	options := convert.Options{Name: o.name, Namespace: o.namespace, Layer: bootstrapv1.PatchLayer(o.layer), Secrets: o.secretsFile != ""}
	if options.Layer == bootstrapv1.PatchLayerRole {
		options.Role = o.role()
	}

	result, err := convert.Convert(documents, options)
	if refused, ok := errors.AsType[*convert.Error](err); ok {
		return o.tellFaults(refused.Faults)
	}

	if err != nil {
		return err
	}

	if err = o.check(result); err != nil {
		return err
	}

	return o.write(result)
}

// read reads the files and checks that they are YAML or JSON at all.
func (o *convertOptions) read() ([]convert.Document, error) {
	read, err := manifest.Files{Names: o.files, Stdin: o.In}.Read()

	faults := []error{err}
	documents := make([]convert.Document, 0, len(read))

	for _, each := range read {
		if err := each.Syntax(); err != nil {
			faults = append(faults, err)

			continue
		}

		documents = append(documents, convert.Document{File: each.File, Index: each.Document, Data: each.Data, Commented: each.Commented})
	}

	return documents, errors.Join(faults...)
}

// tellFaults writes what could not be converted.
func (o *convertOptions) tellFaults(faults []convert.Fault) error {
	found := &findings{set: &manifest.Set{}}

	for _, fault := range faults {
		found.add(placed(fault.Place, fault.Message), "")
	}

	return found.tellAll(&o.inputOptions)
}

// placed is an error at a place of the input.
func placed(place convert.Place, message string) Finding {
	finding := Finding{Severity: SeverityError, Document: place.Document, Field: place.Pointer, Message: message}
	if place.File != "" {
		finding.Location = &manifest.Location{File: place.File, Document: place.Index, Line: place.Line}
	}

	return finding
}

// check finds what admission and a render refuse of the patch.
func (o *convertOptions) check(result *convert.Result) error {
	found := &findings{set: &manifest.Set{}}

	if err := o.admit(result, found); err != nil {
		return err
	}

	switch {
	case found.count(SeverityError) > 0:
	case o.noRender:
		for _, fault := range machineconfig.Errors(machineconfig.ParsePatch(result.Patch).Check()) {
			found.add(ofRender(result, fault), "")
		}
	default:
		if err := o.renderAlone(result, found); err != nil {
			return err
		}

		if found.count(SeverityError) == 0 {
			defer o.tellOldForms(result)
		} else if slices.ContainsFunc(found.all, lacksSomething) {
			defer o.tell("note", "a patch that only completes what other patches or objects bring cannot be rendered alone: use --no-render")
		}
	}

	return found.tellAll(&o.inputOptions)
}

// lacking are words of Talos' validation for what another patch may bring.
var lacking = regexp.MustCompile(`\b(?:is|are) required\b|\bmust (?:always )?be (?:set|specified|provided)\b|\bcannot be empty\b`)

// lacksSomething tells an error that goes away when another patch completes the document.
func lacksSomething(finding *Finding) bool {
	return finding.Reason == machineconfig.ReasonValidationFailed && lacking.MatchString(finding.Message)
}

// tellOldForms tells what stands in the legacy document that the config contract has elsewhere.
func (o *convertOptions) tellOldForms(result *convert.Result) {
	contract, err := version.ParseContract(o.contract)
	if err != nil {
		return // a render has read it
	}

	for _, each := range result.OldForms(contract) {
		finding := placed(each.Place, each.Message)
		o.tell("note", finding.String())
	}
}

// admit checks the patch as the API server does.
func (o *convertOptions) admit(result *convert.Result, found *findings) error {
	rules, err := loadRules()
	if err != nil {
		return fmt.Errorf("the definitions in this program are broken: %w", err)
	}

	patch := result.Patch.DeepCopy()
	if patch.Namespace == "" {
		patch.Namespace = metav1.NamespaceDefault // as kubectl fills it in
	}

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(patch)
	if err != nil {
		return err
	}

	refused, err := rules.Check(content)
	if err != nil {
		return err
	}

	for _, each := range refused {
		place, ok := result.Find(each.Field)
		message := each.Message

		if !ok {
			message = strings.TrimPrefix(cmp.Or(each.Field, "the patch")+": ", ": ") + message
		}

		found.add(placed(place, message), "")
	}

	return nil
}
