// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// vanilla is the Image Factory's schematic without any extension.
const vanilla = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

func TestInstallerImage(t *testing.T) {
	t.Parallel()

	metal := bootstrapv1.InstallerSpec{Platform: "metal"}
	pool := func(name, label string) bootstrapv1.TalosPool {
		return bootstrapv1.TalosPool{Name: name, MachineSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": label}}}
	}
	with := func(pool bootstrapv1.TalosPool, change func(*bootstrapv1.TalosPool)) bootstrapv1.TalosPool {
		change(&pool)

		return pool
	}

	// The machine has the label pool=storage.
	cases := map[string]struct {
		talos bootstrapv1.TalosSpec
		image string
		want  string
	}{
		"version and platform": {
			talos: bootstrapv1.TalosSpec{Version: "v1.13.4", Installer: metal},
			want:  "factory.talos.dev/metal-installer/" + vanilla + ":v1.13.4",
		},
		"own registry, platform, secure boot and schematic": {
			talos: bootstrapv1.TalosSpec{
				Version: "v1.13.4", SchematicID: schematic("a"),
				Installer: bootstrapv1.InstallerSpec{Registry: "r.example:5000/f", Platform: "vmware", SecureBoot: bootstrapv1.Enabled},
			},
			want: "r.example:5000/f/vmware-installer-secureboot/" + schematic("a") + ":v1.13.4",
		},
		"secure boot disabled": {
			talos: bootstrapv1.TalosSpec{Version: "v1.13.4", Installer: bootstrapv1.InstallerSpec{Platform: "metal", SecureBoot: bootstrapv1.Disabled}},
			want:  "factory.talos.dev/metal-installer/" + vanilla + ":v1.13.4",
		},
		"explicit image": {
			talos: bootstrapv1.TalosSpec{
				Version: "v1.13.4", SchematicID: schematic("a"), Installer: metal,
				Pools: []bootstrapv1.TalosPool{with(pool("p", "storage"), func(p *bootstrapv1.TalosPool) { p.SchematicID = schematic("b") })},
			},
			image: "r.example/own:v1", want: "r.example/own:v1",
		},
		"pool that does not match": {
			talos: bootstrapv1.TalosSpec{
				Version: "v1.13.4", Installer: metal,
				Pools: []bootstrapv1.TalosPool{with(pool("gpu", "gpu"), func(p *bootstrapv1.TalosPool) { p.SchematicID = schematic("b") })},
			},
			want: "factory.talos.dev/metal-installer/" + vanilla + ":v1.13.4",
		},
		"pool sets one thing, the cluster the rest": {
			talos: bootstrapv1.TalosSpec{
				Version: "v1.13.4", SchematicID: schematic("a"), Installer: metal,
				Pools: []bootstrapv1.TalosPool{with(pool("p", "storage"), func(p *bootstrapv1.TalosPool) { p.Version = "v1.13.6" })},
			},
			want: "factory.talos.dev/metal-installer/" + schematic("a") + ":v1.13.6",
		},
		"pool sets everything": {
			talos: bootstrapv1.TalosSpec{
				Version: "v1.13.4", SchematicID: schematic("a"), Installer: bootstrapv1.InstallerSpec{Platform: "metal", SecureBoot: bootstrapv1.Enabled},
				Pools: []bootstrapv1.TalosPool{with(pool("p", "storage"), func(p *bootstrapv1.TalosPool) {
					p.Version, p.SchematicID = "v1.13.6", schematic("b")
					p.Installer = bootstrapv1.InstallerSpec{Registry: "r.example", Platform: "nocloud", SecureBoot: bootstrapv1.Disabled}
				})},
			},
			want: "r.example/nocloud-installer/" + schematic("b") + ":v1.13.6",
		},
		"the first pool that matches wins, whole": {
			talos: bootstrapv1.TalosSpec{
				Version: "v1.13.4", SchematicID: schematic("a"), Installer: metal,
				Pools: []bootstrapv1.TalosPool{
					with(pool("gpu", "gpu"), func(p *bootstrapv1.TalosPool) { p.SchematicID = schematic("b") }),
					with(pool("canary", "storage"), func(p *bootstrapv1.TalosPool) { p.Version = "v1.13.6" }),
					with(pool("storage", "storage"), func(p *bootstrapv1.TalosPool) { p.Version, p.SchematicID = "v1.13.5", schematic("c") }),
				},
			},
			want: "factory.talos.dev/metal-installer/" + schematic("a") + ":v1.13.6",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input(t, "v1.13", false)
			clusterConfig(&in).Spec.Talos = tc.talos
			in.TalosConfig.Spec.Install = bootstrapv1.InstallSpec{Disk: "/dev/sda", Image: tc.image}

			if diff := cmp.Diff(tc.want, renderOf(t, in).legacy().MachineConfig.MachineInstall.InstallImage); diff != "" {
				t.Errorf("image (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKernelArguments wants Talos' condition for them kept: no command line of a unified kernel image beside them.
func TestKernelArguments(t *testing.T) {
	t.Parallel()

	for _, contract := range []string{"v1.12", "v1.13"} {
		in := input(t, contract, false)
		withInstall(&in)

		plain := renderOf(t, in).legacy().MachineConfig.MachineInstall
		if plain.InstallGrubUseUKICmdline != nil && !*plain.InstallGrubUseUKICmdline {
			t.Errorf("%s: grubUseUKICmdline is off without kernel arguments", contract)
		}

		in.TalosConfig.Spec.Install.ExtraKernelArgs = []string{"console=ttyS0", "quiet"}

		got := renderOf(t, in).legacy().MachineConfig.MachineInstall
		if diff := cmp.Diff([]string{"console=ttyS0", "quiet"}, got.InstallExtraKernelArgs); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", contract, diff)
		}

		if got.InstallGrubUseUKICmdline == nil || *got.InstallGrubUseUKICmdline {
			t.Errorf("%s: grubUseUKICmdline is not off", contract)
		}
	}
}

func TestDiskSelector(t *testing.T) {
	t.Parallel()

	in := input(t, version.Newest().String(), true)
	in.TalosConfig.Spec.Install = bootstrapv1.InstallSpec{DiskSelector: `disk.transport == "nvme"`, Image: "r.example/installer:v1"}

	documents := documentsOf[*runtime.UnattendedInstallConfigV1Alpha1](renderOf(t, in))
	if len(documents) != 1 {
		t.Fatalf("%d documents, want one", len(documents))
	}

	if got := documents[0].ProvisioningSpec.DiskSelector.Match.String(); got != `disk.transport == "nvme"` {
		t.Errorf("selector %q", got)
	}
}

// TestPlatform wants the platform to decide how a config is validated: metal demands an install disk before contract 1.14.
func TestPlatform(t *testing.T) {
	t.Parallel()

	for platform, refused := range map[bootstrapv1.Platform]bool{
		"": false, bootstrapv1.PlatformCloud: false, bootstrapv1.PlatformContainer: false, bootstrapv1.PlatformMetal: true,
	} {
		in := input(t, "v1.13", false)
		in.TalosConfig.Spec.Platform = platform

		_, err := machineconfig.Render(in)
		if (err != nil) != refused {
			t.Errorf("platform %q without an install disk: %v, refused should be %t", platform, err, refused)
		}
	}
}

// TestHostnameSource wants no hostname of ours where Talos chooses, and one that a patch sets to win.
func TestHostnameSource(t *testing.T) {
	t.Parallel()

	for _, source := range []bootstrapv1.HostnameSource{"", bootstrapv1.HostnameSourceAutomatic} {
		in := input(t, "v1.14", false)
		in.TalosConfig.Spec.Hostname.Source = source

		if got := hostname(renderOf(t, in), on{}); got != "" {
			t.Errorf("source %q: hostname %v", source, got)
		}
	}

	for layout, document := range map[string]string{
		"modern": "{kind: HostnameConfig, hostnameConfig: {hostname: mine}}",
		"legacy": "{kind: Config, config: {machine: {network: {hostname: mine}}}}",
	} {
		in := input(t, "v1.13", false)
		in.TalosConfig.Spec.Hostname.Source = bootstrapv1.HostnameSourceMachineName
		in.Patches = []*machineconfig.Patch{patch(t, "metadata: {name: p}\nspec: {layer: Machine, clusterName: c1, documents: ["+document+"]}")}

		r := renderOf(t, in)

		names := []string{}
		if network := r.legacy().MachineConfig.MachineNetwork; network != nil {
			names = append(names, network.NetworkHostname)
		}

		if modern := hostname(r, on{}); modern != "0 documents" {
			names = append(names, fmt.Sprint(modern))
		}

		if diff := cmp.Diff([]string{"mine"}, names); diff != "" {
			t.Errorf("%s layout: hostnames (-want +got):\n%s", layout, diff)
		}
	}
}

// Two machines must never be one Node because Talos cuts their names at the first dot.
func TestHostnameThatIsCut(t *testing.T) {
	t.Parallel()

	const modern, legacy = "{kind: KubeNodeConfig, kubeNodeConfig: {registerWithFQDN: true}}", "{kind: Config, config: {machine: {kubelet: {registerWithFQDN: true}}}}"

	long := strings.Repeat("m", 63)

	tests := map[string]struct{ contract, machine, document, want string }{
		"as long as may be":                   {contract: "v1.14", machine: long},
		"longer":                              {contract: "v1.14", machine: long + "m", want: "64 characters before the first dot"},
		"longer, and a patch names it":        {contract: "v1.14", machine: long + "m", document: "{kind: HostnameConfig, hostnameConfig: {hostname: mine}}"},
		"longer, and a legacy patch names it": {contract: "v1.13", machine: long + "m", document: "{kind: Config, config: {machine: {network: {hostname: mine}}}}"},
		"dotted":                              {contract: "v1.14", machine: "pool.a-x7f2k", want: "has a dot"},
		"dotted, contract 1.13":               {contract: "v1.13", machine: "pool.a-x7f2k", want: "has a dot"},
		"dotted, and the Node has all of it":  {contract: "v1.14", machine: "w1.example.com", document: modern},
		"the same, contract 1.13":             {contract: "v1.13", machine: "w1.example.com", document: legacy},
		"the same, switched off":              {contract: "v1.13", machine: "w1.example.com", document: strings.Replace(legacy, "true", "false", 1), want: "has a dot"},
		"dotted and longer":                   {contract: "v1.14", machine: long + "m.example.com", document: modern, want: "64 characters"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input(t, test.contract, false)
			in.TalosConfig.Spec.Hostname.Source = bootstrapv1.HostnameSourceMachineName
			in.Machine.Name = test.machine

			if test.document != "" {
				in.Patches = []*machineconfig.Patch{patch(t, "metadata: {name: p}\nspec: {layer: Machine, clusterName: c1, documents: ["+test.document+"]}")}
			}

			_, err := machineconfig.Render(in)

			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "TalosConfig w1 spec.hostname")):
				t.Errorf("got %v, want one that says %q", err, test.want)
			}
		})
	}
}

// A container has the files of its host, so that a directory may be there which a booted Talos cannot have.
func TestMountOfTheHost(t *testing.T) {
	t.Parallel()

	for platform, refused := range map[bootstrapv1.Platform]bool{bootstrapv1.PlatformContainer: false, bootstrapv1.PlatformCloud: true} {
		object := &bootstrapv1.TalosConfigPatch{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: namespace}}
		object.Spec.ClusterName, object.Spec.Layer = "c1", bootstrapv1.PatchLayerCluster

		patch, err := machineconfig.TalosPatch(object, "{machine: {kubelet: {extraMounts: [{destination: /var/data, type: bind, source: /data, options: [bind, rw]}]}}}")
		if err != nil {
			t.Fatal(err)
		}

		in := input(t, "v1.13", false)
		in.TalosConfig.Spec.Platform = platform
		in.Patches = append(in.Patches, patch)

		if _, err = machineconfig.Render(in); (err != nil) != refused {
			t.Errorf("platform %s: got %v", platform, err)
		}
	}
}
