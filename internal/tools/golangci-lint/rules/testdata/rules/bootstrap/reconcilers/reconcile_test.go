// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"testing"

	"github.com/maesh-dev/ichor/test/talossim"
)

// Tests may use the test world.
func TestReconcile(t *testing.T) {
	if _, err := Reconcile(nil); err != nil {
		t.Fatal(talossim.Name, err)
	}
}
