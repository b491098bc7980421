// SPDX-License-Identifier: Apache-2.0

// Package merge lays Talos documents over each other by Talos' strategic merge
// rules, without the data loss of machinery's own merge, and can tell for every
// leaf what a patch did to it.
//
// # Rules
//
// A document is found by kind and name; a document that is not there is
// appended. Fields of a struct merge one by one, maps key by key, lists append,
// except where Talos' `merge:"replace"` tag replaces them. Lists with a rule of
// their own in Talos (legacy interfaces and vlans, admission plugins, extension
// config files, image verification rules) merge by Talos' key.
//
// What counts is what the patch says, not which Go values are non-zero: a field
// that the patch does not mention is kept, a field that it mentions is set,
// its zero value included ("accept", "none", 0, ""). Values that are one thing
// to a reader (a URL, a size, a CEL expression) are replaced as a whole.
// Machinery decides by Go values, and so erases disk selectors and sizes,
// ignores explicit zeros, and mixes the parts of two URLs; docs/upstream.md
// tells the details.
//
// Where Talos' rule would lead to a config that Talos then refuses, there are
// three deviations:
//   - a HostnameConfig patch that sets only `hostname` clears `auto`, one that
//     sets only `auto` (other than off) clears `hostname`;
//   - a legacy inline manifest whose name exists replaces that manifest;
//   - inside free-form values (kubelet config and the like) a scalar replaces a
//     scalar of any type.
//
// A YAML or JSON null says nothing at a field, as in Talos. As the value of a
// map entry it is the empty value (`labels: {a: }` sets a to ""), as in Talos.
// Inside free-form values it is a null. In a list of objects it is an error.
//
// # Deletions
//
// `$patch: delete` works in all of Talos' forms, and [Config.Delete] does the
// same for a JSON pointer. A target that does not exist is a no-op; a field
// that the kind does not have is an error.
//
// The package is PURE. It imports machinery's config packages and, of ours,
// version and suggest. The renderer (internal/machineconfig) and the command line's `patch`
// import it.
package merge
