// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
)

// leaks says where a secret is and must not be: in the log of any program that has run, or in any object that is no Secret.
func leaks(ctx context.Context) error {
	found, err := search.Leaks(ctx, "")
	for _, leak := range found {
		err = errors.Join(err, errors.New(leak))
	}

	return err
}

// checkSecrets looks for every secret in everything that is none, and that it looks for something.
func checkSecrets(t *testing.T, w *tenant) {
	g := NewWithT(t)

	texts, err := search.Texts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(texts).To(And(HaveKey("hunter3-hunter3"), HaveKey("hunter2-hunter2")))

	for _, origin := range []string{"c-ca tls.key", "c-talos bundle.cluster.secret", "c-talos bundle.certs.os.key", "c-talosconfig talosconfig.contexts.c.key"} {
		g.Expect(texts.Origins()).To(ContainElement(w.namespace + "/" + origin))
	}

	g.Expect(leaks(t.Context())).To(Succeed())
}
