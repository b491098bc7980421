// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// limitFiles are where the kernel tells a container's limit, in version 2 and version 1 of control groups.
var limitFiles = []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}

// unlimited is what version 1 tells at least when there is no limit: the largest number of whole pages.
const unlimited = 1 << 62

// ContainerLimit is how many bytes the kernel lets the process's container have. False: it has no limit, or the system has no containers.
// The root is that of the file system, os.DirFS("/").
func ContainerLimit(root fs.FS) (int64, bool, error) {
	for _, name := range limitFiles {
		content, err := fs.ReadFile(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}

		if err != nil {
			return 0, false, fmt.Errorf("memory limit of the container: %w", err)
		}

		text := strings.TrimSpace(string(content))
		if text == "max" {
			return 0, false, nil
		}

		limit, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, false, fmt.Errorf("memory limit of the container: %s: %w", name, err)
		}

		return limit, limit > 0 && limit < unlimited, nil
	}

	return 0, false, nil
}

// root is the file system of the process.
func root() fs.FS { return os.DirFS("/") }
