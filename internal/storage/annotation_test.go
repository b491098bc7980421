// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/storage"
)

func TestCheckDisksConfig(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		value string
		want  string
	}{
		"Longhorn's own example": {value: `[{"path":"/mnt/disk1","allowScheduling":false}, {"name":"fast-ssd-disk","path":"/mnt/disk2","allowScheduling":false,"storageReserved":10485760,"tags":["ssd","fast"]}]`},
		"block disk":             {value: `[{"path":"/dev/disk/by-partlabel/r-longhorn","diskType":"block","diskDriver":"aio","allowScheduling":true}]`},
		"block disk by address":  {value: `[{"path":"0000:00:1e.0","diskType":"block","diskDriver":"nvme","allowScheduling":true}]`},
		"unknown field":          {value: `[{"path":"/a","allowScheduling":true,"comment":"x"}]`},
		"two user volumes":       {value: `[{"path":"/var/mnt/a","allowScheduling":true},{"path":"/var/mnt/b","allowScheduling":true}]`},
		"not JSON":               {value: `path: /a`, want: "not a JSON list"},
		"empty":                  {value: ``, want: "not a JSON list"},
		"one object":             {value: `{"path":"/a"}`, want: "not a JSON list"},
		"more than the list":     {value: `[] []`, want: "not a JSON list"},
		"quoted bool":            {value: `[{"path":"/a","allowScheduling":"true"}]`, want: "not a JSON list"},
		"human size":             {value: `[{"path":"/a","storageReserved":"10Gi"}]`, want: "not a JSON list"},
		"no path":                {value: `[{"allowScheduling":true}]`, want: "disk 0: path: must be set"},
		"relative path":          {value: `[{"path":"var/mnt/a"}]`, want: `disk 0: path: "var/mnt/a" must be an absolute path`},
		"name twice":             {value: `[{"name":"d","path":"/a"},{"name":"d","path":"/b"}]`, want: `disk 1: name: "d" is that of disk 0 too`},
		"path twice":             {value: `[{"path":"/a"},{"path":"/a/"}]`, want: `disk 1: path: "/a" is that of disk 0 too`},
		"two in one volume":      {value: `[{"path":"/var/mnt/longhorn/a"},{"path":"/x"},{"path":"/var/mnt/longhorn/b"}]`, want: `disk 2: path: in the user volume "longhorn", as disk 0 is`},
		"invalid tag":            {value: `[{"path":"/a","tags":["ok","not ok"]}]`, want: `disk 0: tags[1]: "not ok"`},
		"negative reservation":   {value: `[{"path":"/a","storageReserved":-1}]`, want: "disk 0: storageReserved: -1"},
		"unknown type":           {value: `[{"path":"/a","diskType":"zfs"}]`, want: `disk 0: diskType: "zfs"`},
		"unknown driver":         {value: `[{"path":"/a","diskDriver":"spdk"}]`, want: `disk 0: diskDriver: "spdk"`},
		"evicted and scheduled":  {value: `[{"path":"/a","allowScheduling":true,"evictionRequested":true}]`, want: "disk 0: evictionRequested"},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := errorText(storage.CheckDisksConfig(tc.value))
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCheckNodeTags(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		value string
		want  string
	}{
		"tags":        {value: `["storage","example.com/fast"]`},
		"none":        {value: `[]`},
		"a word":      {value: `storage`, want: "not a JSON list"},
		"a string":    {value: `"storage"`, want: "not a JSON list"},
		"numbers":     {value: `[1]`, want: "not a JSON list"},
		"invalid tag": {value: `["a","b c"]`, want: `tags[1]: "b c"`},
		"twice":       {value: `["a","a"]`, want: `tags[1]: "a" is given twice`},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := errorText(storage.CheckNodeTags(tc.value))
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}

func TestUnknownDiskFields(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		value string
		want  []string
	}{
		"nothing":         {value: ""},
		"all known":       {value: `[{"path": "/var/mnt/a", "allowScheduling": true, "diskType": "filesystem"}]`},
		"in another case": {value: `[{"Path": "/var/mnt/a", "ALLOWSCHEDULING": true}]`},
		"mistyped": {
			value: `[{"path": "/var/mnt/a"}, {"path": "/var/mnt/b", "allowSchedule": true, "size": "1Gi"}]`,
			want: []string{
				`disk 1: Longhorn has no field "allowSchedule" and overlooks it; did you mean "allowScheduling"?`,
				`disk 1: Longhorn has no field "size" and overlooks it`,
			},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(test.want, storage.UnknownDiskFields(test.value)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
