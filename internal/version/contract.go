// SPDX-License-Identifier: Apache-2.0

package version

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/gendata"
)

const (
	talosMajor = 1

	// oldestContractMinor is the oldest config format that machinery has a name for (config.TalosVersion1_0). A cluster keeps the
	// format that it was born with for life, so none is given up before machinery gives it up.
	oldestContractMinor = 0

	// oldestNodeMinor is the oldest Talos that Ichor runs nodes of, and with that the oldest format that new clusters get.
	oldestNodeMinor = 12
)

var (
	contractPattern = regexp.MustCompile(`^v([0-9]{1,3})\.(0|[1-9][0-9]{0,2})$`)

	// newestMinor is that of the machinery that Ichor is built with. It is read from machinery itself: an upgrade of machinery moves
	// it, and the tests that want goldens for every supported contract fail until there are some.
	newestMinor = machineryMinor(gendata.VersionTag)
)

// Contract is a Talos config format, named by the minor release that introduced it: "v1.13". The zero value is no contract.
// Contracts are comparable with ==.
//
// A contract is not a version: it says how a machine config is written, never which Talos a node runs.
type Contract struct {
	major, minor int
}

// ParseContract parses a config format such as "v1.13". It accepts every format that machinery can produce, and refuses what
// machinery itself would take and silently treat as something else, such as "v1.99", "1.13", "v1" or "v1.13.2".
func ParseContract(s string) (Contract, error) {
	match := contractPattern.FindStringSubmatch(s)
	if match == nil {
		return Contract{}, fmt.Errorf("config contract %q: must be v1.<minor>, from %s to %s, for example %q",
			s, oldestContract(), Newest(), Newest())
	}

	major, errMajor := strconv.Atoi(match[1])
	minor, errMinor := strconv.Atoi(match[2])

	if err := errors.Join(errMajor, errMinor); err != nil {
		return Contract{}, fmt.Errorf("config contract %q: %w", s, err)
	}

	if major != talosMajor || minor < oldestContractMinor || minor > newestMinor {
		return Contract{}, fmt.Errorf("config contract %q: not known to this release; must be from %s to %s", s, oldestContract(), Newest())
	}

	return Contract{major: major, minor: minor}, nil
}

// Supported lists the contracts that new clusters may be made with, oldest first: from that of the oldest Talos that nodes may run
// to the newest that machinery can produce. Each of them has golden configs.
func Supported() []Contract {
	contracts := make([]Contract, 0, newestMinor-oldestNodeMinor+1)
	for minor := oldestNodeMinor; minor <= newestMinor; minor++ {
		contracts = append(contracts, Contract{major: talosMajor, minor: minor})
	}

	return contracts
}

// Newest is the newest contract that machinery can produce.
func Newest() Contract {
	return Contract{major: talosMajor, minor: newestMinor}
}

func oldestContract() Contract {
	return Contract{major: talosMajor, minor: oldestContractMinor}
}

func oldestNode() Contract {
	return Contract{major: talosMajor, minor: oldestNodeMinor}
}

// String returns the form that ParseContract takes. The zero value is the empty string.
func (c Contract) String() string {
	if c.IsZero() {
		return ""
	}

	return fmt.Sprintf("v%d.%d", c.major, c.minor)
}

// IsZero reports whether the contract is unset.
func (c Contract) IsZero() bool {
	return c == Contract{}
}

// Machinery returns the contract as machinery wants it. It is never nil, which machinery reads as "whatever is current": a contract
// that is not set must not silently become the newest one, so an unset contract panics.
func (c Contract) Machinery() *config.VersionContract {
	if c.IsZero() {
		panic("version: the unset contract has no machinery form")
	}

	return &config.VersionContract{Major: c.major, Minor: c.minor}
}

// Talos is the first release whose format the contract is. It stands for the Talos of a machine of which only the contract is known. For
// a contract that is older than the oldest Talos that nodes may run it is that oldest one.
func (c Contract) Talos() Talos {
	if c.IsZero() {
		return Talos{}
	}

	return Talos{version: semver.Version{Major: uint64(talosMajor), Minor: uint64(max(c.minor, oldestNodeMinor))}} //nolint:gosec // never negative
}

// AtLeast reports whether the contract is that of Talos 1.<minor> or newer.
func (c Contract) AtLeast(minor int) bool {
	return !c.Less(Contract{major: talosMajor, minor: minor})
}

// Less reports whether the contract is older than the other.
func (c Contract) Less(other Contract) bool {
	if c.major != other.major {
		return c.major < other.major
	}

	return c.minor < other.minor
}

// CheckContract checks that a machine that boots the given Talos can read a config of the given format: an older format stays valid
// on a newer Talos, a newer one is refused.
func CheckContract(contract Contract, talos Talos) error {
	if contract.IsZero() || talos.IsZero() {
		return errors.New("config contract: neither the contract nor the Talos version may be unset")
	}

	if talos.Contract().Less(contract) {
		return fmt.Errorf("config contract %s: Talos %s cannot read it; set a contract of at most %s, or boot Talos %s or newer",
			contract, talos, talos.Contract(), contract)
	}

	return nil
}

// machineryMinor is the minor release in machinery's own version tag. The tag is a constant of the build: one that does not parse
// means a machinery that Ichor cannot be built with, and the program must not start.
func machineryMinor(tag string) int {
	contract, err := config.ParseContractFromVersion(tag)
	if err != nil || contract.Major != talosMajor || contract.Minor < oldestNodeMinor {
		panic(fmt.Sprintf("version: machinery's version tag %q is not a Talos release of major %d", tag, talosMajor))
	}

	return contract.Minor
}
