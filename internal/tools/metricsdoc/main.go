// SPDX-License-Identifier: Apache-2.0

// Command metricsdoc writes the table of metrics into the documentation, between two comments. `make generate` runs it.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/maesh-dev/ichor/bootstrap/metrics"
)

const (
	page  = "docs/observability.md"
	begin = "<!-- begin of the generated table of metrics: make generate-metrics -->\n"
	end   = "<!-- end of the generated table of metrics -->\n"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "metricsdoc: %s: %v\n", page, err)
		os.Exit(1)
	}
}

func run() error {
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}

	before, rest, found := bytes.Cut(content, []byte(begin))
	if !found {
		return fmt.Errorf("the line %q is missing", begin)
	}

	_, after, found := bytes.Cut(rest, []byte(end))
	if !found {
		return fmt.Errorf("the line %q is missing", end)
	}

	var made bytes.Buffer

	made.Write(before)
	made.WriteString(begin + "\n" + metrics.Markdown() + "\n" + end)
	made.Write(after)

	if bytes.Equal(made.Bytes(), content) {
		return nil
	}

	return os.WriteFile(page, made.Bytes(), 0o644)
}
