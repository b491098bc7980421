// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// SecretReport tells, for every field that is a secret or is called like one, what becomes of it: a line for each.
func SecretReport(api *model.API) []byte {
	var out bytes.Buffer

	for _, s := range api.Secrets {
		why := s.Why
		if s.Decision == model.Refused {
			_, why, _ = strings.Cut(why, ": ") // the message begins with the field, which stands here already
		}

		fmt.Fprintf(&out, "%-11s  %s %s: %s\n", s.Decision, s.Kind, s.Path, why)
	}

	return out.Bytes()
}
