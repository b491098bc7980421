// SPDX-License-Identifier: Apache-2.0

package yamlsyntax

import (
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	sigsyaml "sigs.k8s.io/yaml"
)

// Every character that a string may have comes back, as a key and as a value, whoever reads it.
func TestMarshal(t *testing.T) {
	for r := rune(0); r <= 0x10ffff; r++ {
		// All are tried where readers make differences, and some of the others.
		if !utf8.ValidRune(r) || r > 0x2100 && r%0x101 != 0 && (r < 0xfe00 || r > 0x10100) {
			continue
		}

		text := "a" + string(r) + "b"

		data, err := Marshal(map[string]string{text: text})
		if err != nil {
			t.Fatalf("%U: %v", r, err)
		}

		for reader, read := range map[string]func([]byte, any) error{
			"kubectl": func(data []byte, into any) error { return sigsyaml.Unmarshal(data, into) },
			"Talos":   func(data []byte, into any) error { return yaml.Unmarshal(data, into) },
		} {
			var back map[string]string
			if err := read(data, &back); err != nil || back[text] != text {
				t.Fatalf("%U: read by %s: %q of %q: %v", r, reader, back, data, err)
			}
		}
	}

	if _, err := Marshal(func() {}); err == nil {
		t.Error("a function was written")
	}
}
