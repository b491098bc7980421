// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/maesh-dev/ichor/internal/cli/manifest"
)

// Exit status of the program.
const (
	ExitFine     = 0
	ExitFindings = 1
	ExitUsage    = 2
)

// errFindings ends a command that has told its findings already.
var errFindings = errors.New("findings")

// usageError is a mistake in the call of a command.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// findingError is something wrong with the content of the input.
type findingError struct{ err error }

func (e *findingError) Error() string { return e.err.Error() }
func (e *findingError) Unwrap() error { return e.err }

// Main runs the program and returns its exit status. args are those of the process, with the program's name first; version is
// that of the build.
func Main(args []string, version string, streams genericiooptions.IOStreams) int {
	command := NewCommand(args[0], version, streams)
	command.SetArgs(args[1:])

	err := command.Execute()
	if err == nil {
		return ExitFine
	}

	if errors.Is(err, errFindings) {
		return ExitFindings
	}

	for _, each := range apart(err) {
		_, _ = fmt.Fprintf(streams.ErrOut, "error: %s\n", each) // nobody is left to be told of an error here
	}

	var (
		finding    *findingError
		unreadable *manifest.UnreadableError
	)

	if errors.As(err, &finding) && !errors.As(err, &unreadable) {
		return ExitFindings
	}

	return ExitUsage
}

// apart takes joined errors apart, so that each has a line of its own.
func apart(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}

	var all []error
	for _, each := range joined.Unwrap() {
		all = append(all, apart(each)...)
	}

	return all
}

// NewCommand makes the root command. program is the path that the program was called by, from which it takes its name.
func NewCommand(program, version string, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "clusterctl-ichor",
		Short: "See and check the Talos machine configs that Ichor makes",
		Long: `See and check the Talos machine configs that Ichor makes, from manifests in files and without a cluster.

Exit status: 0 fine, 1 something was found to be wrong, 2 wrong usage or input that cannot be read.
Secrets are never shown unless --show-secrets is given.`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: displayName(program)},
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return command.Help()
		},
	}

	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usagef("%w (see '%s --help')", err, command.CommandPath())
	})

	command.AddCommand(
		newRenderCommand(streams),
		newExplainCommand(streams),
		newValidateCommand(streams),
		newPatchCommand(streams),
		newConvertCommand(streams),
		newVersionCommand(version, streams),
	)

	return command
}

// displayName is how users call the program: as a plugin of clusterctl or kubectl.
func displayName(program string) string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")

	for _, host := range []string{"clusterctl", "kubectl"} {
		if plugin, ok := strings.CutPrefix(name, host+"-"); ok {
			return host + " " + plugin
		}
	}

	return "clusterctl ichor"
}
