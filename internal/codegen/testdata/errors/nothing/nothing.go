// SPDX-License-Identifier: Apache-2.0

// Package nothing registers no kind.
package nothing
