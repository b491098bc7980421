// SPDX-License-Identifier: Apache-2.0

// Command release writes the files of a release, or a repository for clusterctl that has them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/maesh-dev/ichor/internal/release"
)

func main() {
	options := release.Options{Root: "."}
	repository := flag.Bool("repository", false, "write a repository for clusterctl, and a configuration that leads there")
	flag.StringVar(&options.Version, "version", "", "version of the release, for instance v0.1.0")
	flag.StringVar(&options.Registry, "registry", "", "what comes before the names of the images, for instance registry.example.com/ichor")
	flag.StringVar(&options.Output, "output", "", "directory to write to")
	flag.Parse()

	if err := run(os.Stdout, options, *repository); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(out io.Writer, options release.Options, repository bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if !repository {
		if err := release.Write(ctx, options); err != nil {
			return err
		}

		_, err := fmt.Fprintf(out, "wrote %s\n", options.Output)

		return err
	}

	if err := release.WriteRepository(ctx, options); err != nil {
		return err
	}

	config, err := filepath.Abs(filepath.Join(options.Output, release.ConfigFile))
	if err != nil {
		return err
	}

	_, err = fmt.Fprintf(out, "wrote %s\nuse it with: clusterctl init --config %s --bootstrap ichor ...\n", options.Output, config)

	return err
}
