// SPDX-License-Identifier: Apache-2.0

// Package convert turns Talos documents, as users of Talos keep them in files, into a TalosConfigPatch: patches and whole machine
// configs, `$patch: delete` included. What the patch cannot hold is refused, all of it at once, with its place in the file and
// what to do instead; nothing is dropped. Credentials move into a Secret that the patch refers to. Before a conversion is given
// out, the patch is turned back into Talos documents and compared with what was read.
//
// What it says names fields and never a value that could be a secret.
//
// The package is PURE. The command line imports it; it imports the API, the renderer and its merge.
package convert
