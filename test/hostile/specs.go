// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// The webhooks look at specs of so many bytes and values.
const (
	Largest    = 1 << 20
	ManyValues = 20_000
)

// Specs are specs of TalosConfigPatches that are made to be slow, as large as they can be or as their lists may be long, by what they are made
// of.
func Specs() map[string]string {
	specs := numerous()
	maps.Copy(specs, expressions())
	maps.Copy(specs, texts())

	return specs
}

// numerous are specs of many parts.
func numerous() map[string]string {
	return map[string]string{
		"10,000 keys": documents(1, func(int) string {
			return `{"kind":"SysctlConfig","sysctlConfig":{"params":{` + manyKeys(10000, "1") + `}}}`
		}),
		"as many keys as fit": documents(1, func(int) string {
			return `{"kind":"SysctlConfig","sysctlConfig":{"params":{` + manyKeys(ManyValues-10, strings.Repeat("v", 30)) + `}}}`
		}),
		"10,000 labels": documents(1, func(int) string {
			return `{"kind":"KubeNodeConfig","kubeNodeConfig":{"labels":{` + manyKeys(10000, "1") + `}}}`
		}),
		"10,000 bad labels": documents(1, func(int) string {
			return `{"kind":"KubeNodeConfig","kubeNodeConfig":{"labels":{` + manyKeys(10000, "a b") + `}}}`
		}),
		"128 large documents": documents(128, func(int) string {
			return `{"kind":"SysctlConfig","sysctlConfig":{"params":{` + manyKeys(150, strings.Repeat("v", 30)) + `}}}`
		}),
		"deletions":     `{"layer":"Cluster","clusterName":"a","deletions":[` + strings.TrimSuffix(strings.Repeat(`{"kind":"Config","path":"`+strings.Repeat("/a", 255)+`"},`, 128), ",") + `]}`,
		"unknown kinds": `{"layer":"Cluster","clusterName":"a","deletions":[` + strings.TrimSuffix(strings.Repeat(`{"kind":"`+strings.Repeat("A", 63)+`","name":"`+strings.Repeat("a", 253)+`"},`, 128), ",") + `]}`,
		"variables": documents(1, func(int) string {
			return `{"kind":"Config","config":{"machine":{"env":{` + manyKeys(10000, "token") + `}}}}`
		}),
		"many files": documents(1, func(int) string {
			return `{"kind":"Config","config":{"machine":{"files":[` + strings.TrimSuffix(strings.Repeat(`{"op":"x","path":"/opt","permissions":1,"content":"a"},`, 1000), ",") + `]}}}`
		}),
		"selector": `{"layer":"Cluster","clusterSelector":{"matchExpressions":[` + strings.TrimSuffix(strings.Repeat(`{"key":"a b","operator":"Is","values":["a b"]},`, 6000), ",") + `]},"deletions":[{"kind":"Config","path":"/machine/sysctls"}]}`,
	}
}

// expressions are specs whose CEL and regular expressions are made to be slow.
func expressions() map[string]string {
	return map[string]string{
		"128 expressions": documents(128, func(i int) string {
			return fmt.Sprintf(`{"kind":"UserVolumeConfig","userVolumeConfig":{"name":"v%d","provisioning":{"diskSelector":{"match":"[%s1].size()>1"}}}}`, i, strings.Repeat("1,", 900))
		}),
		"comprehensions": documents(128, func(i int) string {
			return fmt.Sprintf(`{"kind":"UserVolumeConfig","userVolumeConfig":{"name":"v%d","provisioning":{"diskSelector":{"match":"%strue%s"}}}}`, i, strings.Repeat("[1].map(x,", 80), strings.Repeat(")", 80))
		}),
		"regular expressions":        volumes(`disk.model.matches('` + fill("(x+x+)+", 1700) + `y')`),
		"nested regular expressions": volumes(`disk.model.matches('` + strings.Repeat("(", 500) + "x" + strings.Repeat(")*", 500) + `')`),
		"repeated regular expressions": volumes(
			`disk.model.matches('` + fill("(((x{1,9}){1,9}){1,9})|", 1700) + `y')`),
		"one long expression": documents(1, func(int) string {
			return `{"kind":"OOMConfig","oomConfig":{"triggerExpression":"` + fill("true||", Largest-1000) + `true"}}`
		}),
	}
}

// texts are specs with contents of files in which much can be looked for.
func texts() map[string]string {
	return map[string]string{
		"a long text":          documents(1, func(int) string { return file(fill("a", Largest-1000)) }),
		"addresses":            documents(1, func(int) string { return file(fill("a://", Largest-1000)) }),
		"addresses with users": documents(1, func(int) string { return file(fill("a:b:c:", Largest-1000)) }),
		"at signs":             documents(1, func(int) string { return file(fill("x://a:@", Largest-1000)) }),
		"Secrets":              documents(1, func(int) string { return file(fill("kind: Secret\n---\n", Largest-200000)) }),
		"lists in a manifest":  documents(1, func(int) string { return file("kind: Secret\na: " + fill("[", Largest-1000)) }),
		"aliases in a manifest": documents(1, func(int) string {
			return file("kind: Secret\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]")
		}),
		"a list of itself":   documents(1, func(int) string { return file("&a {kind: List, items: [*a, *a, {kind: Secret}]}") }),
		"keys in a manifest": documents(1, func(int) string { return file("kind: Secret\ndata:\n" + manyLines(40000)) }),
	}
}

func manyKeys(n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"vm.key%05d":"%s",`, i, value)
	}

	return strings.TrimSuffix(b.String(), ",")
}

func documents(n int, document func(int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = document(i)
	}

	return `{"layer":"Cluster","clusterName":"a","documents":[` + strings.Join(all, ",") + `]}`
}

// volumes have an expression for the disk selector each.
func volumes(expression string) string {
	encoded, _ := json.Marshal(expression) //nolint:errchkjson // it is a text

	return documents(128, func(i int) string {
		return fmt.Sprintf(`{"kind":"UserVolumeConfig","userVolumeConfig":{"name":"v%d","provisioning":{"diskSelector":{"match":%s}}}}`, i, encoded)
	})
}

func file(content string) string {
	encoded, _ := json.Marshal(content) //nolint:errchkjson // it is a text

	return `{"kind":"Config","config":{"machine":{"files":[{"op":"create","path":"/var/x","permissions":420,"content":` + string(encoded) + `}]}}}`
}

// fill repeats the unit up to the size.
func fill(unit string, size int) string { return strings.Repeat(unit, size/len(unit)) }

func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  k%d: v\n", i)
	}

	return b.String()
}
