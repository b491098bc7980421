// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	state, err := findState()
	if err != nil {
		return err
	}

	if len(args) == 1 {
		switch args[0] {
		case "up":
			return up(ctx, state)
		case "down":
			return down(ctx, state)
		case serveCommand:
			return serve(ctx, state)
		}
	}

	return fmt.Errorf("usage: demo up | demo down")
}
