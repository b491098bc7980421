// SPDX-License-Identifier: Apache-2.0

package version

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
)

// maxProbedKubernetesMinor bounds the search for the range that a Talos supports. Machinery tells for one Kubernetes version whether
// it goes with a Talos, not which ones do.
const maxProbedKubernetesMinor = 100

// Kubernetes is a release of Kubernetes, such as v1.36.1. The zero value is no release.
type Kubernetes struct {
	version semver.Version
}

// ParseKubernetes parses a Kubernetes release: "v1.36.1", or without the v, which Cluster API adds to a Machine's version if it is
// missing. Build metadata ("v1.36.1+k3s1") is refused: it names another distribution, and no image tag can carry it.
func ParseKubernetes(s string) (Kubernetes, error) {
	const example = "v1.36.1"

	parsed, err := parseRelease("v" + strings.TrimPrefix(s, "v"))
	if err != nil {
		return Kubernetes{}, fmt.Errorf("kubernetes version %q: %w, for example %q", s, err, example)
	}

	if len(parsed.Build) > 0 {
		return Kubernetes{}, fmt.Errorf("kubernetes version %q: must not have build metadata (+...): Talos runs upstream Kubernetes", s)
	}

	if parsed.Major != 1 {
		return Kubernetes{}, fmt.Errorf("kubernetes version %q: not a Kubernetes release, for example %q", s, example)
	}

	return Kubernetes{version: parsed}, nil
}

// String returns the release with the v. The zero value is the empty string.
func (k Kubernetes) String() string {
	if k.IsZero() {
		return ""
	}

	return "v" + k.version.String()
}

// Number returns the release without the v, as machinery's config generator wants it.
func (k Kubernetes) Number() string {
	return strings.TrimPrefix(k.String(), "v")
}

// Minor returns the second number of the release: 36 of v1.36.1.
func (k Kubernetes) Minor() uint64 {
	return k.version.Minor
}

// IsZero reports whether the release is unset.
func (k Kubernetes) IsZero() bool {
	return k.version.Major == 0
}

// Compare orders releases as Semantic Versioning does: negative if k is older than other, 0 if they are the same, positive if newer.
func (k Kubernetes) Compare(other Kubernetes) int {
	return k.version.Compare(other.version)
}

// Equal reports whether both are the same release.
func (k Kubernetes) Equal(other Kubernetes) bool {
	return k.Compare(other) == 0
}

// CheckKubernetes checks that the Kubernetes release goes with the Talos release, by machinery's compatibility tables. The error names
// both and the range that is supported.
func CheckKubernetes(talos Talos, kubernetes Kubernetes) error {
	if talos.IsZero() || kubernetes.IsZero() {
		return errors.New("neither the Talos version nor the Kubernetes version may be unset")
	}

	supported, err := supports(talos, kubernetes.Number())
	if err != nil {
		return err
	}

	if supported {
		return nil
	}

	oldest, newest, err := kubernetesRange(talos)
	if err != nil {
		return err
	}

	return fmt.Errorf("kubernetes version %s: Talos %s does not run it; it runs Kubernetes 1.%d to 1.%d", kubernetes, talos, oldest, newest)
}

// kubernetesRange returns the oldest and the newest minor release of Kubernetes that goes with the Talos release.
func kubernetesRange(talos Talos) (oldest, newest int, err error) {
	oldest = -1

	for minor := range maxProbedKubernetesMinor {
		supported, err := supports(talos, fmt.Sprintf("1.%d.0", minor))
		if err != nil {
			return 0, 0, err
		}

		if !supported {
			continue
		}

		if oldest < 0 {
			oldest = minor
		}

		newest = minor
	}

	if oldest < 0 {
		return 0, 0, fmt.Errorf("talos version %s: machinery's tables name no Kubernetes for it", talos)
	}

	return oldest, newest, nil
}

// NewestKubernetes is the newest minor release of Kubernetes that goes with the Talos release, by machinery's compatibility tables.
func NewestKubernetes(talos Talos) (Kubernetes, error) {
	_, newest, err := kubernetesRange(talos)
	if err != nil {
		return Kubernetes{}, err
	}

	return ParseKubernetes(fmt.Sprintf("v1.%d.0", newest))
}

// supports asks machinery's tables about one Kubernetes version. Their answer is an error text; that the version itself is well formed
// is known beforehand, so every error there means no.
func supports(talos Talos, number string) (bool, error) {
	release, err := talos.machinery()
	if err != nil {
		return false, fmt.Errorf("talos version %s: %w", talos, err)
	}

	kubernetes, err := compatibility.ParseKubernetesVersion(number)
	if err != nil {
		return false, fmt.Errorf("kubernetes version %s: %w", number, err)
	}

	return kubernetes.SupportedWith(release) == nil, nil
}

// CheckKubernetesOfAny checks that a Talos that nodes may run, and that can read configs of the format, runs the Kubernetes release. The
// zero contract is older than every Talos.
func CheckKubernetesOfAny(format Contract, kubernetes Kubernetes) error {
	if kubernetes.IsZero() {
		return errors.New("the Kubernetes version may not be unset")
	}

	readers := slices.DeleteFunc(Supported(), func(c Contract) bool { return c.Less(format) })
	oldest, newest := -1, -1

	for _, reader := range readers {
		supported, err := supports(reader.Talos(), kubernetes.Number())
		if err != nil || supported {
			return err
		}

		from, to, err := kubernetesRange(reader.Talos())
		if err != nil {
			return err
		}

		if oldest < 0 || from < oldest {
			oldest = from
		}

		newest = max(newest, to)
	}

	reason := fmt.Sprintf("Talos %s to %s run Kubernetes 1.%d to 1.%d", readers[0], readers[len(readers)-1], oldest, newest)
	if len(readers) < len(Supported()) {
		reason += fmt.Sprintf(", and no older Talos reads config contract %s", format)
	}

	return fmt.Errorf("kubernetes version %s: not known to run on any Talos that the machines may have: %s", kubernetes, reason)
}
