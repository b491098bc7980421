// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/codegen/history"
	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// input has two kinds: one of volumes with a field of each sort, and one that waits.
func input() Input {
	text := model.Type{Shape: model.Text}
	size := &model.Scalar{Name: "BlockSize", ScalarRow: model.ScalarRow{Doc: "A size such as 5GiB. Or less.", Pattern: "^a|b$", MaxLength: 9, Examples: []string{"5GiB"}}}
	upstream := &model.Struct{Name: "KubeletConfiguration", Source: "k8s.io/x.KubeletConfiguration", Fields: []*model.Field{
		{JSON: "hosts", Type: model.Type{Shape: model.List, Elem: &text}, MaxItems: 5},
	}}
	peer := &model.Struct{Name: "BlockPeer", Fields: []*model.Field{{JSON: "key", Type: text, MaxLength: 7}}}
	low, high := int64(0), int64(255)

	doc := &model.Document{
		Kind: "VolumeConfig", TalosKind: "VolumeConfig", JSON: "volumeConfig", Named: true, Doc: "Adds <a> volume.\nSee https://example.com/volume",
		Struct: &model.Struct{Name: "VolumeConfig", Package: "block", Fields: []*model.Field{
			{JSON: "name", Type: text, Required: true, MaxLength: 63},
			{JSON: "size", Type: model.Type{Shape: model.ScalarRef, Scalar: size}, Note: "How large. Since Talos 1.13."},
			{JSON: "priority", Type: model.Type{Shape: model.Int32}, Minimum: &low, Maximum: &high},
			{JSON: "peers", Type: model.Type{Shape: model.List, Elem: &model.Type{Shape: model.StructRef, Struct: peer}}, MaxItems: 3},
			{JSON: "keyed", Type: model.Type{Shape: model.List, Elem: &model.Type{Shape: model.StructRef, Struct: peer}}, MaxItems: 3},
			{JSON: "only", Type: model.Type{Shape: model.List, Elem: &text}, MaxItems: 3},
			{JSON: "labels", Type: model.Type{Shape: model.Map, Elem: &text}, MaxItems: 4},
			{JSON: "mode", Type: model.Type{Shape: model.ScalarRef, Scalar: &model.Scalar{Name: "Mode", ScalarRow: model.ScalarRow{Enum: []string{"off", "on"}}}}},
			{JSON: "token", Type: model.Type{Shape: model.RefusedValue}, Refusal: "token: a credential; use tokenSecretRef"},
			{JSON: "tokenSecretRef", Type: model.Type{Shape: model.SecretKey}, Resolves: "token"},
			{JSON: "config", Type: model.Type{Shape: model.StructRef, Struct: upstream}},
		}},
	}

	newest := &history.Release{Minor: 14, ControlPlaneOnly: map[string]bool{"VolumeConfig": true}, Documents: map[string]history.Document{
		"VolumeConfig": {
			"/keyed":  {Type: "config/types/v1alpha1.VlanList"},
			"/only":   {Merge: "replace"},
			"/config": {Type: freeForm},
		},
		"v1alpha1": {"/machine/disks": {}},
	}}

	return Input{
		API: &model.API{Version: "v1.14.1", Documents: []*model.Document{doc}, Scalars: []*model.Scalar{size}},
		Since: &history.Table{
			Releases:    []*history.Release{{Minor: 12}, newest},
			FirstKinds:  map[string]int{"VolumeConfig": 12, "v1alpha1": 12},
			FirstFields: map[string]map[string]int{"VolumeConfig": {"/size": 13}},
			FirstValues: map[string]map[string]map[string]int{"VolumeConfig": {"/mode": {"on": 14}}},
		},
		Denied:   []model.DecidedKind{{Kind: "CAConfig", Reason: "secret", Instead: "the bundle"}},
		Later:    []model.DecidedKind{{Kind: "LaterConfig", Reason: "waits"}},
		Wants:    []Want{{To: "use a disk", Use: []string{"VolumeConfig", "LaterConfig"}, Legacy: []string{"/machine/disks"}}},
		Examples: map[string]string{"VolumeConfig": "- kind: VolumeConfig\n  volumeConfig: {name: a}\n"},
	}
}

