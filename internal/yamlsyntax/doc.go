// SPDX-License-Identifier: Apache-2.0

// Package yamlsyntax says where a text is not YAML, and what to do about the mistakes that people make.
//
// The package is PURE. Whatever reads YAML that people write may import it.
package yamlsyntax
