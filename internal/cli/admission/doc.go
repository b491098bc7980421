// SPDX-License-Identifier: Apache-2.0

// Package admission checks objects of Ichor's kinds as the API server would when they are created: unknown fields, types,
// patterns, limits, lists with keys, and the rules in CEL, all taken from the CustomResourceDefinitions that are installed. It
// needs no API server. What it says names fields and never a value that could be a secret.
//
// The command line imports it; it imports the API server's own libraries for custom resources.
package admission
