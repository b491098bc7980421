// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of Ichor, which clusterctl and kubectl find as a plugin: render, explain, validate, patch,
// convert, version and completion. It works on files and needs no cluster.
//
// Each command is an options struct with Complete, Validate and Run. The exit status is 0 when all is well, 1 when something was
// found to be wrong, and 2 for wrong usage and input that cannot be read. The Go types that the commands write with -o json and
// -o yaml are the documentation of these formats; a field is added to them when needed, and none is renamed or removed.
//
// No command shows a secret unless --show-secrets is given, in no output, warning or error. Only patch does not mask: it is a
// filter on the user's own files. convert writes the secrets that it finds to a file that the user names, and nowhere else.
//
// package main of cmd/clusterctl-ichor imports it; it imports the pure packages.
package cli
