// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestContainerLimit(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"

	tests := map[string]struct {
		files   map[string]string
		want    int64
		limited bool
		fault   string
	}{
		"no containers":        {},
		"version 2":            {files: map[string]string{v2: "536870912\n"}, want: 536870912, limited: true},
		"version 2, no limit":  {files: map[string]string{v2: "max\n"}},
		"version 1":            {files: map[string]string{v1: "268435456\n"}, want: 268435456, limited: true},
		"version 1, no limit":  {files: map[string]string{v1: "9223372036854771712\n"}},
		"both":                 {files: map[string]string{v2: "1000\n", v1: "2000\n"}, want: 1000, limited: true},
		"what cannot be right": {files: map[string]string{v2: "much\n"}, fault: "memory limit of the container: sys/fs/cgroup/memory.max: "},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for path, content := range test.files {
				root[path] = &fstest.MapFile{Data: []byte(content)}
			}

			limit, limited, err := ContainerLimit(root)
			if test.fault != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.fault) {
					t.Errorf("got %v", err)
				}

				return
			}

			if err != nil || limited != test.limited || limited && limit != test.want {
				t.Errorf("got %d, %v, %v", limit, limited, err)
			}
		})
	}
}
