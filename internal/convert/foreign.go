// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/suggest"
	"github.com/maesh-dev/ichor/internal/version"
)

// denied says why no patch may hold documents of a kind, and what to do. It is empty for every other kind.
func denied(kind string) string {
	row, ok := machineconfigv1alpha1.Denied(kind)
	if !ok {
		return ""
	}

	return fmt.Sprintf("%s: remove the document; instead: %s", row.Reason, row.Instead)
}

// foreign tells what a document is that is none of Talos'. It is empty for one that may be.
func foreign(root *yaml.Node) string {
	switch root.Kind { //nolint:exhaustive // aliases are gone
	case yaml.SequenceNode:
		return foreignList(root)
	case yaml.ScalarNode:
		return "want a Talos document, which is a map, and found text"
	}

	if reason := encrypted(root); reason != "" {
		return reason
	}

	kind, apiVersion := textOf(root, "kind"), textOf(root, "apiVersion")
	if kind == "" && apiVersion == "" {
		return foreignFile(root)
	}

	return foreignObject(root, kind, apiVersion)
}

// foreignObject tells objects of Kubernetes.
func foreignObject(root *yaml.Node, kind, apiVersion string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")

	switch {
	case grouped && group == bootstrapv1.GroupVersion.Group && kind == "TalosConfigPatch":
		return "is a TalosConfigPatch already: apply it as it is, and check it with validate"
	case grouped && strings.HasSuffix(group, "cluster.x-k8s.io") && strings.HasPrefix(kind, "Talos"):
		return fmt.Sprintf("is a %s of another provider (%s): convert takes the Talos documents that are in its patches: put each entry of its strategicPatches "+
			"into a file as a document of its own", kind, group)
	case apiVersion == "v1" && kind == "Config":
		return "is a kubeconfig: convert takes Talos documents"
	case grouped || apiVersion == "v1" || isManifest(root, kind):
		return fmt.Sprintf("is a Kubernetes manifest (%s): convert takes Talos documents; to have Talos create it, give it as the content of "+
			"cluster.inlineManifests or of a KubeInlineManifestConfig", strings.TrimSpace(apiVersion+" "+kind))
	default:
		return ""
	}
}

// isManifest tells a Kubernetes object without a group by its metadata, which a RAIDArrayConfig has too.
func isManifest(root *yaml.Node, kind string) bool {
	return kind != "" && has(root, "metadata") && !slices.Contains(version.Kinds(), kind)
}

func has(root *yaml.Node, keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { _, value := child(root, key); return value == nil })
}

// foreignFile tells files of Talos and its tools that are no config.
func foreignFile(root *yaml.Node) string {
	switch {
	case has(root, "context", "contexts"):
		return "is a talosconfig, the client's own configuration: convert takes machine configs and patches"
	case has(root, "certs", "secrets"):
		return "is a secrets bundle, which no patch can hold: keep it in the Secret that TalosClusterConfig.spec.secretsRef names"
	case has(root, "clusterName", "nodes"):
		return "is the configuration of a tool that makes machine configs: convert what that tool puts out"
	case has(root, "op", "path"):
		return jsonPatch(root)
	default:
		return wrapper(root)
	}
}

// wrappers are the fields of other providers and tools in which patches are wrapped.
var wrappers = []string{"strategicPatches", "configPatches", "patches"}

// wrapper tells patches that are wrapped as texts or as JSON patches. A list of documents is told of where a document's kind is missing.
func wrapper(root *yaml.Node) string {
	for _, key := range wrappers {
		_, list := child(root, key)
		if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 || wrapsDocuments(list) {
			continue
		}

		return fmt.Sprintf("has the wrapper %s: of another provider or tool: remove it; what is in it %s", key, foreignList(list))
	}

	return ""
}

// foreignList tells what a list is. A patch is no list.
func foreignList(root *yaml.Node) string {
	operation := slices.IndexFunc(root.Content, func(item *yaml.Node) bool { return textOf(item, "op") != "" })

	switch {
	case operation >= 0:
		return jsonPatch(root.Content[operation])
	case wrapsDocuments(root):
		return fmt.Sprintf("is a list of %d patches: write each as a document of its own, without the dash before it, and a line with \"---\" between two", len(root.Content))
	case len(root.Content) > 0 && root.Content[0].Kind == yaml.ScalarNode:
		return fmt.Sprintf("is a list of %d texts: write what each says as a document of its own, without the dash and the | before it, and a line with \"---\" between two", len(root.Content))
	default:
		return "is a list: want a Talos document, which is a map"
	}
}

func jsonPatch(operation *yaml.Node) string {
	reason := "is a JSON patch (RFC 6902), which Talos does not take for configs of several documents either: write the fields that it sets as a Talos document, " +
		`and what it removes with "$patch: delete"`

	at := textOf(operation, "path")
	if !strings.HasPrefix(at, "/") {
		return reason
	}

	return fmt.Sprintf("%s; for example %s for the path %s", reason, exampleFor(at, textOf(operation, "op")), at)
}

// encrypted tells a file that SOPS has encrypted, by what it adds.
func encrypted(root *yaml.Node) string {
	if _, added := child(root, "sops"); added == nil || added.Kind != yaml.MappingNode {
		return ""
	}

	return "is encrypted with SOPS: decrypt it first, and convert what comes out (sops --decrypt FILE | clusterctl ichor convert -f - ...); " +
		"credentials in it then move to the Secret that --secrets-file writes"
}

