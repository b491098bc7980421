// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"
	"time"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
)

// benchPatches are what a worker has in practice: a mirror with a login, a volume, sysctls, node labels, kubelet config.
var benchPatches = []string{`apiVersion: v1alpha1
kind: RegistryMirrorConfig
name: docker.io
endpoints:
  - url: https://mirror.example.com/v2/docker.io
    overridePath: true
---
apiVersion: v1alpha1
kind: RegistryAuthConfig
name: mirror.example.com
username: puller
password: secret
`, `apiVersion: v1alpha1
kind: UserVolumeConfig
name: longhorn
provisioning:
  diskSelector:
    match: disk.size > 100u * GiB && !system_disk
  minSize: 100GiB
  grow: true
filesystem:
  type: xfs
`, `apiVersion: v1alpha1
kind: SysctlConfig
params:
  vm.max_map_count: "262144"
  net.core.somaxconn: "4096"
  fs.inotify.max_user_watches: "1048576"
`, `apiVersion: v1alpha1
kind: KubeNodeConfig
labels:
  topology.kubernetes.io/zone: a
  topology.kubernetes.io/region: r
annotations:
  example.com/note: hello
`, `apiVersion: v1alpha1
kind: KubeletConfig
config:
  maxPods: 200
  serializeImagePulls: false
  evictionHard:
    memory.available: 500Mi
  systemReserved:
    cpu: 200m
    memory: 1Gi
---
apiVersion: v1alpha1
kind: UserVolumeConfig
name: longhorn
provisioning:
  maxSize: 90%
`}

func generated(t testing.TB, machineType machine.Type) coreconfig.Provider {
	t.Helper()

	contract := coreconfig.TalosVersion1_14

	bundle, err := secrets.NewBundle(secrets.NewFixedClock(time.Unix(1700000000, 0)), contract, secrets.WithECDSAServiceAccountKey())
	if err != nil {
		t.Fatal(err)
	}

	input, err := generate.NewInput("demo", "https://10.0.0.1:6443", "1.36.0",
		generate.WithVersionContract(contract), generate.WithSecretsBundle(bundle), generate.WithInstallDisk("/dev/sda"))
	if err != nil {
		t.Fatal(err)
	}

	provider, err := input.Config(machineType)
	if err != nil {
		t.Fatal(err)
	}

	return provider
}

func benchmarkBases(b *testing.B, run func(b *testing.B, base coreconfig.Provider)) {
	b.Helper()

	for name, machineType := range map[string]machine.Type{"worker": machine.TypeWorker, "controlplane": machine.TypeControlPlane} {
		base := generated(b, machineType)

		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			run(b, base)
		})
	}
}

func BenchmarkLoadTalos(b *testing.B) {
	b.ReportAllocs()

	for b.Loop() {
		for _, text := range benchPatches {
			if _, err := configpatcher.LoadPatch([]byte(text)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()

	for b.Loop() {
		for _, text := range benchPatches {
			mustLoad(b, text)
		}
	}
}

func BenchmarkApplyTalos(b *testing.B) {
	patches, err := configpatcher.LoadPatches(benchPatches)
	if err != nil {
		b.Fatal(err)
	}

	benchmarkBases(b, func(b *testing.B, base coreconfig.Provider) {
		for b.Loop() {
			out, err := configpatcher.Apply(configpatcher.WithConfig(base), patches)
			if err != nil {
				b.Fatal(err)
			}

			if _, err := out.Config(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchmarkApply(b *testing.B, observe Observer) {
	b.Helper()

	patches := make([]*Patch, len(benchPatches))
	for i, text := range benchPatches {
		patches[i] = mustLoad(b, text)
	}

	benchmarkBases(b, func(b *testing.B, base coreconfig.Provider) {
		for b.Loop() {
			c := New(base)
			for _, p := range patches {
				mustApply(b, c, p, observe)
			}

			if _, err := c.Provider(); err != nil {
				b.Fatal(err)
			}

			if observe != nil && len(c.Leaves()) == 0 {
				b.Fatal("no leaves")
			}
		}
	})
}

func BenchmarkApply(b *testing.B) { benchmarkApply(b, nil) }

// BenchmarkApplyObserved also lists the leaves of the result, as provenance does.
func BenchmarkApplyObserved(b *testing.B) { benchmarkApply(b, func(Change) {}) }
