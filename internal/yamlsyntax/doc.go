// SPDX-License-Identifier: Apache-2.0

// Package yamlsyntax says where a text is not YAML, and what to do about the mistakes that people make; and it writes YAML with every character that
// there is.
//
// The package is PURE. Whatever reads YAML that people write, or writes it for them, may import it.
package yamlsyntax
