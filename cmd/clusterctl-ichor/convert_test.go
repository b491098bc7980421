// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/internal/cli"
)

// TestSecretsFile: credentials are in the file that was named, which only its owner can read, and nowhere else.
func TestSecretsFile(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	const key = "4MG8VQdTXVs4wvwSZxdsdPdRLRYGxtVjp5XAq28GF3E="

	file := filepath.Join(t.TempDir(), "secret.yaml")
	got := run("", "convert", "-f", convertFiles+"/wireguard.yaml", "--secrets-file", file, "--no-render")
	g.Expect(got.code).To(BeZero(), got.String())
	g.Expect(got.out + got.errOut).NotTo(ContainSubstring(key))
	g.Expect(got.out).To(ContainSubstring("privateKeySecretRef:\n        key: WireguardConfig.wg0.privateKey\n        name: wireguard\n"))
	g.Expect(got.errOut).To(Equal("note: credentials are in Secret wireguard, whose manifest is in " + file +
		": keep that file out of Git, or encrypt it, and apply it beside the patch\n"))

	info, err := os.Stat(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o600)))

	data, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).To(Equal(`apiVersion: v1
kind: Secret
metadata:
  labels:
    clusterctl.cluster.x-k8s.io/move: ""
  name: wireguard
stringData:
  WireguardConfig.wg0.peers.0.presharedKey: ` + key + `
  WireguardConfig.wg0.privateKey: ` + key + `
type: Opaque
`))

	entries, err := os.ReadDir(filepath.Dir(file))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(HaveLen(1), "nothing half-written is left behind")
}

// TestSecretsFileIsKept: what is in the file already may be the only copy of it.
func TestSecretsFileIsKept(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	file := filepath.Join(t.TempDir(), "secret.yaml")
	g.Expect(os.WriteFile(file, []byte("from before"), 0o600)).To(Succeed())

	args := []string{"convert", "-f", convertFiles + "/wireguard.yaml", "--secrets-file", file, "--no-render"}
	refused := run("", args...)
	g.Expect(refused.code).To(Equal(cli.ExitUsage), refused.String())
	g.Expect(refused.out).To(BeEmpty())
	g.Expect(refused.errOut).To(ContainSubstring(file + " is there already, with other content: remove it if nobody needs it, or name another file"))
	g.Expect(os.ReadFile(file)).To(Equal([]byte("from before")))

	g.Expect(os.Remove(file)).To(Succeed())

	first := run("", args...)
	g.Expect(first.code).To(BeZero(), first.String())
	g.Expect(os.Chmod(file, 0o644)).To(Succeed()) //nolint:gosec // what others can read becomes private
	g.Expect(run("", args...)).To(Equal(first), "the same may be written again")

	info, err := os.Stat(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o600)))
}

// TestOldFormIsTold: Talos takes the older form, which loses against the newer one whatever the layers are.
func TestOldFormIsTold(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	const document = "machine:\n  sysctls:\n    vm.swappiness: \"1\"\n  registries:\n    mirrors:\n      docker.io:\n        endpoints: [https://mirror.example.com]\n"

	newest := run(document, "convert", "-f", "-", "--name", "a", "--contract", "v1.14")
	g.Expect(newest.code).To(BeZero(), newest.String())
	g.Expect(newest.errOut).To(Equal("note: -:2: document 0: Config: /machine/sysctls: is the older form: config contract v1.14 has it as SysctlConfig (params)\n" +
		"note: -:5: document 0: Config: /machine/registries/mirrors: is the older form: config contract v1.14 has it as " +
		"spec.registries of the TalosClusterConfig, or a RegistryMirrorConfig for each registry\n"))

	older := run(document, "convert", "-f", "-", "--name", "a", "--contract", "v1.13")
	g.Expect(older.code).To(BeZero(), older.String())
	g.Expect(older.errOut).NotTo(ContainSubstring("SysctlConfig"))
}

// TestNoRenderIsTold: only where another patch can bring what is missing.
func TestNoRenderIsTold(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	const note = "use --no-render"

	part := "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning: {diskSelector: {match: system_disk}}\n"
	lacking := run(part, "convert", "-f", "-", "--name", "a")
	g.Expect(lacking.code).To(Equal(cli.ExitFindings))
	g.Expect(lacking.errOut).To(ContainSubstring(note))
	g.Expect(run(part, "convert", "-f", "-", "--name", "a", "--no-render").code).To(BeZero())

	wrong := "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: worker..1\nauto: \"off\"\n"
	refused := run(wrong, "convert", "-f", "-", "--name", "a")
	g.Expect(refused.code).To(Equal(cli.ExitFindings))
	g.Expect(refused.errOut).NotTo(ContainSubstring(note))

	alone := run(wrong, "convert", "-f", "-", "--name", "a", "--no-render")
	g.Expect(alone.code).To(Equal(cli.ExitFindings), "admission refuses it")
	g.Expect(alone.errOut).To(ContainSubstring("/hostname: not a hostname"))
}

// TestNothingIsWrittenOnFailure: neither output nor file.
func TestNothingIsWrittenOnFailure(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	file := filepath.Join(t.TempDir(), "secret.yaml")
	got := run("", "convert", "-f", convertFiles+"/wireguard.yaml", "-f", convertFiles+"/unfit.yaml", "--secrets-file", file)
	g.Expect(got.code).To(Equal(cli.ExitFindings))
	g.Expect(got.out).To(BeEmpty())
	g.Expect(file).NotTo(BeAnExistingFile())

	unwritable := run("", "convert", "-f", convertFiles+"/wireguard.yaml", "--no-render", "--secrets-file", filepath.Join(t.TempDir(), "absent", "secret.yaml"))
	g.Expect(unwritable.code).To(Equal(cli.ExitUsage))
	g.Expect(unwritable.out).To(BeEmpty())
	g.Expect(unwritable.errOut).To(ContainSubstring("write the Secret"))

	without := run("", "convert", "-f", convertFiles+"/volume.yaml", "--secrets-file", file)
	g.Expect(without.code).To(BeZero())
	g.Expect(without.errOut).To(ContainSubstring("there are no credentials in the documents"))
	g.Expect(file).NotTo(BeAnExistingFile())
}

// TestConvertedPatchValidates: what convert prints is what validate takes.
func TestConvertedPatchValidates(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"volume", "legacy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			converted := run("", "convert", "-f", convertFiles+"/"+name+".yaml", "--contract", "v1.13")
			g.Expect(converted.code).To(BeZero(), converted.String())

			validated := run(converted.out, "validate", "-f", "-")
			g.Expect(validated.code).To(BeZero(), validated.String())
			g.Expect(validated.out).To(Equal("0 errors, 0 warnings; 0 machine configs valid\n"))
		})
	}
}

// TestConvertStandardInput: the same as from a file, but for the name.
func TestConvertStandardInput(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	data, err := os.ReadFile(convertFiles + "/volume.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(run(string(data), "convert", "-f", "-", "--name", "volume")).To(Equal(run("", "convert", "-f", convertFiles+"/volume.yaml")))

	broken := run("machine: [\n", "convert", "-f", "-", "--name", "a")
	g.Expect(broken.code).To(Equal(cli.ExitUsage))
	g.Expect(broken.out).To(BeEmpty())
}
