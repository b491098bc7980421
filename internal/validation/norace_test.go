// SPDX-License-Identifier: Apache-2.0

//go:build !race

package validation

const allocationFactor = 1
