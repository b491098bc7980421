// SPDX-License-Identifier: Apache-2.0

// Command doclinks checks the links between the Markdown files of a directory tree: that the file or directory exists,
// and that the heading does, where a link names one. It opens no address on the web. Run from the repository's root by
// make verify-docs; nothing imports it.
package main

import (
	"fmt"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	broken, err := check(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "doclinks:", err)
		os.Exit(2)
	}
	for _, b := range broken {
		fmt.Fprintln(os.Stderr, b)
	}
	if len(broken) > 0 {
		os.Exit(1)
	}
}
