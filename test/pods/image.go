// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"path"
	"strings"
)

// Image is what runs in place of a container image.
type Image struct {
	// Program is the path of the manager.
	Program string

	// LeaseNamespaceFlag is the manager's flag for the namespace of the lease, with dashes. Empty: it has none.
	LeaseNamespaceFlag string

	// Args follow the arguments of the container.
	Args []string

	// ExclusivePorts are ports that the manager takes whatever it is told. The Pod waits until no other process of the test
	// world on this machine has them, as a Pod waits for its host ports.
	ExclusivePorts []int
}

// imageName is the last path element of an image reference, without tag and digest.
func imageName(reference string) string {
	name := path.Base(reference)
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")

	return name
}

// find is the image that stands for a reference: by its name with the tag, such as manager:v0.1.0, or else by its name alone.
func find(images map[string]Image, reference string) (Image, bool) {
	name := imageName(reference)

	if _, tag, tagged := strings.Cut(path.Base(reference), ":"); tagged {
		if image, ok := images[name+":"+tag]; ok {
			return image, true
		}
	}

	image, ok := images[name]

	return image, ok
}
