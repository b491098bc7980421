// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// storedObjects is a machine as a management cluster has stored it.
type storedObjects struct {
	Spec        controlplanev1.TalosControlPlaneSpec `json:"spec"`
	Machine     clusterv1.Machine                    `json:"machine"`
	Config      *bootstrapv1.TalosConfig             `json:"config"`
	Annotations map[string]string                    `json:"infrastructureAnnotations"`
	Contract    string                               `json:"contract"`
}

func (s *storedObjects) differences() []rollout.Difference {
	stored := rollout.Stored{Machine: &s.Machine, Config: s.Config, InfrastructureAnnotations: s.Annotations, Contract: s.Contract}

	return rollout.Differences(&s.Spec, stored, time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC))
}

func load(t *testing.T, name string) *storedObjects {
	t.Helper()

	data, err := os.ReadFile(filepath.Join("testdata", "stored", name))
	if err != nil {
		t.Fatal(err)
	}

	out := &storedObjects{}
	if err = yaml.UnmarshalStrict(data, out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}

	return out
}

// TestStoredObjectsDoNotDiffer holds every later version to this: what earlier ones have stored is no difference from the spec that it was
// made from. A file is never changed; a new form of stored objects is a new file.
func TestStoredObjectsDoNotDiffer(t *testing.T) {
	t.Parallel()

	files, err := os.ReadDir(filepath.Join("testdata", "stored"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}

	for _, file := range files {
		t.Run(file.Name(), func(t *testing.T) {
			t.Parallel()

			if differences := load(t, file.Name()).differences(); len(differences) > 0 {
				t.Errorf("a machine would be replaced by an upgrade: %+v", differences)
			}
		})
	}
}

// contract: metadata, timeouts, taints and readiness gates are no reason to replace a machine.
func TestDifferences(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		change func(*storedObjects)
		want   []rollout.Difference
	}{
		"nothing": {func(*storedObjects) {}, nil},
		"version": {
			func(s *storedObjects) { s.Spec.Version = "v1.36.2" },
			[]rollout.Difference{{Field: "version", Message: "Version v1.36.1, v1.36.2 required", InPlace: true}},
		},
		"template": {
			func(s *storedObjects) { s.Spec.MachineTemplate.Spec.InfrastructureRef.Name = "cp-2" },
			[]rollout.Difference{{Field: "machineTemplate.spec.infrastructureRef", Message: "Made from SimMachineTemplate.infrastructure.ichor.maesh.dev cp-1, SimMachineTemplate.infrastructure.ichor.maesh.dev cp-2 required"}},
		},
		"template of a machine that says no template": {
			func(s *storedObjects) {
				s.Spec.MachineTemplate.Spec.InfrastructureRef.Name = "cp-2"
				delete(s.Annotations, clusterv1.TemplateClonedFromNameAnnotation)
			}, nil,
		},
		"no TalosConfig": {func(s *storedObjects) { s.Spec.TalosConfigSpec.Platform = "Container"; s.Config = nil }, nil},
		"disk": {
			func(s *storedObjects) { s.Spec.TalosConfigSpec.Install.Disk = "/dev/sdb" },
			[]rollout.Difference{{Field: "talosConfigSpec.install.disk", Message: "TalosConfig differs in install.disk"}},
		},
		"image": {
			func(s *storedObjects) { s.Spec.TalosConfigSpec.Install.Image = "example.com/installer:v1.14.1" },
			[]rollout.Difference{{Field: "talosConfigSpec.install.image", Message: "TalosConfig differs in install.image", InPlace: true}},
		},
		"patches in another order": {
			func(s *storedObjects) {
				refs := s.Spec.TalosConfigSpec.PatchRefs
				refs[0], refs[1] = refs[1], refs[0]
			},
			[]rollout.Difference{{Field: "talosConfigSpec.patchRefs", Message: "TalosConfig differs in patchRefs", InPlace: true}},
		},
		"the default platform, said":   {func(s *storedObjects) { s.Spec.TalosConfigSpec.Platform = bootstrapv1.PlatformMetal }, nil},
		"the default wipe, said":       {func(s *storedObjects) { s.Spec.TalosConfigSpec.Install.Wipe = new(bool) }, nil},
		"the pinned contract, said":    {func(s *storedObjects) { s.Spec.TalosConfigSpec.ConfigContract = "v1.14" }, nil},
		"an empty list of arguments":   {func(s *storedObjects) { s.Spec.TalosConfigSpec.Install.ExtraKernelArgs = []string{} }, nil},
		"an empty list where none was": {func(s *storedObjects) { s.Config.Spec.Install.ExtraKernelArgs = []string{} }, nil},
		"no hostname": {
			func(s *storedObjects) { s.Spec.TalosConfigSpec.Hostname = bootstrapv1.HostnameSpec{} },
			[]rollout.Difference{{Field: "talosConfigSpec.hostname.source", Message: "TalosConfig differs in hostname.source"}},
		},
		"another contract": {
			func(s *storedObjects) { s.Spec.TalosConfigSpec.ConfigContract = "v1.13" },
			[]rollout.Difference{{Field: "talosConfigSpec.configContract", Message: "TalosConfig differs in configContract"}},
		},
		"a contract of its own, given up": {func(s *storedObjects) { s.Config.Spec.ConfigContract = "v1.13" }, nil},
		"a contract, and nobody knows the machine's": {
			func(s *storedObjects) {
				s.Spec.TalosConfigSpec.ConfigContract = "v1.13"
				s.Config.Status.ConfigContract, s.Contract = "", ""
			}, nil,
		},
		"metadata, timeouts, taints and gates": {
			func(s *storedObjects) {
				template := &s.Spec.MachineTemplate
				template.ObjectMeta.Labels = map[string]string{"a": "b"}
				template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](5)
				template.Spec.Taints = []clusterv1.MachineTaint{{Key: "a"}}
				template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "A"}}
			}, nil,
		},
		"rollout after a time that is over": {
			func(s *storedObjects) {
				s.Spec.Rollout.After = metav1.NewTime(time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC))
			},
			[]rollout.Difference{{Field: "rollout.after", Message: "Made before spec.rollout.after"}},
		},
		"rollout after a time to come": {
			func(s *storedObjects) {
				s.Spec.Rollout.After = metav1.NewTime(time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC))
			}, nil,
		},
		"rollout after a time before the machine": {
			func(s *storedObjects) {
				s.Spec.Rollout.After = metav1.NewTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
			}, nil,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := load(t, "0001-full.yaml")
			tc.change(s)

			if diff := cmp.Diff(tc.want, s.differences()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEveryFieldIsCompared finds a new field of a TalosConfigSpec that nobody has decided about.
func TestEveryFieldIsCompared(t *testing.T) {
	t.Parallel()

	var leaves []string

	var walk func(reflect.Type, string)

	walk = func(at reflect.Type, path string) {
		for field := range at.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")

			if field.Type.Kind() == reflect.Struct {
				walk(field.Type, path+name+".")
			} else {
				leaves = append(leaves, path+name)
			}
		}
	}

	walk(reflect.TypeFor[bootstrapv1.TalosConfigSpec](), "")

	if diff := cmp.Diff(leaves, rollout.ConfigFields()); diff != "" {
		t.Errorf("fields of a TalosConfigSpec (-) and those that are compared (+):\n%s", diff)
	}
}

func TestMachineOf(t *testing.T) {
	t.Parallel()

	s := load(t, "0001-full.yaml")
	stored := rollout.Stored{Machine: &s.Machine, Config: s.Config}
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

	got, err := rollout.MachineOf(&s.Spec, "2b7c0ad4-7f0e-4a55-9c0f-0d8b5c1f3a11", stored, now)
	if err != nil {
		t.Fatal(err)
	}

	want := rollout.Machine{
		Name: "demo-cp-x7k2p", Created: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), Ours: true, Hook: true,
		OtherHooks:    []string{"pre-terminate.delete.hook.machine.cluster.x-k8s.io/backup"},
		FailureDomain: "a", Version: "v1.36.1", Addresses: []string{"10.0.0.11", "fd00::11"}, HadAddress: true, AddressRecorded: true, NodeName: "demo-cp-x7k2p",
		DeleteRequested: true,
		Deletion:        &rollout.Deletion{Since: time.Date(2026, 11, 30, 7, 59, 0, 0, time.UTC), Stage: "WaitingForPreTerminateHook", AtHook: true},
		RemediationFor:  &rollout.RemediationRecord{Machine: "demo-cp-8hqzv", Timestamp: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), RetryCount: 1},
		RecordedMembers: []etcd.MemberID{0xabc, 0x8e9e05c52164694d}, Conditions: s.Machine.Status.Conditions,
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	if got, err = rollout.MachineOf(&s.Spec, "another", stored, now); err != nil || got.Ours || got.Orphan {
		t.Errorf("the Machine of another control plane: %+v, %v", got, err)
	}

	lost := s.Machine.DeepCopy()
	lost.Status, lost.Annotations = clusterv1.MachineStatus{}, map[string]string{}

	for name, change := range map[string]func(*clusterv1.Machine){
		"nothing": func(*clusterv1.Machine) {},
		"an annotation, and no status after a move": func(m *clusterv1.Machine) { m.Annotations[controlplanev1.HadAddressAnnotation] = "" },
		"a member":      func(m *clusterv1.Machine) { m.Annotations[controlplanev1.EtcdMembersAnnotation] = "a" },
		"a provider ID": func(m *clusterv1.Machine) { m.Spec.ProviderID = "sim://a" },
		"a Node":        func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "a" },
		"an address": func(m *clusterv1.Machine) {
			m.Status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "10.0.0.1"}}
		},
	} {
		machine := lost.DeepCopy()
		change(machine)

		if got, err = rollout.MachineOf(&s.Spec, "another", rollout.Stored{Machine: machine}, now); err != nil || got.HadAddress != (name != "nothing") {
			t.Errorf("%s: it has had an address: %t, %v", name, got.HadAddress, err)
		}
	}

	s.Machine.OwnerReferences = nil

	if got, err = rollout.MachineOf(&s.Spec, "another", stored, now); err != nil || got.Ours || !got.Orphan {
		t.Errorf("the Machine of nobody: %+v, %v", got, err)
	}

	for annotation, value := range map[string]string{
		controlplanev1.EtcdMembersAnnotation: "8e9e,x", controlplanev1.RemediationForAnnotation: "{}",
	} {
		spoilt := s.Machine.DeepCopy()
		spoilt.Annotations[annotation] = value

		if _, err = rollout.MachineOf(&s.Spec, "another", rollout.Stored{Machine: spoilt}, now); err == nil || !strings.Contains(err.Error(), annotation) {
			t.Errorf("%s: %s: got %v, want an error that names it", annotation, value, err)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()

	var all []etcd.MemberID

	for id := range etcd.MemberID(20) {
		value := rollout.FormatMembers(all, id+1)

		parsed, err := rollout.ParseMembers(value)
		if err != nil || parsed[len(parsed)-1] != id+1 || len(parsed) > 8 {
			t.Fatalf("%q is read as %v, %v", value, parsed, err)
		}

		all = parsed
	}

	if value := rollout.FormatMembers([]etcd.MemberID{1, 2, 3}, 1); value != "2,3,1" {
		t.Errorf("a member of before is %q, want it last and once", value)
	}
}