// exampleFor is a document for an operation of a JSON patch, without the value.
func exampleFor(pointer, op string) string {
	example, tokens := "...", tokensOf(pointer)

	for i, token := range slices.Backward(tokens) {
		inList := token == "-" || strings.Trim(token, "0123456789") == ""

		switch {
		case i == len(tokens)-1 && op == "remove" && inList:
			example = "[{name: ..., $patch: delete}]"
		case i == len(tokens)-1 && op == "remove":
			example = "{" + token + ": {$patch: delete}}"
		case inList:
			example = "[" + example + "]"
		default:
			example = "{" + token + ": " + example + "}"
		}
	}

	return strings.TrimSuffix(strings.TrimPrefix(example, "{"), "}")
}

// hint adds to an error of the merge where a field belongs that is unknown where it stands, or a document without a kind.
//
//nolint:gocyclo // One case for each mistake.
func hint(root *yaml.Node, id merge.ID, detail *merge.Error) string {
	if detail.Pointer == "" && detail.ID.Kind != "" && slices.ContainsFunc([]string{"machine", "cluster"}, func(key string) bool { return has(root, key) }) {
		return "; machine: and cluster: are the legacy document, which is written without apiVersion and kind: remove these two"
	}

	if said := wrapped(id, detail.Pointer); said != "" {
		return said
	}

	if found := find(root, detail.Pointer); found != nil && found.Kind == yaml.SequenceNode {
		if form := mapForms[path.Base(detail.Pointer)]; form != "" {
			return "; write it as " + form
		}
	}

	if tokens := tokensOf(detail.Pointer); len(tokens) > 0 && strings.HasPrefix(detail.Err.Error(), "unknown field") && !strings.Contains(detail.Err.Error(), "did you mean") {
		return fieldHint(id, tokens)
	}

	if detail.Pointer != "" || detail.ID.Kind != "" || root.Kind != yaml.MappingNode || textOf(root, "apiVersion") != "" {
		return ""
	}

	machine, _ := reflect.TypeFor[machineconfigv1alpha1.Config]().FieldByName("Machine")
	clusterField, _ := reflect.TypeFor[machineconfigv1alpha1.Config]().FieldByName("Cluster")

	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i].Value

		switch near := suggest.Nearest(key, legacyKeys); {
		case near != "":
			return fmt.Sprintf("; did you mean %s: instead of %s:?", near, key)
		case wrapsDocuments(root.Content[i+1]):
			return fmt.Sprintf("; what is below %s: belongs at the top of the file: remove %s:, and put a line with \"---\" between documents", key, key)
		case hasField(machine.Type, key):
			return fmt.Sprintf("; %s: belongs below machine:", key)
		case hasField(clusterField.Type, key):
			return fmt.Sprintf("; %s: belongs below cluster:", key)
		}
	}

	return ""
}

// mapForms are the fields that users take for a list, since Kubernetes has one there, with how they are written.
var mapForms = map[string]string{
	"extraArgs":  `a map of flags without their dashes, such as extraArgs: {rotate-server-certificates: "true"}`,
	"taints":     "a map of keys with value and effect, such as taints: {example.com/dedicated: storage:NoSchedule}",
	"nodeTaints": "a map of keys with value and effect, such as nodeTaints: {example.com/dedicated: storage:NoSchedule}",
	"labels":     "a map, such as labels: {example.com/rack: a1}",
	"nodeLabels": "a map, such as nodeLabels: {example.com/rack: a1}",
	"env":        "a map, such as env: {HTTP_PROXY: http://proxy.example.com:3128}",
}

// wrapped tells fields of a Talos document that are written as those of a Kubernetes object.
func wrapped(id merge.ID, pointer string) string {
	if (pointer != "/metadata" && pointer != "/spec") || !slices.Contains(version.Kinds(), id.Kind) {
		return ""
	}

	return "; a Talos document has no metadata: and spec:, as objects of Kubernetes do: write name: and the fields at the top, beside kind:"
}

// wrapsDocuments tells a list of documents, as files of other tools have it.
func wrapsDocuments(node *yaml.Node) bool {
	return node.Kind == yaml.SequenceNode && len(node.Content) > 0 && !slices.ContainsFunc(node.Content, func(item *yaml.Node) bool {
		return item.Kind != yaml.MappingNode || headOf(item).Kind == ""
	})
}

// fieldHint finds a field by its name one step below where it stands, or where the legacy document's field of that name went.
func fieldHint(id merge.ID, tokens []string) string {
	if write := machineconfig.MovedField(id.Kind, tokens); write != "" {
		return "; in this config format it is " + write
	}

	member, ok := reflect.TypeFor[machineconfigv1alpha1.Document]().FieldByName(id.Kind)
	if !ok {
		return ""
	}

	t := target(member.Type)

	for _, token := range tokens[:len(tokens)-1] {
		switch t.Kind() {
		case reflect.Struct:
			field, ok := fieldsOf(t).byName[token]
			if !ok {
				return ""
			}

			t = target(field.Type)
		case reflect.Map, reflect.Slice:
			t = target(t.Elem())
		default:
			return ""
		}
	}

	name := tokens[len(tokens)-1]
	if t.Kind() != reflect.Struct {
		return ""
	}

	for _, parent := range slices.Sorted(maps.Keys(fieldsOf(t).byName)) {
		if hasField(fieldsOf(t).byName[parent].Type, name) {
			return fmt.Sprintf("; %s: belongs below %s:", name, parent)
		}
	}

	return ""
}

func target(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	return t
}

func hasField(t reflect.Type, name string) bool {
	if t = target(t); t.Kind() != reflect.Struct {
		return false
	}

	_, ok := fieldsOf(t).byName[name]

	return ok
}

var errNotOffered = errors.New("documents of this kind are not offered in a TalosConfigPatch")
