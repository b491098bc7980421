// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/maesh-dev/ichor/internal/yamlsyntax"
)

// Output formats.
const (
	outputText = "text"
	outputYAML = "yaml"
	outputJSON = "json"
)

var outputFormats = []string{outputText, outputYAML, outputJSON}

// outputFlag is the -o flag.
type outputFlag struct{ format string }

func (o *outputFlag) addTo(command *cobra.Command) {
	command.Flags().StringVarP(&o.format, "output", "o", outputText, "output format: "+strings.Join(outputFormats, ", "))

	if err := command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputFormats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was defined on the line before
	}
}

func (o *outputFlag) validate() error {
	if !slices.Contains(outputFormats, o.format) {
		return usagef("--output is %q: must be one of %s", o.format, strings.Join(outputFormats, ", "))
	}

	return nil
}

// write writes a result as JSON or YAML, or with text in the text format.
func (o *outputFlag) write(out io.Writer, result any, text func(io.Writer) error) error {
	// All is formed before anything is written, so that an error leaves no half output behind.
	var buffer bytes.Buffer

	switch o.format {
	case outputJSON:
		encoder := json.NewEncoder(&buffer)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")

		if err := encoder.Encode(result); err != nil {
			return err
		}
	case outputYAML:
		data, err := yamlsyntax.Marshal(result)
		if err != nil {
			return err
		}

		buffer.Write(data)
	default:
		if err := text(&buffer); err != nil {
			return err
		}
	}

	if _, err := out.Write(buffer.Bytes()); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}

	return nil
}
