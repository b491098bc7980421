// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"fmt"
	"strings"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// choiceMarkers are the rules between the fields of a struct.
func choiceMarkers(s *model.Struct) []string {
	var out []string

	for _, f := range s.Fields {
		if f.Choice != nil {
			out = append(out, secretRule(choiceRule(f.JSON, f.Choice), f.Choice.Message))
		}
	}

	return out
}

// choiceRule says that a field is set only for values that have a type, and has the fields of that type alone.
func choiceRule(field string, c *model.Choice) string {
	var (
		names []string
		parts []string
	)

	for _, of := range c.Of {
		quoted := make([]string, 0, len(of.For))
		for _, name := range of.For {
			quoted = append(quoted, "'"+name+"'")
		}

		names = append(names, quoted...)

		var has []string
		for _, f := range of.Fields {
			has = append(has, "has(c."+f+")")
		}

		if of.Kind != "" {
			has = append(has, "has(c.kind)&&c.kind=='"+of.Kind+"'")
		}

		parts = append(parts, fmt.Sprintf("(n in [%s]||!(%s))", strings.Join(quoted, ","), strings.Join(has, "||")))
	}

	rule := fmt.Sprintf("!has(self.%s)||has(self.%s)&&self.%s in [%s]", field, c.By, c.By, strings.Join(names, ","))
	if len(c.Of) < 2 {
		return rule
	}

	// The lists of one keep the rule short: each value is named once.
	return rule + fmt.Sprintf("&&[self.%s].all(n,[self.%s].all(c,%s))", c.By, field, strings.Join(parts, "&&"))
}

// choiceTags tell the encoder what choiceRule tells the API server: by:"name" with the fields and the kind of each value.
func choiceTags(c *model.Choice) string {
	var choices []string

	for _, of := range c.Of {
		fields := of.Fields
		if of.Kind != "" {
			fields = append([]string{"kind=" + of.Kind}, fields...)
		}

		for _, name := range of.For {
			choices = append(choices, name+":"+strings.Join(fields, ","))
		}
	}

	return fmt.Sprintf(" by:%q choices:%q", c.By, strings.Join(choices, ";"))
}
