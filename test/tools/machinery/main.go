// SPDX-License-Identifier: Apache-2.0

// Command machinery-validate loads machine configurations as strictly as a Talos node does and validates them, with the
// machinery of the Talos minor that it is built against. It answers whether a node of that minor would take a
// configuration which newer machinery wrote.
//
// It lies in a module of its own because one program can hold one version of machinery only. The module has one go.mod
// file for each minor: go.mod for the newest, talos-<minor>.mod for the others.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
)

// verdict is printed for each configuration, as one line of JSON.
type verdict struct {
	File     string   `json:"file"`
	OK       bool     `json:"ok"`
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// mode says where a node runs, which decides what its configuration needs.
type mode string

var modes = map[mode]struct{}{"metal": {}, "cloud": {}, "container": {}}

func (m mode) String() string { return string(m) }

// RequiresInstall is true on metal alone: cloud images are installed already.
func (m mode) RequiresInstall() bool { return m == "metal" }

// InContainer tells that the kernel is not the node's own.
func (m mode) InContainer() bool { return m == "container" }

func main() {
	ok, err := run(os.Args[1:], os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "machinery-validate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) (ok bool, err error) {
	flags := flag.NewFlagSet("machinery-validate", flag.ContinueOnError)
	modeName := flags.String("mode", "metal", "where the node runs: metal, cloud or container")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "Usage: machinery-validate [-mode MODE] [FILE...]  (no file, or -: standard input)")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return errors.Is(err, flag.ErrHelp), err
	}
	if _, known := modes[mode(*modeName)]; !known {
		return false, fmt.Errorf("mode %q: use metal, cloud or container", *modeName)
	}
	files := flags.Args()
	if len(files) == 0 {
		files = []string{"-"}
	}

	ok = true
	out := json.NewEncoder(stdout)
	for _, file := range files {
		content, err := read(file, stdin)
		if err != nil {
			return false, err
		}
		v := validate(content, mode(*modeName))
		v.File = file
		ok = ok && v.OK
		if err := out.Encode(v); err != nil {
			return false, err
		}
	}
	return ok, nil
}

func read(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}

// validate never panics on a bad configuration: some checks of machinery follow pointers that a damaged document leaves
// empty, and that is a finding, not a reason to end.
func validate(content []byte, m mode) (v verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = verdict{Error: fmt.Sprintf("machinery panicked: %v", p)}
		}
	}()
	config, err := configloader.NewFromBytes(content)
	if err != nil {
		return verdict{Error: fmt.Sprintf("load: %v", err)}
	}
	// Local leaves out the checks of the machine that the program runs on, which is not the node.
	warnings, err := config.Validate(m, validation.WithLocal())
	if err != nil {
		return verdict{Error: fmt.Sprintf("validate: %v", err), Warnings: warnings}
	}
	return verdict{OK: true, Warnings: warnings}
}
