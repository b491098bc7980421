// SPDX-License-Identifier: Apache-2.0

// Package rollout breaks the rules for pure packages.
package rollout

import (
	"context" // want "depguard: .*context.*a pure package waits for nothing"
	"fmt"
	"log/slog"     // want "depguard: .*log/slog.*a pure package returns what it has to say"
	"math/rand/v2" // want "depguard: .*math/rand/v2.*randomness is an input of a pure package"
	"os"           // want "depguard: .*os.*a pure package does no input or output"
	"time"

	"github.com/go-logr/logr"                          // want "depguard: .*go-logr/logr.* is not allowed from list 'pure'"
	"github.com/siderolabs/talos/pkg/machinery/config" // want "depguard: .*machinery/config.* is not allowed from list 'pure'"
	"google.golang.org/grpc"                           // want "depguard: .*google.golang.org/grpc.* is not allowed from list 'pure'"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	krand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client" // want "depguard: .*pkg/client.* is not allowed from list 'pure'"

	"github.com/maesh-dev/ichor/internal/talos" // want "depguard: .*internal/talos.* is not allowed from list 'pure'"
)

// Inputs keeps the imports in use.
func Inputs(context.Context, client.Client, *grpc.ClientConn, logr.Logger, config.Provider, *slog.Logger, talos.Node) {
}

// Age depends on when and where it is called.
func Age(start time.Time) string {
	now := time.Now()                                           // want "forbidigo: .*time.Now.*pure: time is an input"
	_ = time.Since(start)                                       // want "forbidigo: .*time.Since.*pure: time is an input"
	_ = metav1.Now()                                            // want "forbidigo: .*metav1.Now.*pure: time is an input"
	fmt.Println(now)                                            // want "forbidigo: .*fmt.Println.*write to the stream"
	return fmt.Sprint(krand.String(4), rand.Int(), os.Getpid()) // want "forbidigo: .*krand.String.*pure: randomness is an input"
}
