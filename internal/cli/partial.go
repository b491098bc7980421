// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// encodePartial writes a config that may be a part of one. Talos writes some fields of the legacy document even when nobody set
// them (token: ""), and a part with them, used as a patch later, would empty these fields. So they are left out.
func encodePartial(merged *merge.Config) ([]byte, error) {
	unset, err := alwaysWritten()
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer

	for _, document := range merged.Documents() {
		data, err := encodeDocument(document)
		if err != nil {
			return nil, err
		}

		if out.Len() > 0 {
			out.WriteString("---\n")
		}

		if _, legacy := document.(*v1alpha1.Config); !legacy {
			out.Write(data)

			continue
		}

		// Whole lines can be compared: at these two depths, the legacy document has nothing but keys.
		for line := range strings.Lines(string(data)) {
			if !unset[line] {
				out.WriteString(line)
			}
		}
	}

	return out.Bytes(), nil
}

// alwaysWritten are the lines that Talos writes for fields of the legacy document that nobody set.
func alwaysWritten() (map[string]bool, error) {
	lines := map[string]bool{}

	for _, document := range []*v1alpha1.Config{{}, {MachineConfig: &v1alpha1.MachineConfig{}, ClusterConfig: &v1alpha1.ClusterConfig{}}} {
		data, err := encodeDocument(document)
		if err != nil {
			return nil, err
		}

		for line := range strings.Lines(string(data)) {
			if _, value, _ := strings.Cut(strings.TrimSpace(line), ": "); value == `""` || value == "[]" || value == "null" {
				lines[line] = true
			}
		}
	}

	return lines, nil
}

func encodeDocument(document config.Document) ([]byte, error) {
	return encoder.NewEncoder(document, encoder.WithComments(encoder.CommentsDisabled)).Encode()
}
