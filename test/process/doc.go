// SPDX-License-Identifier: Apache-2.0

// Package process runs the components of the test world: each a child process with its output in a file, which ends with
// this process, however this one ends on Linux.
//
// It is not pure, and only packages under test/ and programs that start the test world may import it.
package process
