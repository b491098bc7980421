// SPDX-License-Identifier: Apache-2.0

// Package certmanager plays cert-manager's part in a management cluster of the test world: it issues the certificates that
// Certificates of self-signed Issuers ask for, and puts their authority into the webhook configurations and definitions that are
// annotated with cert-manager.io/inject-ca-from. Its definitions hold what a provider's installation and clusterctl's check of
// cert-manager use, and refuse what they do not know.
//
// The behaviour is that of cert-manager 1.x, as its documentation has it: a self-signed certificate is its own ca.crt, a Secret
// that is gone or does not fit its Certificate is issued again, and the Secret stays when the Certificate goes.
//
// It is not pure, and only packages under test/ may import it.
package certmanager
