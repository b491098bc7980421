// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/version"
)

// Each field of machinery that holds an expression is in the table, and no other.
func TestEveryExpressionIsKnown(t *testing.T) {
	t.Parallel()

	var want, got []string

	for _, kind := range version.Kinds() {
		if kind == "v1alpha1" {
			continue
		}

		provider, err := configloader.NewFromBytes([]byte("apiVersion: v1alpha1\nkind: "+kind+"\n"), configloader.WithNoValidation())
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}

		for _, pointer := range expressionsIn(reflect.TypeOf(provider.Documents()[0]).Elem(), nil) {
			want = append(want, kind+pointer)
		}

		for _, field := range expressionFields[kind] {
			got = append(got, kind+field.pointer)
		}
	}

	slices.Sort(want)
	slices.Sort(got)

	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	if len(got) < 10 {
		t.Errorf("%d fields found", len(got))
	}
}

func expressionsIn(of reflect.Type, above []reflect.Type) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}

	if of == reflect.TypeFor[cel.Expression]() {
		return []string{""}
	}

	if of.Kind() != reflect.Struct || slices.Contains(above, of) {
		return nil
	}

	var pointers []string

	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}

		for _, pointer := range expressionsIn(field.Type, append(above, of)) {
			pointers = append(pointers, "/"+name+pointer)
		}
	}

	return pointers
}

// Many expressions are not read without end.
func TestExpressionsOfAPatchAreBounded(t *testing.T) {
	t.Parallel()

	patch, err := merge.Load([]byte("apiVersion: v1alpha1\nkind: OOMConfig\ntriggerExpression: 'true'\ncgroupRankingExpression: '1.0'\n"))
	if err != nil {
		t.Fatal(err)
	}

	document := patch.Documents()[0].Document

	for letters, want := range map[int]int{7: 0, 6: 1, 0: 2} {
		left := letters
		if got := len(badExpressions(document, &left)); got != want {
			t.Errorf("%d letters: %d findings, want %d", letters, got, want)
		}
	}
}
