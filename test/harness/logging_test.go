// SPDX-License-Identifier: Apache-2.0

package harness_test

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/test/harness"
)

func TestLogger(t *testing.T) {
	g := NewWithT(t)

	var out bytes.Buffer

	logger := harness.NewLogger(&out).WithName("queue").WithValues("controller", "talosconfig")
	logger.V(5).Info("workqueue_items", "items", "left out")
	logger.V(7).Info("Response Body", "body", "kept")
	logger.V(8).Info("too much")
	logger.Error(nil, "workqueue_items")

	g.Expect(out.String()).To(And(
		ContainSubstring("Response Body"), ContainSubstring(`controller="talosconfig"`), ContainSubstring("workqueue_items"),
		Not(ContainSubstring("left out")), Not(ContainSubstring("too much"))))
}
