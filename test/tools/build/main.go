// SPDX-License-Identifier: Apache-2.0

// Command build makes the test tools: all of them, or those named as arguments. It does nothing for those that are there.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/maesh-dev/ichor/test/tools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // The deferred call was made just above.
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("build", flag.ExitOnError)
	asJSON := flags.Bool("print", false, "print the paths as JSON, by name, on the standard output")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "Usage: build [-print] [TOOL...]\n\nTools: %s\nCache: $%s, or bin/test-tools\n\n",
			strings.Join(tools.Names(), " "), tools.CacheEnv)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	names := flags.Args()
	if len(names) == 0 {
		names = tools.Names()
	}

	builder, err := tools.NewBuilder(os.Stderr)
	if err != nil {
		return err
	}
	paths := make(map[string]string, len(names))
	for _, name := range names {
		if paths[name], err = builder.Path(ctx, name); err != nil {
			return err
		}
	}
	if !*asJSON {
		return nil
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(paths)
}
