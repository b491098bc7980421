// SPDX-License-Identifier: Apache-2.0

package version

import (
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
	machineryversion "github.com/siderolabs/talos/pkg/machinery/version"
)

// Talos is a release of Talos that a node runs, such as v1.14.1. The zero value is no release.
type Talos struct {
	version semver.Version
}

// ParseTalos parses a Talos release: "v1.14.1", with the v, all three numbers and, if it has one, the pre-release ("v1.14.0-rc.1").
// It accepts every release from 1.12.0 on whose minor this build of Ichor knows; any other is refused, as nobody has checked what
// its nodes accept.
func ParseTalos(s string) (Talos, error) {
	parsed, err := parseRelease(s)
	if err != nil {
		return Talos{}, fmt.Errorf("talos version %q: %w, for example %q", s, err, Newest().String()+".0")
	}

	if len(parsed.Build) > 0 {
		return Talos{}, fmt.Errorf("talos version %q: must not have build metadata (+...), which no image tag can carry", s)
	}

	oldest := semver.Version{Major: talosMajor, Minor: oldestNodeMinor}
	if parsed.LT(oldest) {
		return Talos{}, fmt.Errorf("talos version %q: older than v%s, the oldest that nodes may run", s, oldest)
	}

	if parsed.Major != talosMajor || parsed.Minor > uint64(newestMinor) { //nolint:gosec // the minor of a build constant is never negative
		return Talos{}, fmt.Errorf("talos version %q: not known to this release, which knows Talos %s to %s", s, oldestNode(), Newest())
	}

	return Talos{version: parsed}, nil
}

// Contract is the newest config format that the release can read: that of its minor.
func (t Talos) Contract() Contract {
	if t.IsZero() {
		return Contract{}
	}

	return Contract{major: talosMajor, minor: int(t.version.Minor)} //nolint:gosec // ParseTalos bounds it
}

// String returns the form that ParseTalos takes. The zero value is the empty string.
func (t Talos) String() string {
	if t.IsZero() {
		return ""
	}

	return "v" + t.version.String()
}

// IsZero reports whether the release is unset.
func (t Talos) IsZero() bool {
	return t.version.Major == 0
}

// Compare orders releases as Semantic Versioning does: negative if t is older than other, 0 if they are the same, positive if newer.
func (t Talos) Compare(other Talos) int {
	return t.version.Compare(other.version)
}

// Equal reports whether both are the same release.
func (t Talos) Equal(other Talos) bool {
	return t.Compare(other) == 0
}

// machinery returns the release in the form of machinery's compatibility tables. They want it as a node reports it; only the tag counts.
func (t Talos) machinery() (*compatibility.TalosVersion, error) {
	report := machineryversion.NewVersion()
	report.Tag = t.String()

	return compatibility.ParseTalosVersion(report)
}

// parseRelease parses a full version with a leading v. It does not use semver's tolerant form, which takes "v1" for 1.0.0.
func parseRelease(s string) (semver.Version, error) {
	number, found := strings.CutPrefix(s, "v")
	if !found {
		return semver.Version{}, errors.New("must be a full version with a leading v")
	}

	parsed, err := semver.Parse(number)
	if err != nil {
		return semver.Version{}, errors.New("must be a full version: v<major>.<minor>.<patch>, with an optional pre-release")
	}

	return parsed, nil
}
