// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	bootstrapcrd "github.com/maesh-dev/ichor/config/bootstrap/crd"
	controlplanecrd "github.com/maesh-dev/ichor/config/controlplane/crd"
	"github.com/maesh-dev/ichor/internal/cli/admission"
	"github.com/maesh-dev/ichor/internal/cli/inventory"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

const cluster = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: edge}
spec:
  controlPlaneEndpoint: {host: 192.0.2.10, port: 6443}
---
`

// machineSpec is the spec of a machine with a reference to a config.
func machineSpec(kind, name string) string {
	return "{clusterName: edge, version: 1.36.1, bootstrap: {configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: " + kind + ", name: " + name + "}}}"
}

func owned(kind, name string) string {
	return "apiVersion: cluster.x-k8s.io/v1beta2\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec:\n  clusterName: edge\n" +
		"  template: {metadata: {labels: {pool: gpu}}, spec: " + machineSpec("TalosConfigTemplate", "t") + "}\n---\n"
}

const template = "apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: TalosConfigTemplate\nmetadata: {name: t}\nspec: {template: {spec: {configContract: v1.14}}}\n---\n"

const config = "apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: TalosConfig\nmetadata: {name: c}\nspec: {configContract: v1.14}\n---\n"

func machine(name, spec string) string {
	return "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine\nmetadata: {name: " + name + "}\nspec: " + spec + "\n---\n"
}

func load(t *testing.T, content string) *manifest.Set {
	t.Helper()
	g := NewWithT(t)

	rules, err := admission.Load(bootstrapcrd.Bases(), controlplanecrd.Bases())
	g.Expect(err).NotTo(HaveOccurred())

	set, err := manifest.Load(manifest.Files{Names: []string{manifest.Stdin}, Stdin: strings.NewReader(content)}, "default", rules)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(set.Problems).To(BeEmpty())

	return set
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	pool := strings.Replace(owned("MachinePool", "pool"), machineSpec("TalosConfigTemplate", "t"), machineSpec("TalosConfig", "c"), 1)
	set := load(t, cluster+template+config+owned("MachineDeployment", "md")+owned("MachineSet", "ms")+pool+
		machine("m", machineSpec("TalosConfig", "c"))+
		machine("kubeadm", "{clusterName: edge, bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: k}}}")+
		machine("by-hand", "{clusterName: edge, bootstrap: {dataSecretName: data}}"))

	subjects, others, err := inventory.Subjects(set)
	g.Expect(err).NotTo(HaveOccurred())

	var names, otherNames []string
	for _, subject := range subjects {
		names = append(names, subject.Ref.Kind+" "+subject.Machine.Name)
	}

	for _, other := range others {
		otherNames = append(otherNames, other.Name)
	}

	g.Expect(names).To(Equal([]string{"Machine m", "MachineDeployment md-template", "MachinePool pool", "MachineSet ms-template"}))
	g.Expect(otherNames).To(Equal([]string{"kubeadm", "by-hand"}))

	deployment := subjects[1]
	g.Expect(deployment.Machine.KubernetesVersion).To(Equal("v1.36.1"), "Cluster API adds the v")
	g.Expect(deployment.Machine.Kind).To(Equal(machineconfig.KindMachine))
	g.Expect(deployment.Machine.InfrastructureName).To(Equal("md-template"))
	g.Expect(deployment.Machine.Labels).To(Equal(map[string]string{
		"pool": "gpu", clusterv1.ClusterNameLabel: "edge", clusterv1.MachineDeploymentNameLabel: "md",
	}))
	g.Expect(deployment.TalosConfig.Name).To(Equal("md-template"))
	g.Expect(deployment.TalosConfig.Spec.ConfigContract).To(Equal("v1.14"))
	g.Expect(set.MachineDeployments[0].Spec.Template.Labels).To(HaveLen(1), "what was read must not change")

	g.Expect(subjects[2].Machine.Kind).To(Equal(machineconfig.KindMachinePool))
}

// The machine of a TalosControlPlane is a control plane's, with what the control plane says of its machines, and what is wrong with it is
// said of the fields of the control plane.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	controlPlane := `apiVersion: controlplane.ichor.maesh.dev/v1alpha1
kind: TalosControlPlane
metadata: {name: cp}
spec:
  replicas: 3
  version: v1.36.1
  machineTemplate:
    metadata: {labels: {site: lab}}
    spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: cp}}
  talosConfigSpec: {configContract: v1.14}
