// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/storage"
	"github.com/maesh-dev/ichor/internal/version"
)

var update = flag.Bool("update", false, "write the golden files")

func object(spec bootstrapv1.TalosStorageSpec) *bootstrapv1.TalosStorage {
	return &bootstrapv1.TalosStorage{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Spec: spec}
}

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)

	return &q
}

const nvme = `disk.transport == "nvme" && !system_disk`

// prepared are specs that a user can mean, and whose preparation is a golden file.
var prepared = map[string]bootstrapv1.TalosStorageSpec{
	"v1-default": {Preset: bootstrapv1.StoragePresetLonghornV1},
	"v1-directory": {
		Preset: bootstrapv1.StoragePresetLonghornV1, Volume: bootstrapv1.StorageVolume{Type: bootstrapv1.StorageVolumeDirectory},
		NodeTags: []string{"storage", "fast"}, DiskTags: []string{"ssd", "example.com/nvme"}, StorageReserved: quantity("10Gi"),
	},
	"v1-partition": {
		Preset: bootstrapv1.StoragePresetLonghornV1,
		Volume: bootstrapv1.StorageVolume{Type: bootstrapv1.StorageVolumePartition, DiskSelector: nvme},
	},
	"v1-partition-sized-encrypted": {
		Preset: bootstrapv1.StoragePresetLonghornV1,
		Volume: bootstrapv1.StorageVolume{
			Type: bootstrapv1.StorageVolumePartition, DiskSelector: nvme, MinSize: "10GiB", MaxSize: "500GiB", Filesystem: bootstrapv1.StorageFilesystemExt4,
			Encryption: bootstrapv1.StorageEncryption{Keys: []bootstrapv1.StorageEncryptionKey{
				{Slot: new(int32(0)), Source: bootstrapv1.StorageEncryptionKeyTPM},
				{Slot: new(int32(1)), Source: bootstrapv1.StorageEncryptionKeyKMS, KMSEndpoint: "https://kms.example.com:4443"},
				{Slot: new(int32(2)), Source: bootstrapv1.StorageEncryptionKeyNodeID},
			}},
		},
	},
	"v1-disk": {
		Preset: bootstrapv1.StoragePresetLonghornV1,
		Volume: bootstrapv1.StorageVolume{Type: bootstrapv1.StorageVolumeDisk, DiskSelector: nvme},
	},
	"v2-partition": {
		Preset: bootstrapv1.StoragePresetLonghornV2,
		Volume: bootstrapv1.StorageVolume{Type: bootstrapv1.StorageVolumePartition, DiskSelector: nvme, MaxSize: "80%"},
	},
}

