// SPDX-License-Identifier: Apache-2.0

package yamlsyntax

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Marshal writes an object as YAML by its JSON form, as sigs.k8s.io/yaml does, with every character that JSON may have: YAML has some
// only as escapes, so that sigs.k8s.io/yaml refuses them, or reads a line break of another age as a space (YAML 1.2.2, 5.1 and 5.4).
func Marshal(object any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}

	return yaml.JSONToYAML([]byte(escaped(string(data))))
}

// escaped escapes what YAML has only as escapes in a JSON text, where it stands in strings alone.
func escaped(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}

	var b strings.Builder

	for _, r := range text {
		if unprintable(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}

	return b.String()
}

// unprintable are the characters from DEL on that YAML calls so, the line break of EBCDIC, and the byte order mark. Those before DEL are
// escaped in JSON, too.
func unprintable(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff
}
