// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// storedControlPlane is a control plane as a management cluster has stored it.
type storedControlPlane struct {
	controlPlane   controlplanev1.TalosControlPlane
	machines       []*clusterv1.Machine
	configs        map[string]*bootstrapv1.TalosConfig
	infrastructure map[string]map[string]string
}

// readControlPlane reads the documents of a file strictly: a field that is there no more is an error.
func readControlPlane(t *testing.T, file string) storedControlPlane {
	t.Helper()

	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	out := storedControlPlane{configs: map[string]*bootstrapv1.TalosConfig{}, infrastructure: map[string]map[string]string{}}

	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err = yaml.Unmarshal(document, &kind); err != nil {
			t.Fatalf("%s: %v", file, err)
		}

		switch kind.Kind {
		case "TalosControlPlane":
			err = yaml.UnmarshalStrict(document, &out.controlPlane)
		case "Machine":
			machine := &clusterv1.Machine{}
			err = yaml.UnmarshalStrict(document, machine)
			out.machines = append(out.machines, machine)
		case "TalosConfig":
			config := &bootstrapv1.TalosConfig{}
			err = yaml.UnmarshalStrict(document, config)
			out.configs[config.Name] = config
		default:
			var infrastructure metav1.PartialObjectMetadata
			err = yaml.UnmarshalStrict(document, &infrastructure)
			out.infrastructure[infrastructure.Name] = infrastructure.Annotations
		}

		if err != nil {
			t.Fatalf("%s: %s: %v", file, kind.Kind, err)
		}
	}

	return out
}

// snapshot is what an observer of now makes of it, with nodes that are well.
func (s storedControlPlane) snapshot(t *testing.T, now time.Time) rollout.Snapshot {
	t.Helper()

	mark := s.controlPlane.Annotations[controlplanev1.BootstrapAnnotation]
	initialized := s.controlPlane.Status.Initialization.ControlPlaneInitialized
	out := rollout.Snapshot{
		Now:     now,
		Cluster: &rollout.Cluster{Name: "demo", InfrastructureProvisioned: true, Endpoint: true, FailureDomains: []string{"a", "b", "c"}},
		ControlPlane: rollout.ControlPlane{
			Name: s.controlPlane.Name, Spec: s.controlPlane.Spec, Initialized: initialized != nil && *initialized,
			Bootstrap: rollout.ParseBootstrapMark(mark, true), BundleBootstrap: rollout.ParseBootstrapMark(mark, true),
		},
		Nodes: rollout.Nodes{Known: true},
	}

	var members []etcd.Member

	for _, machine := range s.machines {
		stored := rollout.Stored{
			Machine: machine, Config: s.configs[machine.Name], InfrastructureAnnotations: s.infrastructure[machine.Name], Contract: "v1.14",
		}

		m, err := rollout.MachineOf(&s.controlPlane.Spec, s.controlPlane.UID, stored, now)
		if err != nil {
			t.Fatal(err)
		}

		out.Machines = append(out.Machines, m)
		members = append(members, etcd.Member{ID: m.RecordedMembers[0], Name: m.NodeName, PeerURLs: []string{peer(m.Addresses[0])}})
	}

	for i := range out.Machines {
		out.Machines[i].Etcd = etcd.View{Answered: true, Data: etcd.DataPresent, Self: members[i].ID, Members: members, Leader: members[0].ID, Applied: 100}
	}

	return out
}

// TestUpgradeChangesNothing holds every later version to this: what an earlier build has stored of a whole control plane leads to no action,
// whatever the strategy. Files of testdata/upgrade are never changed; what a later build stores is a new file.
func TestUpgradeChangesNothing(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob(filepath.Join("testdata", "upgrade", "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}

	now := time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)

	for _, file := range files {
		for _, strategy := range []controlplanev1.RolloutStrategy{
			{}, {Type: rolling}, {Type: onDelete}, {Type: inPlace, InPlace: controlplanev1.InPlaceUpdate{Fallback: controlplanev1.ReplaceFallback}},
		} {
			t.Run(filepath.Base(file)+"/"+string(strategy.Type)+string(strategy.InPlace.Fallback), func(t *testing.T) {
				t.Parallel()

				stored := readControlPlane(t, file)
				stored.controlPlane.Spec.Rollout.Strategy = strategy

				s := stored.snapshot(t, now)
				if len(s.Machines) != 3 {
					t.Fatalf("%d machines", len(s.Machines))
				}

				if d := rollout.Plan(s); d.Action != (rollout.Rest{}) {
					t.Errorf("an upgrade of Ichor: %s", line(d))
				}

				// And the same machines are replaced, or reported, once the user wants something else.
				stored.controlPlane.Spec.TalosConfigSpec.Install.Disk = "/dev/nvme0n1"

				if d := rollout.Plan(stored.snapshot(t, now)); d.Action == (rollout.Rest{}) {
					t.Error("another disk makes no difference: the test would not see a rollout")
				}
			})
		}
	}
}
