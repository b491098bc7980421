// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/loopback"
	play "github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/tools"
)

// endpointHost is the variable with the address of a control plane: each test has one of its own.
const endpointHost = "CONTROL_PLANE_ENDPOINT_HOST"

// templateVariables are what clusterctl wants to know for a template besides its own flags: each that has no default. A template that asks for
// another, or does not ask for one of these, fails here, and docs/how-to/cluster.md has the same list.
var templateVariables = map[string]map[string]string{
	"cluster-template.yaml":          {},
	"cluster-template-topology.yaml": {},
	"cluster-template-metal3.yaml": {
		endpointHost: "", "IMAGE_URL": "https://images.example.com/openstack-amd64.qcow2", "IMAGE_CHECKSUM": "https://images.example.com/SHA256SUMS",
	},
	"cluster-template-proxmox.yaml": {
		endpointHost: "", "NODE_IP_RANGES": "[192.0.2.10-192.0.2.99]", "GATEWAY": "192.0.2.1", "DNS_SERVERS": "[192.0.2.1]",
		"PROXMOX_SOURCENODE": "pve1", "TEMPLATE_VMID": "100",
	},
	"cluster-template-vsphere.yaml": {
		endpointHost: "", "VSPHERE_SERVER": "vcenter.example.com", "VSPHERE_TLS_THUMBPRINT": "AA:BB", "VSPHERE_DATACENTER": "dc",
		"VSPHERE_DATASTORE": "ds", "VSPHERE_FOLDER": "talos", "VSPHERE_RESOURCE_POOL": "pool", "VSPHERE_TEMPLATE": "talos-v1.14.1", "VSPHERE_NETWORK": "VM Network",
	},
}

// theirs is the group of the kinds that other providers have. Their definitions are not at hand: these objects alone are not looked at here.
const theirs = "infrastructure.cluster.x-k8s.io"

// The real clusterctl makes a cluster of each template in templates/. The API server accepts it with all webhooks, field by field, and a control
// plane comes up on it: of the templates for other providers, with simulated machines in the place of theirs.
func TestTemplates(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "templates", "cluster-template*.yaml"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(files).To(HaveLen(len(templateVariables)))

	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := newScenario(t)
			t.Parallel()

			variables := maps.Clone(templateVariables[filepath.Base(file)])
			if _, asked := variables[endpointHost]; asked {
				variables[endpointHost] = s.freeAddress()
			}

			objects := s.generate(file, variables)

			if filepath.Base(file) == "cluster-template-topology.yaml" {
				s.class("Light", nil)
			}

			for _, object := range objects {
				s.Expect(object.GetNamespace()).To(Equal(s.namespace))

				object := simulated(object)
				s.Expect(s.Client.Create(s.ctx, object, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
			}

			s.comesUp()
			s.deleteCluster()
		})
	}
}

// The variables of the class reach the machines' configs: a disk to install on, another format, another hostname, patches, a rollout strategy.
func TestClassVariables(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.class("Light", nil)
	s.Create(builder.PoolPatch("control-planes", builder.Sysctl("vm.max_map_count", "262144")))

	for _, object := range s.generate(filepath.Join("..", "..", "templates", "cluster-template-topology.yaml"), map[string]string{"ROLLOUT_STRATEGY": "OnDelete"}) {
		if object.GetKind() == "Cluster" {
			variables, _, err := unstructured.NestedSlice(object.Object, "spec", "topology", "variables")
			s.Expect(err).NotTo(HaveOccurred())

			for name, value := range map[string]any{
				"installDisk": "/dev/sda", "configContract": "v1.13", "hostnameSource": "InfrastructureMachineName",
				"controlPlanePatches": []any{map[string]any{"name": "control-planes"}}, "workerPatches": []any{map[string]any{"name": "workers"}},
			} {
				variables = append(variables, map[string]any{"name": name, "value": value})
			}

			s.Expect(unstructured.SetNestedSlice(object.Object, variables, "spec", "topology", "variables")).To(Succeed())
		}

		s.Expect(s.Client.Create(s.ctx, object)).To(Succeed())
	}

	s.comesUp()

	tcp := s.controlPlane()
	s.Expect(tcp.Spec.Rollout.Strategy.Type).To(Equal(controlplanev1.OnDeleteRollout))

	want := bootstrapv1.TalosConfigSpec{
		Install: bootstrapv1.InstallSpec{Disk: "/dev/sda"}, ConfigContract: "v1.13",
		Hostname:  bootstrapv1.HostnameSpec{Source: bootstrapv1.HostnameSourceInfrastructureMachineName},
		PatchRefs: []bootstrapv1.PatchReference{{Name: "control-planes"}},
	}
	s.Expect(tcp.Spec.TalosConfigSpec).To(Equal(want))

	want.PatchRefs = []bootstrapv1.PatchReference{{Name: "workers"}}
	s.Expect(s.workerTemplate(s).Spec.Template.Spec).To(Equal(want))

	config := s.configOf(s.machineList()[0].Name)
	s.Expect(config).To(ContainSubstring("disk: /dev/sda"))
	s.Expect(config).To(ContainSubstring("factory.talos.dev/metal-installer/"), "what is installed is for the platform that the template says")
	s.Expect(config).To(ContainSubstring(`vm.max_map_count: "262144"`))

	s.deleteCluster()
}