func TestPrepareGolden(t *testing.T) {
	t.Parallel()

	for name, spec := range prepared {
		for _, contract := range version.Supported() {
			t.Run(name+"/"+contract.String(), func(t *testing.T) {
				t.Parallel()

				preparation, err := storage.Prepare(object(spec), contract)
				if err != nil {
					t.Fatal(err)
				}

				golden := filepath.Join("testdata", name+"."+contract.String()+".yaml")
				got := describe(t, preparation)

				if *update {
					if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
						t.Fatal(err)
					}
				}

				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}

				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("preparation (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func describe(t *testing.T, preparation storage.Preparation) string {
	t.Helper()

	node, err := sigsyaml.Marshal(map[string]any{
		"nodeLabels": preparation.NodeLabels, "nodeAnnotations": preparation.NodeAnnotations,
		"diskPath": preparation.DiskPath, "warnings": preparation.Warnings,
	})
	if err != nil {
		t.Fatal(err)
	}

	return string(node) + "---\n" + string(encode(t, preparation))
}

func encode(t *testing.T, preparation storage.Preparation) []byte {
	t.Helper()

	provider, err := container.New(preparation.Documents...)
	if err != nil {
		t.Fatal(err)
	}

	data, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		t.Fatal(err)
	}

	return data
}

// What is prepared must be a config that Talos takes: read strictly, merged into a whole config and validated, for either machine type.
func TestTalosTakesThePreparation(t *testing.T) {
	t.Parallel()

	for name, spec := range prepared {
		for _, contract := range version.Supported() {
			t.Run(name+"/"+contract.String(), func(t *testing.T) {
				t.Parallel()

				preparation, err := storage.Prepare(object(spec), contract)
				if err != nil {
					t.Fatal(err)
				}

				patch, err := configpatcher.LoadPatch(encode(t, preparation))
				if err != nil {
					t.Fatal(err)
				}

				for _, machineType := range []machine.Type{machine.TypeControlPlane, machine.TypeWorker} {
					merged, err := configpatcher.Apply(configpatcher.WithConfig(base(t, contract, machineType)), []configpatcher.Patch{patch})
					if err != nil {
						t.Fatal(err)
					}

					data, err := merged.Bytes()
					if err != nil {
						t.Fatal(err)
					}

					provider, err := configloader.NewFromBytes(data)
					if err != nil {
						t.Fatal(err)
					}

					if _, err := provider.ValidateAsClient(cloud{}); err != nil {
						t.Errorf("%s: %v", machineType, err)
					}
				}

				for _, document := range preparation.Documents {
					kind := document.Kind()
					if err := version.CheckDocument(contract.Talos(), kind); err != nil {
						t.Errorf("the oldest Talos of the contract does not know it: %v", err)
					}
				}
			})
		}
	}
}

type cloud struct{}

func (cloud) String() string        { return "cloud" }
func (cloud) RequiresInstall() bool { return false }
func (cloud) InContainer() bool     { return false }

func base(t *testing.T, contract version.Contract, machineType machine.Type) config.Provider {
	t.Helper()

	bundle, err := secrets.NewBundle(secrets.NewClock(), contract.Machinery(), secrets.WithECDSAServiceAccountKey())
	if err != nil {
		t.Fatal(err)
	}

	input, err := generate.NewInput("c", "https://192.0.2.1:6443", "1.35.1",
		generate.WithVersionContract(contract.Machinery()), generate.WithSecretsBundle(bundle), generate.WithSkipUnattendedInstallConfig(true))
	if err != nil {
		t.Fatal(err)
	}

	provider, err := input.Config(machineType)
	if err != nil {
		t.Fatal(err)
	}

	return provider
}

// What Ichor writes must pass the check that it holds users to.
func TestLonghornTakesTheAnnotations(t *testing.T) {
	t.Parallel()

	for name, spec := range prepared {
		preparation, err := storage.Prepare(object(spec), version.Newest())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}

		if err := storage.CheckDisksConfig(preparation.NodeAnnotations[storage.LonghornDisksConfigAnnotation]); err != nil {
			t.Errorf("%s: %v", name, err)
		}

		if tags, found := preparation.NodeAnnotations[storage.LonghornNodeTagsAnnotation]; found {
			if err := storage.CheckNodeTags(tags); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Tags are a set: an API client may reorder them, and a reordering must not change a node's config.
func TestPrepareDoesNotDependOnTheOrderOfTags(t *testing.T) {
	t.Parallel()

	spec := prepared["v1-directory"]
	reordered := spec
	reordered.NodeTags, reordered.DiskTags = slices.Clone(spec.NodeTags), slices.Clone(spec.DiskTags)
	slices.Reverse(reordered.NodeTags)
	slices.Reverse(reordered.DiskTags)

	one, err := storage.Prepare(object(spec), version.Newest())
	if err != nil {
		t.Fatal(err)
	}

	other, err := storage.Prepare(object(reordered), version.Newest())
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(describe(t, one), describe(t, other)); diff != "" {
		t.Errorf("(-one +other):\n%s", diff)
	}
}

func TestPrepareWarnsOfReservedSpace(t *testing.T) {
	t.Parallel()

	preparation, err := storage.Prepare(object(bootstrapv1.TalosStorageSpec{
		Preset:          bootstrapv1.StoragePresetLonghornV1,
		Volume:          bootstrapv1.StorageVolume{Type: bootstrapv1.StorageVolumePartition, DiskSelector: nvme, MinSize: "10GiB"},
		StorageReserved: quantity("20Gi"),
	}), version.Newest())
	if err != nil {
		t.Fatal(err)
	}

	want := []string{"spec.storageReserved 20Gi is not less than spec.volume.minSize: on a disk of that size Longhorn ignores its disk configuration"}
	if diff := cmp.Diff(want, preparation.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()

	partition := func(change func(*bootstrapv1.StorageVolume)) bootstrapv1.TalosStorageSpec {
		volume := bootstrapv1.StorageVolume{Type: bootstrapv1.StorageVolumePartition, DiskSelector: nvme}
		change(&volume)

		return bootstrapv1.TalosStorageSpec{Preset: bootstrapv1.StoragePresetLonghornV1, Volume: volume}
	}
	v2 := func(change func(*bootstrapv1.StorageVolume)) bootstrapv1.TalosStorageSpec {
		spec := partition(change)
		spec.Preset = bootstrapv1.StoragePresetLonghornV2

		return spec
	}
	keys := func(keys ...bootstrapv1.StorageEncryptionKey) bootstrapv1.TalosStorageSpec {
		return partition(func(v *bootstrapv1.StorageVolume) { v.Encryption.Keys = keys })
	}
	nodeID := bootstrapv1.StorageEncryptionKeyNodeID

	// want is what the error must contain: field and reason.
	tests := map[string]struct {
		spec bootstrapv1.TalosStorageSpec
		want []string
	}{
		"no preset":        {spec: bootstrapv1.TalosStorageSpec{}, want: []string{"spec.preset", "longhorn-v1 or longhorn-v2"}},
		"unknown preset":   {spec: bootstrapv1.TalosStorageSpec{Preset: "longhorn"}, want: []string{`spec.preset: "longhorn"`}},
		"unknown type":     {spec: partition(func(v *bootstrapv1.StorageVolume) { v.Type = "Folder" }), want: []string{"spec.volume.type", "Folder"}},
		"type forgotten":   {spec: partition(func(v *bootstrapv1.StorageVolume) { v.Type = "" }), want: []string{"spec.volume.type: must be set"}},
		"no disk selector": {spec: partition(func(v *bootstrapv1.StorageVolume) { v.DiskSelector = "" }), want: []string{"spec.volume.diskSelector: must be set with type Partition"}},
		"disk selector with a typo": {
			spec: partition(func(v *bootstrapv1.StorageVolume) { v.DiskSelector = `disc.transport == "nvme"` }),
			want: []string{"spec.volume.diskSelector", "disc"},
		},
		"disk selector that is no condition": {
			spec: partition(func(v *bootstrapv1.StorageVolume) { v.DiskSelector = `disk.transport` }), want: []string{"spec.volume.diskSelector", "bool"},
		},
		"device path as selector": {spec: partition(func(v *bootstrapv1.StorageVolume) { v.DiskSelector = `/dev/nvme0n1` }), want: []string{"spec.volume.diskSelector"}},
		"size without a number":   {spec: partition(func(v *bootstrapv1.StorageVolume) { v.MinSize = "large" }), want: []string{`spec.volume.minSize: "large"`, "500GiB"}},
		"size of zero":            {spec: partition(func(v *bootstrapv1.StorageVolume) { v.MinSize = "0GiB" }), want: []string{`spec.volume.minSize: "0GiB"`}},
		"negative size":           {spec: partition(func(v *bootstrapv1.StorageVolume) { v.MaxSize = "-10GiB" }), want: []string{`spec.volume.maxSize: "-10GiB"`}},
		"share of zero":           {spec: partition(func(v *bootstrapv1.StorageVolume) { v.MaxSize = "0%" }), want: []string{`spec.volume.maxSize: "0%"`}},
		"share below one percent": {spec: partition(func(v *bootstrapv1.StorageVolume) { v.MaxSize = "0.5%" }), want: []string{`spec.volume.maxSize: "0.5%"`}},
		"share above all":         {spec: partition(func(v *bootstrapv1.StorageVolume) { v.MaxSize = "101%" }), want: []string{`spec.volume.maxSize: "101%"`}},
		"share as least size":     {spec: partition(func(v *bootstrapv1.StorageVolume) { v.MinSize = "10%" }), want: []string{`spec.volume.minSize: "10%"`}},
		"least above greatest": {
			spec: partition(func(v *bootstrapv1.StorageVolume) { v.MinSize, v.MaxSize = "20GiB", "10GiB" }),
			want: []string{"spec.volume.minSize: 20GiB is more than maxSize 10GiB"},
		},
		"unknown file system":  {spec: partition(func(v *bootstrapv1.StorageVolume) { v.Filesystem = "zfs" }), want: []string{"spec.volume.filesystem"}},
		"slot missing":         {spec: keys(bootstrapv1.StorageEncryptionKey{Source: nodeID}), want: []string{"spec.volume.encryption.keys[0].slot"}},
		"slot out of range":    {spec: keys(bootstrapv1.StorageEncryptionKey{Slot: new(int32(32)), Source: nodeID}), want: []string{"spec.volume.encryption.keys[0].slot"}},
		"slot used twice":      {spec: keys(bootstrapv1.StorageEncryptionKey{Slot: new(int32(1)), Source: nodeID}, bootstrapv1.StorageEncryptionKey{Slot: new(int32(1)), Source: nodeID}), want: []string{"spec.volume.encryption.keys[1].slot: 1 is used twice"}},
		"unknown key source":   {spec: keys(bootstrapv1.StorageEncryptionKey{Slot: new(int32(0)), Source: "Static"}), want: []string{"spec.volume.encryption.keys[0].source"}},
		"KMS without endpoint": {spec: keys(bootstrapv1.StorageEncryptionKey{Slot: new(int32(0)), Source: "KMS"}), want: []string{"spec.volume.encryption.keys[0].kmsEndpoint"}},
		"KMS over plain HTTP":  {spec: keys(bootstrapv1.StorageEncryptionKey{Slot: new(int32(0)), Source: "KMS", KMSEndpoint: "http://kms"}), want: []string{"spec.volume.encryption.keys[0].kmsEndpoint"}},
		"token in the query":   {spec: keys(bootstrapv1.StorageEncryptionKey{Slot: new(int32(0)), Source: "KMS", KMSEndpoint: "https://kms.example.com:4443?token=s3cr3t"}), want: []string{"spec.volume.encryption.keys[0].kmsEndpoint: must be the address"}},
		"endpoint without KMS": {spec: keys(bootstrapv1.StorageEncryptionKey{Slot: new(int32(0)), Source: "TPM", KMSEndpoint: "https://kms"}), want: []string{"spec.volume.encryption.keys[0].kmsEndpoint: must not be set with source TPM"}},
		"directory with everything else": {
			spec: partition(func(v *bootstrapv1.StorageVolume) {
				v.Type, v.MinSize, v.MaxSize, v.Filesystem = bootstrapv1.StorageVolumeDirectory, "1GiB", "2GiB", "xfs"
				v.Encryption.Keys = []bootstrapv1.StorageEncryptionKey{{Slot: new(int32(0)), Source: nodeID}}
			}),
			want: []string{"spec.volume.diskSelector", "spec.volume.minSize", "spec.volume.maxSize", "spec.volume.filesystem", "spec.volume.encryption", "type Directory"},
		},
		"disk with sizes": {
			spec: partition(func(v *bootstrapv1.StorageVolume) {
				v.Type, v.MinSize, v.MaxSize = bootstrapv1.StorageVolumeDisk, "1GiB", "50%"
			}),
			want: []string{"spec.volume.minSize: must not be set with type Disk", "spec.volume.maxSize: must not be set with type Disk"},
		},
		"disk without selector": {
			spec: partition(func(v *bootstrapv1.StorageVolume) { v.Type, v.DiskSelector = bootstrapv1.StorageVolumeDisk, "" }),
			want: []string{"spec.volume.diskSelector: must be set with type Disk"},
		},
		"v2 without volume":     {spec: bootstrapv1.TalosStorageSpec{Preset: bootstrapv1.StoragePresetLonghornV2}, want: []string{"spec.volume.type: must be Partition with preset longhorn-v2"}},
		"v2 in a directory":     {spec: v2(func(v *bootstrapv1.StorageVolume) { v.Type = bootstrapv1.StorageVolumeDirectory }), want: []string{"spec.volume.type: must be Partition"}},
		"v2 with a file system": {spec: v2(func(v *bootstrapv1.StorageVolume) { v.Filesystem = "xfs" }), want: []string{"spec.volume.filesystem: must not be set with preset longhorn-v2"}},
		"v2 with encryption": {spec: v2(func(v *bootstrapv1.StorageVolume) {
			v.Encryption = keys(bootstrapv1.StorageEncryptionKey{Slot: new(int32(0)), Source: nodeID}).Volume.Encryption
		}), want: []string{"spec.volume.encryption: must not be set with preset longhorn-v2"}},
		"v2 with a bad selector":  {spec: v2(func(v *bootstrapv1.StorageVolume) { v.DiskSelector = "true &&" }), want: []string{"spec.volume.diskSelector"}},
		"node tag with a space":   {spec: bootstrapv1.TalosStorageSpec{Preset: "longhorn-v1", NodeTags: []string{"ok", "not ok"}}, want: []string{`spec.nodeTags[1]: "not ok"`}},
		"disk tag in two":         {spec: bootstrapv1.TalosStorageSpec{Preset: "longhorn-v1", DiskTags: []string{"ssd", "ssd"}}, want: []string{`spec.diskTags[1]: "ssd" is given twice`}},
		"empty tag":               {spec: bootstrapv1.TalosStorageSpec{Preset: "longhorn-v1", DiskTags: []string{""}}, want: []string{"spec.diskTags[0]"}},
		"bad namespace":           {spec: bootstrapv1.TalosStorageSpec{Preset: "longhorn-v1", Namespace: "Longhorn"}, want: []string{`spec.namespace: "Longhorn"`}},
		"less than nothing stays": {spec: bootstrapv1.TalosStorageSpec{Preset: "longhorn-v1", StorageReserved: quantity("-1Gi")}, want: []string{"spec.storageReserved: -1Gi"}},
		"a fraction of a byte":    {spec: bootstrapv1.TalosStorageSpec{Preset: "longhorn-v1", StorageReserved: quantity("100m")}, want: []string{"spec.storageReserved: 100m"}},
		"more than a disk can be": {spec: bootstrapv1.TalosStorageSpec{Preset: "longhorn-v1", StorageReserved: quantity("1e30")}, want: []string{"spec.storageReserved: 1e30"}},
		"everything stays free": {spec: func() bootstrapv1.TalosStorageSpec {
			s := partition(func(v *bootstrapv1.StorageVolume) { v.MaxSize = "10GiB" })
			s.StorageReserved = quantity("10Gi")
			return s
		}(), want: []string{"spec.storageReserved: 10Gi is not less than spec.volume.maxSize"}},
		"faults are told together": {spec: func() bootstrapv1.TalosStorageSpec {
			s := partition(func(v *bootstrapv1.StorageVolume) { v.DiskSelector, v.MinSize = "", "x" })
			s.DiskTags = []string{"a b"}
			return s
		}(), want: []string{"spec.volume.diskSelector", "spec.volume.minSize", "spec.diskTags[0]"}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, contract := range version.Supported() {
				preparation, err := storage.Prepare(object(tc.spec), contract)
				if err == nil {
					t.Fatalf("%s: accepted: %+v", contract, preparation)
				}

				for _, part := range tc.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: error does not tell %q:\n%v", contract, part, err)
					}
				}

				for _, fault := range storage.Errors(err) {
					if fault.Storage != object(tc.spec).Name || !strings.HasPrefix(fault.Field, "spec.") || strings.HasPrefix(fault.Err.Error(), "spec.") {
						t.Errorf("%s: storage %q, field %q, words %q: each must say its part and no other", contract, fault.Storage, fault.Field, fault.Err)
					}
				}
			}
		})
	}

	if _, err := storage.Prepare(object(prepared["v1-default"]), version.Contract{}); err == nil {
		t.Error("an unset contract is accepted")
	}
}
