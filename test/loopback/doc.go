// SPDX-License-Identifier: Apache-2.0

// Package loopback hands out loopback ports and addresses, so that programs of several test worlds, in any process of this machine,
// do not meet. What is reserved is a locked file; the kernel frees it when the process ends, however that comes about.
//
// It is not pure, and only packages under test/ may import it.
package loopback