// freeAddress is a loopback address that no other test world on this machine has. Whoever makes the cluster's endpoint reserves it again.
func (s *scenario) freeAddress() string {
	s.t.Helper()

	var reservations loopback.Reservations

	address, err := reservations.Address(6443)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(reservations.Release()).To(Succeed())

	return address
}

// required are the variables of a template that have no default, and are none of clusterctl's own.
func required(t *testing.T, content []byte) []string {
	t.Helper()

	own := []string{"CLUSTER_NAME", "NAMESPACE", "KUBERNETES_VERSION", "CONTROL_PLANE_MACHINE_COUNT", "WORKER_MACHINE_COUNT"}

	var found []string

	for _, match := range regexp.MustCompile(`\$\{([A-Z0-9_]+)\}`).FindAllSubmatch(content, -1) {
		if name := string(match[1]); !slices.Contains(own, name) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}

	return found
}

// generate has clusterctl make the objects of a cluster c from a template, with one control-plane machine and one worker.
func (s *scenario) generate(file string, variables map[string]string) []*unstructured.Unstructured {
	s.t.Helper()

	content, err := os.ReadFile(file)
	s.Expect(err).NotTo(HaveOccurred())

	for _, name := range required(s.t, content) {
		s.Expect(variables).To(HaveKey(name), "give it a default, or say it in the test and in docs/how-to/cluster.md")
	}

	program, err := tools.Path(s.ctx, tools.Clusterctl)
	s.Expect(err).NotTo(HaveOccurred())

	home := s.t.TempDir()
	command := exec.CommandContext(s.ctx, program, "generate", "cluster", "c", "--from", file, "--target-namespace", s.namespace,
		"--kubernetes-version", ladder[2], "--control-plane-machine-count", "1", "--worker-machine-count", "1")
	// Nothing of the user's own.
	command.Env = []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "CLUSTERCTL_DISABLE_VERSIONCHECK=true"}

	for name, value := range variables {
		s.Expect(string(content)).To(ContainSubstring("${"+name), "the template does not ask for it")

		command.Env = append(command.Env, name+"="+value)
	}

	var messages bytes.Buffer

	command.Stderr = &messages

	manifests, err := command.Output()
	s.Expect(err).NotTo(HaveOccurred(), "%s", messages.String())

	objects, err := harness.DecodeYAML(manifests)
	s.Expect(err).NotTo(HaveOccurred())

	return objects
}

// simulated is an object with the kinds of the simulated provider, light ones, in the place of those of another.
func simulated(object *unstructured.Unstructured) *unstructured.Unstructured {
	content, err := yaml.Marshal(object.Object)
	if err != nil {
		panic(errors.Join(err, errors.New("what was read from YAML can be written")))
	}

	text := string(content)

	for _, prefix := range []string{"Metal3", "Proxmox", "VSphere"} {
		for _, kind := range []string{"Cluster", "MachineTemplate"} {
			text = strings.ReplaceAll(text, "kind: "+prefix+kind+"\n", "kind: Sim"+kind+"\n")
		}
	}

	foreign := object.GroupVersionKind().Group == theirs
	text = strings.ReplaceAll(text, theirs+"\n", "infrastructure.ichor.maesh.dev\n")

	objects, err := harness.DecodeYAML([]byte(text))
	if err != nil {
		panic(err)
	}

	out := objects[0]
	if foreign {
		out.SetAPIVersion("infrastructure.ichor.maesh.dev/v1alpha1")
	}

	spec := map[string]any{}

	switch {
	case out.GetKind() == "SimCluster":
		spec["fidelity"] = "Light"

		if endpoint, ok, _ := unstructured.NestedMap(object.Object, "spec", "controlPlaneEndpoint"); ok {
			spec["controlPlaneEndpoint"] = endpoint
		}
	case out.GetKind() == "SimMachineTemplate" && foreign:
		spec["template"] = map[string]any{"spec": map[string]any{"platform": "Cloud"}}
	default:
		return out
	}

	out.Object["spec"] = spec

	return out
}

// comesUp waits until etcd is bootstrapped on the first machine of the Cluster's control plane: its config was rendered, and Talos has taken it.
func (s *scenario) comesUp() {
	s.t.Helper()

	s.Eventually(func(g Gomega) {
		cluster := &clusterv1.Cluster{}
		g.Expect(s.Client.Get(s.ctx, s.key("c"), cluster)).To(Succeed())
		g.Expect(cluster.Spec.ControlPlaneRef.IsDefined()).To(BeTrue(), play.Describe(cluster))

		tcp := &controlplanev1.TalosControlPlane{}
		g.Expect(s.Client.Get(s.ctx, s.key(cluster.Spec.ControlPlaneRef.Name), tcp)).To(Succeed())
		g.Expect(tcp.Status.Plan.Reason).To(Equal(controlplanev1.PlanWaitingForAPIServerReason), "%+v%s", tcp.Status.Plan, play.Describe(tcp))
		g.Expect(tcp.Annotations).To(HaveKey(controlplanev1.BootstrapAnnotation))
	}).Should(Succeed())

	s.countBootstraps()
}

// configOf is the config that a machine has booted from.
func (s *scenario) configOf(machine string) string {
	s.t.Helper()

	secret := &corev1.Secret{}
	s.Expect(s.Client.Get(s.ctx, s.key(machine), secret)).To(Succeed())

	return string(secret.Data["value"])
}
