// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// result is one figure. A limit of zero forbids everything; one without a limit is told only.
type result struct {
	name     string
	measured float64
	unit     string
	limit    float64
	limited  bool
	note     string
}

func (r result) ok() bool { return !r.limited || r.measured <= r.limit }

func limited(name string, measured float64, unit string, limit float64, note string) result {
	return result{name: name, measured: measured, unit: unit, limit: limit, limited: true, note: note}
}

func told(name string, measured float64, unit, note string) result {
	return result{name: name, measured: measured, unit: unit, note: note}
}

// printResults prints the table and returns how many results are above their limit.
func printResults(out io.Writer, results []result) (int, error) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tMEASURED\tLIMIT\tOK\t")

	failed := 0

	for _, each := range results {
		verdict := "-"

		if each.limited {
			verdict = "yes"
		}

		if !each.ok() {
			verdict = "NO"
			failed++
		}

		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", each.name, amount(each.measured, each.unit), each.limitText(), verdict, each.note)
	}

	return failed, table.Flush()
}

func (r result) limitText() string {
	if !r.limited {
		return "-"
	}

	return amount(r.limit, r.unit)
}

// Units of results.
const (
	times  = "x"
	units  = ""
	micros = "µs"
	millis = "ms"
	second = "s"
	mega   = "MB"
	octets = "B"
)

// amount writes counts and bytes without what they cannot have.
func amount(value float64, unit string) string {
	switch {
	case unit == octets, unit == micros, unit == millis, unit == units && value == float64(int64(value)):
		return fmt.Sprintf("%.0f%s", value, unit)
	default:
		return fmt.Sprintf("%.2f%s", value, unit)
	}
}