`
	g.Expect(inventory.Subjects(load(t, cluster+controlPlane))).To(BeEmpty(), "no Cluster refers to it")

	owner := strings.Replace(cluster, "spec:\n", "spec:\n  controlPlaneRef: {apiGroup: controlplane.ichor.maesh.dev, kind: TalosControlPlane, name: cp}\n", 1)
	set := load(t, owner+controlPlane)

	subjects, others, err := inventory.Subjects(set)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(others).To(BeEmpty())
	g.Expect(subjects).To(HaveLen(1))

	subject := subjects[0]
	g.Expect(subject.Ref.String()).To(Equal("TalosControlPlane default/cp"))
	g.Expect(subject.Machine.Name).To(Equal("cp-template"))
	g.Expect(subject.Machine.KubernetesVersion).To(Equal("v1.36.1"))
	g.Expect(subject.Machine.Role()).To(Equal(bootstrapv1.MachineRoleControlPlane))
	g.Expect(subject.Machine.Labels).To(Equal(map[string]string{
		"site": "lab", clusterv1.ClusterNameLabel: "edge", clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: "cp",
	}))
	g.Expect(subject.TalosConfig.Spec.ConfigContract).To(Equal("v1.14"))
	g.Expect(set.TalosControlPlanes[0].Spec.MachineTemplate.ObjectMeta.Labels).To(HaveLen(1), "what was read must not change")

	for _, tc := range []struct{ kind, path, want string }{
		{machineconfig.KindTalosConfig, "spec.install", "spec.talosConfigSpec.install"},
		{machineconfig.KindMachine, "spec.version", "spec.version"},
		{machineconfig.KindMachine, "spec.taints", "spec.machineTemplate.spec.taints"},
		{machineconfig.KindMachine, "metadata.labels", "spec.machineTemplate.metadata.labels"},
	} {
		ref, path := subject.Object(machineconfig.Source{Kind: tc.kind, Name: "cp-template", Path: tc.path})
		g.Expect(ref.String()).To(Equal("TalosControlPlane default/cp"))
		g.Expect(path).To(Equal(tc.want))
	}

	_, err = inventory.NewRenderer(set).Render(subject, false)
	g.Expect(err).NotTo(HaveOccurred())
}

func TestSubjectsMissing(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ in, want string }{
		"the Cluster":             {config + machine("m", machineSpec("TalosConfig", "c")), "Cluster default/edge is not among the files"},
		"the TalosConfig":         {cluster + machine("m", machineSpec("TalosConfig", "d")), "TalosConfig default/d is not among the files"},
		"another kind":            {cluster + config + machine("m", machineSpec("KubeadmConfig", "c")), "KubeadmConfig default/c is not among the files"},
		"the TalosConfigTemplate": {cluster + owned("MachineSet", "ms"), "TalosConfigTemplate default/t is not among the files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			subjects, _, err := inventory.Subjects(load(t, tc.in))
			g.Expect(subjects).To(BeEmpty())
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestSubjectMatches(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	subjects, _, err := inventory.Subjects(load(t, cluster+template+owned("MachineDeployment", "md")))
	g.Expect(err).NotTo(HaveOccurred())

	for name, want := range map[string]bool{
		"md": true, "md-template": true, "MachineDeployment/md": true, "machinedeployment/md": true, "default/md": true, "default/md-template": true,
		"Machine/md": false, "other/md": false, "m": false, "": false,
	} {
		g.Expect(subjects[0].Matches(name)).To(Equal(want), name)
	}
}

func TestSubjectObject(t *testing.T) {
	t.Parallel()

	subjects, _, err := inventory.Subjects(load(t, cluster+template+config+owned("MachineDeployment", "md")+machine("m", machineSpec("TalosConfig", "c"))))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	plain, templated := subjects[0], subjects[1]

	for name, tc := range map[string]struct {
		subject        *inventory.Subject
		in             machineconfig.Source
		wantRef, wantP string
	}{
		"a Machine":              {plain, machineconfig.Source{Kind: "Machine", Name: "m", Path: "spec.version"}, "Machine default/m", "spec.version"},
		"a TalosConfig":          {plain, machineconfig.Source{Kind: "TalosConfig", Name: "c", Path: "spec.install"}, "TalosConfig default/c", "spec.install"},
		"the machine to be made": {templated, machineconfig.Source{Kind: "Machine", Name: "md-template", Path: "spec.version"}, "MachineDeployment default/md", "spec.template.spec.version"},
		"its TalosConfig":        {templated, machineconfig.Source{Kind: "TalosConfig", Name: "md-template", Path: "spec.install"}, "TalosConfigTemplate default/t", "spec.template.spec.install"},
		"its TalosConfig itself": {templated, machineconfig.Source{Kind: "TalosConfig", Name: "md-template"}, "TalosConfigTemplate default/t", ""},
		"something else":         {templated, machineconfig.Source{Kind: "TalosConfigPatch", Name: "p", Path: "spec.documents[0]"}, "TalosConfigPatch default/p", "spec.documents[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			ref, path := tc.subject.Object(tc.in)
			g.Expect(ref.String()).To(Equal(tc.wantRef))
			g.Expect(path).To(Equal(tc.wantP))
		})
	}
}

func secret(name, data string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData: " + data + "\n---\n"
}

// TestBundle looks at where the secrets of a cluster come from, and what is said of those that are no good.
func TestBundle(t *testing.T) {
	t.Parallel()

	const byReference = "apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: TalosClusterConfig\nmetadata: {name: e}\n" +
		"spec: {clusterName: edge, secretsRef: {name: mine}}\n---\n"

	base := cluster + config + machine("m", machineSpec("TalosConfig", "c"))

	for name, tc := range map[string]struct {
		in       string
		standIns bool
		want     string
	}{
		"none":                              {in: base},
		"no key":                            {base + secret("edge-talos", "{a: b}"), false, `secret edge-talos: key "bundle" is missing`},
		"no bundle":                         {base + secret("edge-talos", "{bundle: 'a: b'}"), false, `secret edge-talos: key "bundle": secrets bundle: line 1: unknown field`},
		"an incomplete bundle":              {base + secret("edge-talos", "{bundle: 'cluster: {id: a}'}"), false, "Secret edge-talos: secrets bundle: "},
		"a user's that is absent":           {base + byReference, false, `TalosClusterConfig e spec.secretsRef: secret "mine" is not among the files`},
		"a user's that is absent, stand-in": {in: base + byReference, standIns: true},
		"a user's that is none":             {base + byReference + secret("mine", "{bundle: 'a: b'}"), false, "secret mine"},
		"a certificate authority in halves": {base + secret("edge-ca", "{tls.crt: nonsense}"), false, "edge-ca"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			set := load(t, tc.in)
			subjects, _, err := inventory.Subjects(set)
			g.Expect(err).NotTo(HaveOccurred())

			renderer := inventory.NewRenderer(set)
			renderer.StandIns = tc.standIns

			result, err := renderer.Render(subjects[0], false)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(result.ThrowawayBundle).To(BeTrue())

				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(machineconfig.Errors(err)).NotTo(BeEmpty(), "the error must name an object")
		})
	}
}

func TestThrowawayIsSteady(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	set := load(t, cluster+config+machine("m", machineSpec("TalosConfig", "c")))
	subjects, _, err := inventory.Subjects(set)
	g.Expect(err).NotTo(HaveOccurred())

	var texts, raw []string

	for range 2 {
		result, err := inventory.NewRenderer(set).Render(subjects[0], false)
		g.Expect(err).NotTo(HaveOccurred())

		masked, err := result.Masked()
		g.Expect(err).NotTo(HaveOccurred())

		raw = append(raw, string(masked))
		texts = append(texts, result.Steady(string(masked)))
	}

	g.Expect(texts[0]).To(Equal(texts[1]))
	g.Expect(raw[0]).NotTo(Equal(raw[1]), "else there is nothing to make steady")
}
