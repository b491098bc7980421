// SPDX-License-Identifier: Apache-2.0

// Package history tells since when Talos knows document kinds, fields and values: it reads machinery's source of several minors
// and compares them.
//
// A build holds one version of machinery, so the others are read as syntax. Nothing of them is compiled, and none of what they
// need is fetched: a type is followed by its name as long as it is machinery's, and is a leaf where it is not.
//
// Not pure: it runs the go command and reads source files. Only internal/codegen and the tests of its output may import it.
package history
