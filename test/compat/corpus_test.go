// SPDX-License-Identifier: Apache-2.0

package compat_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/version"
	"github.com/maesh-dev/ichor/test/tools"
)

const (
	modern      = "apiVersion: v1alpha1\nkind: "
	userVolume  = modern + "UserVolumeConfig\nname: data\nprovisioning: {diskSelector: {match: '!system_disk'}, "
	bond        = modern + "BondConfig\nname: bond0\nlinks: [eth0, eth1]\nbondMode: active-backup\n"
	kubeletArgs = "machine: {kubelet: {extraArgs: {feature-gates: "
)

// corpus are patches, each with the contract of the first Talos that takes it.
var corpus = map[string]struct{ patch, since string }{
	"argument given once":      {kubeletArgs + "A=true}}}", "v1.12"},
	"argument given twice":     {kubeletArgs + "[A=true, B=true]}}}", "v1.14"},
	"argument in a list":       {kubeletArgs + "[A=true]}}}", "v1.14"},
	"argument of no value":     {kubeletArgs + "[]}}}", "v1.14"},
	"argument of API server":   {"cluster: {apiServer: {extraArgs: {v: ['1', '2']}}}", "v1.14"},
	"size":                     {userVolume + "maxSize: 5GiB}", "v1.12"},
	"share of the disk":        {userVolume + "maxSize: 5%}", "v1.12"},
	"negative size":            {userVolume + "maxSize: -5GiB}", "v1.13"},
	"negative share":           {userVolume + "maxSize: -5%}", "v1.13"},
	"negative size, raw":       {modern + "RawVolumeConfig\nname: data\nprovisioning: {diskSelector: {match: '!system_disk'}, maxSize: -5GiB}", "v1.13"},
	"negative size, swap":      {modern + "SwapVolumeConfig\nname: swap\nprovisioning: {diskSelector: {match: '!system_disk'}, maxSize: -5GiB}", "v1.13"},
	"negative size, system":    {modern + "VolumeConfig\nname: EPHEMERAL\nprovisioning: {maxSize: -5GiB}", "v1.13"},
	"file system":              {userVolume + "maxSize: 5GiB}\nfilesystem: {type: ext4}", "v1.12"},
	"newer file system":        {userVolume + "maxSize: 5GiB}\nfilesystem: {type: btrfs}", "v1.14"},
	"image cache":              {modern + "VolumeConfig\nname: IMAGECACHE\nprovisioning: {maxSize: 5GiB}", "v1.12"},
	"volume of etcd":           {modern + "VolumeConfig\nname: ETCD\nprovisioning: {maxSize: 5GiB}", "v1.14"},
	"volume of the CRI":        {modern + "VolumeConfig\nname: CRI\nprovisioning: {maxSize: 5GiB}", "v1.14"},
	"volume of the kubelet":    {modern + "VolumeConfig\nname: KUBELET\nprovisioning: {maxSize: 5GiB}", "v1.14"},
	"volume of logs":           {modern + "VolumeConfig\nname: LOG\nprovisioning: {maxSize: 5GiB}", "v1.14"},
	"bond":                     {bond, "v1.12"},
	"bond with fail-over mode": {bond + "failOverMac: active", "v1.13"},
	"field of a volume":        {userVolume + "maxSize: 5GiB}\nmount: {secure: true}", "v1.13"},
	"field in a list":          {modern + "ResolverConfig\nnameservers: [{address: 10.0.0.1, protocol: DoT}]", "v1.14"},
	"kind":                     {modern + "VRFConfig\nname: vrf0\nlinks: [eth0]\ntable: 123", "v1.13"},
}

// TestRefusalsAreThoseOfOlderTalos merges each patch into a config of an older contract. What the version tables refuse for that
// Talos its own machinery must refuse too, and what they let pass it must take.
func TestRefusalsAreThoseOfOlderTalos(t *testing.T) {
	t.Parallel()

	for contract, name := range validators {
		validator, err := tools.Path(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}

		talos, err := version.ParseTalos(contract + ".0")
		if err != nil {
			t.Fatal(err)
		}

		base, err := os.ReadFile(filepath.Join("..", "..", "internal", "machineconfig", "testdata", "golden", contract, "controlplane-plain.yaml"))
		if err != nil {
			t.Fatal(err)
		}

		for title, each := range corpus {
			t.Run(contract+" "+title, func(t *testing.T) {
				t.Parallel()

				since, err := version.ParseContract(each.since)
				if err != nil {
					t.Fatal(err)
				}

				merged := mergeInto(t, base, each.patch)
				takes := !talos.Contract().Less(since)

				if err := tooNew(t, talos, merged); (err == nil) != takes {
					t.Errorf("the version tables say %v; want taken: %v", err, takes)
				}

				encoded, err := merged.Encode()
				if err != nil {
					t.Fatal(err)
				}

				command := exec.CommandContext(t.Context(), validator, "-mode", "metal")
				command.Stdin = bytes.NewReader(encoded)

				if out, err := command.CombinedOutput(); (err == nil) != takes {
					t.Errorf("Talos says %v; want taken: %v\n%s", err, takes, out)
				}
			})
		}
	}
}

func mergeInto(t *testing.T, base []byte, patch string) *merge.Config {
	t.Helper()

	provider, err := configloader.NewFromBytes(base)
	if err != nil {
		t.Fatal(err)
	}

	loaded, err := merge.Load([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}

	merged := merge.New(provider)
	if err := merged.Apply(loaded, nil); err != nil {
		t.Fatal(err)
	}

	return merged
}

// tooNew asks the version tables about what was patched. An error that is none of theirs fails the test.
func tooNew(t *testing.T, talos version.Talos, merged *merge.Config) error {
	t.Helper()

	var errs []error

	for _, id := range merged.Reached() {
		kind := id.Kind
		if kind == merge.LegacyKind {
			kind = v1alpha1.Version
		}

		err := errors.Join(
			version.CheckDocument(talos, kind, merged.ReachedPointers(id)...),
			version.CheckValues(talos, kind, func(pointer string) (string, bool) {
				value, set := merged.Value(id, pointer)

				return value.Reveal(), set
			}))
		if _, ok := errors.AsType[*version.TooNewError](err); err != nil && !ok {
			t.Fatal(err)
		}

		errs = append(errs, err)
	}

	return errors.Join(errs...)
}
