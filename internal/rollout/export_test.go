// SPDX-License-Identifier: Apache-2.0

package rollout

// ConfigFields are the fields of a TalosConfigSpec that are compared.
func ConfigFields() []string {
	out := make([]string, 0, len(configFields))
	for _, field := range configFields {
		out = append(out, field.name)
	}

	return out
}
