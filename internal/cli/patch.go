// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

type patchOptions struct {
	genericiooptions.IOStreams
	base    string
	patches []string
}

// masked finds values that a render has masked: merged, they would make a config that no node can use.
var masked = regexp.MustCompile(`(?m)^[^#\n]*[:-] +['"]?` + regexp.QuoteMeta(merge.Mask) + `['"]?\s*$`)

func newPatchCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &patchOptions{IOStreams: streams}

	command := &cobra.Command{
		Use:   "patch -f BASE.yaml -p PATCH.yaml...",
		Short: "Merge Talos documents into a Talos config, without losing what a patch does not mention",
		Long: `Merge Talos documents into a Talos config, as Ichor does, and print the result.

BASE is a machine config or any part of one; each PATCH is a file with Talos documents, "$patch: delete" included.
Patches apply in their order. "-" is standard input, for one of them.

What a patch does not mention is kept, and what it mentions is set, zero values included. "talosctl machineconfig patch" loses
disk selectors, sizes and explicit zeros in such merges. Comments of the files are not kept.

Nothing is masked: this is a filter on your own files.`,
		Example: `  clusterctl ichor patch -f controlplane.yaml -p volumes.yaml -p node-1.yaml > node-1-config.yaml`,
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			o.complete()

			if err := o.validate(); err != nil {
				return err
			}

			return o.run()
		},
	}

	command.Flags().StringVarP(&o.base, "file", "f", "", `config to patch; "-" is standard input`)
	command.Flags().StringArrayVarP(&o.patches, "patch", "p", nil, `patch to apply; "-" is standard input; may be repeated`)

	return command
}

// complete takes the "@" off, which those who know talosctl write before a file's name.
func (o *patchOptions) complete() {
	for i, name := range o.patches {
		o.patches[i] = strings.TrimPrefix(name, "@")
	}
}

func (o *patchOptions) validate() error {
	if o.base == "" {
		return usagef("-f is missing: name the config to patch")
	}

	if len(o.patches) == 0 {
		return usagef("-p is missing: name at least one patch")
	}

	stdin := 0

	for _, name := range append([]string{o.base}, o.patches...) {
		if name == manifest.Stdin {
			stdin++
		}

		if strings.Contains(name, "\n") || strings.HasPrefix(name, "[") || strings.HasPrefix(name, "{") {
			return usagef("-p takes the name of a file: write the patch to a file, or pass it on standard input with -p -")
		}
	}

	if stdin > 1 {
		return usagef("standard input was named more than once")
	}

	return nil
}

func (o *patchOptions) run() error {
	merged, err := o.readBase()
	if err != nil {
		return err
	}

	for _, name := range o.patches {
		data, err := o.read(name)
		if err != nil {
			return err
		}

		patch, err := merge.Load(data)
		if err == nil {
			err = merged.Apply(patch, nil)
		}

		if err != nil {
			return inFile(name, err)
		}
	}

	if _, err = merged.Provider(); err != nil {
		return &findingError{fmt.Errorf("the result is no config that Talos takes: %w", err)}
	}

	encoded, err := encodePartial(merged)
	if err != nil {
		return &findingError{err}
	}

	_, err = o.Out.Write(encoded)

	return err
}

// readBase reads the config with the strictness that patches have, so that a mistake in it is named as well.
func (o *patchOptions) readBase() (*merge.Config, error) {
	data, err := o.read(o.base)
	if err != nil {
		return nil, err
	}

	if len(manifest.Split(o.base, data)) == 0 {
		return nil, inFile(o.base, errors.New("the config to patch is empty: want at least one Talos document"))
	}

	loaded, err := merge.Load(data)
	if err != nil {
		return nil, inFile(o.base, err)
	}

	var (
		documents []config.Document
		seen      = map[merge.ID]int{}
	)

	for _, document := range loaded.Documents() {
		if len(document.Deletions) > 0 {
			return nil, inFile(o.base, &merge.Error{Index: document.Index, ID: document.ID, Err: errors.New("$patch has no meaning in the config to patch: remove it")})
		}

		if first, twice := seen[document.ID]; twice {
			return nil, inFile(o.base, &merge.Error{
				Index: document.Index, ID: document.ID, Err: fmt.Errorf("document %d is the same one: a config has it once", first),
			})
		}

		seen[document.ID] = document.Index
		documents = append(documents, document.Document)
	}

	provider, err := container.New(documents...)
	if err != nil {
		return nil, inFile(o.base, err)
	}

	return merge.New(provider), nil
}

func (o *patchOptions) read(name string) ([]byte, error) {
	data, err := manifest.Read(name, o.In)
	if err != nil {
		return nil, err
	}

	if name == manifest.Stdin {
		name = "standard input"
	}

	if masked.Match(data) {
		return nil, inFile(name, fmt.Errorf("has masked values (%s), as render prints them: print the config with render --show-secrets", merge.Mask))
	}

	for _, document := range manifest.Split(name, data) {
		if err := document.Syntax(); err != nil {
			return nil, err
		}
	}

	return data, nil
}

func inFile(name string, err error) error {
	if name == manifest.Stdin {
		name = "standard input"
	}

	return &findingError{fmt.Errorf("%s: %w", name, err)}
}

// noArguments refuses arguments in words that help: a forgotten -f is the usual cause.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%q is not expected: files are named with -f (see '%s --help')", args[0], command.CommandPath())
	}

	return nil
}