func TestPageOfAKind(t *testing.T) {
	t.Parallel()

	pages, err := Pages(input())
	if err != nil {
		t.Fatal(err)
	}

	_, fields, found := strings.Cut(string(pages["VolumeConfig.md"]), "|---|---|---|---|---|\n")
	if !found {
		t.Fatalf("the page has no table:\n%s", pages["VolumeConfig.md"])
	}

	want := "" +
		"| `name` **required** | string, at most 63 characters | 1.12 | names the document |  |\n" +
		"| `size` | [size such as 5GiB](forms.md#blocksize) | 1.13 | overwrites | How large. |\n" +
		"| `priority` | integer, 0 to 255 | 1.12 | overwrites |  |\n" +
		"| `peers` | list of objects, at most 3 items | 1.12 | appends |  |\n" +
		"| `peers[].key` | string, at most 7 characters | 1.12 | with its item |  |\n" +
		"| `keyed` | list of objects, at most 3 items | 1.12 | items merge by `vlanId` |  |\n" +
		"| `keyed[].key` | string, at most 7 characters | 1.12 | overwrites |  |\n" +
		"| `only` | list of strings, at most 3 items | 1.12 | replaces |  |\n" +
		"| `labels` | map of strings, at most 4 keys | 1.12 | merges by key |  |\n" +
		"| `mode` | one of `off`, `on` | 1.12 | overwrites | `on` since Talos 1.14. |\n" +
		"| `token` | refused | 1.12 |  | **Refused:** a credential; use tokenSecretRef. |\n" +
		"| `tokenSecretRef` | reference to a key of a Secret: `name`, `key` | 1.12 | as the field that it stands for |  |\n" +
		"| `config` | object: [KubeletConfiguration](type-KubeletConfiguration.md) | 1.12 | merges by field |  |\n"
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}

	for page, parts := range map[string][]string{
		"VolumeConfig.md": {
			"Adds &lt;a&gt; volume.", "- Machines: control plane only\n", "  layer: Role\n  role: ControlPlane\n",
			"  documents:\n    - kind: VolumeConfig\n      volumeConfig: {name: a}\n", "<https://example.com/volume>",
		},
		"type-KubeletConfiguration.md": {"| `hosts` | list of strings, at most 5 items | appends |  |\n"},
		"forms.md":                     {"## BlockSize\n\nA size such as 5GiB. Or less.\n", "- Pattern: `^a|b$`\n- At most 9 characters\n- Examples: `5GiB`\n", "### Disks\n", "| `disk.transport` | text |\n", "| `disk.size` | unsigned number, compared with such as 100u |\n", "| `system_disk` | true or false |\n"},
		"README.md": {
			"| use a disk | [VolumeConfig](VolumeConfig.md) | [VolumeConfig](VolumeConfig.md), [Config](Config.md): `machine.disks` |\n",
			"| [VolumeConfig](VolumeConfig.md) | Adds &lt;a&gt; volume. Control plane only. | 1.12 | by name |\n",
			"| CAConfig | secret | the bundle |\n",
		},
	} {
		for _, part := range parts {
			if !strings.Contains(string(pages[page]), part) {
				t.Errorf("%s lacks %q:\n%s", page, part, pages[page])
			}
		}
	}
}

func TestRowsThatLeadNowhere(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		change func(*Input)
		want   string
	}{
		"want of no kind":     {func(in *Input) { in.Wants[0].Use = []string{"VolumConfig"} }, `want "use a disk": no kind VolumConfig is offered`},
		"want of no field":    {func(in *Input) { in.Wants[0].Legacy = []string{"/machine/disk"} }, `want "use a disk": the legacy document has no field /machine/disk`},
		"example of no kind":  {func(in *Input) { in.Examples["DiskConfig"] = "" }, "example of DiskConfig: no such kind is offered"},
		"example of a denied": {func(in *Input) { in.Examples["CAConfig"] = "" }, "example of CAConfig: no such kind is offered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input()
			tc.change(&in)

			_, err := Pages(in)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error about %q", err, tc.want)
			}
		})
	}
}
