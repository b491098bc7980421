// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
)

func planeWith(change func(*controlplanev1.TalosControlPlane)) *controlplanev1.TalosControlPlane {
	tcp := &controlplanev1.TalosControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", UID: "plane"},
		Spec:       controlplanev1.TalosControlPlaneSpec{Version: "v1.36.1"},
	}
	if change != nil {
		change(tcp)
	}

	return tcp
}

// A Machine is born with owner, hook and gates, and keeps what is its own when the template changes.
//
// contract: a Machine is born with the labels, the owner, the hook and the readiness gates of a control plane's; a user's gates are
// added.
func TestMachineFor(t *testing.T) {
	tcp := planeWith(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"tier": "gold", clusterv1.ClusterNameLabel: "a lie"}
		tcp.Spec.MachineTemplate.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{
			{ConditionType: "example.com/checked"}, {ConditionType: controlplanev1.MachineTalosHealthyCondition},
		}
	})
	record := &rollout.RemediationRecord{Machine: "cp-old", Timestamp: time.Unix(1, 0).UTC()}

	born := newMachine(tcp, "prod", "cp-1", rollout.CreateMachine{FailureDomain: "rack-1", Remediation: record})

	if owner := metav1.GetControllerOf(born); owner == nil || owner.UID != "plane" {
		t.Errorf("the control plane does not control it: %v", born.OwnerReferences)
	}

	if diff := cmp.Diff(map[string]string{
		controlplanev1.PreTerminateHookAnnotation: "", controlplanev1.RemediationForAnnotation: record.Marshal(),
	}, born.Annotations); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff(map[string]string{
		"tier": "gold", clusterv1.ClusterNameLabel: "prod", clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: "cp",
	}, born.Labels); diff != "" {
		t.Error(diff)
	}

	if n := len(born.Spec.ReadinessGates); n != len(readinessGates)+1 {
		t.Errorf("%d readiness gates: %v", n, born.Spec.ReadinessGates)
	}

	// Later: another version is a rollout, and nothing of that reaches the machine.
	tcp.Spec.Version = "v1.36.2"
	tcp.Spec.MachineTemplate.ObjectMeta.Labels = nil
	later := machineFor(tcp, "prod", born)

	if later.Spec.Version != "v1.36.1" || later.Spec.FailureDomain != "rack-1" {
		t.Errorf("what is the machine's own has changed: %+v", later.Spec)
	}

	if diff := cmp.Diff(born.Annotations, later.Annotations); diff != "" {
		t.Error(diff)
	}

	if _, ok := later.Labels["tier"]; ok {
		t.Error("a label that the template no longer has is still there")
	}

	// Who took the hook off by hand is told, by an action of its own.
	delete(born.Annotations, controlplanev1.PreTerminateHookAnnotation)

	if _, ok := machineFor(tcp, "prod", born).Annotations[controlplanev1.PreTerminateHookAnnotation]; ok {
		t.Error("the hook comes back unseen")
	}
}

// contract: status.versions is sorted by meaning, and a kubelet's version counts before that of the spec.
func TestVersionsOf(t *testing.T) {
	machine := func(version, kubelet string) *clusterv1.Machine {
		m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: version}}
		if kubelet != "" {
			m.Status.NodeInfo = &corev1.NodeSystemInfo{}
			m.Status.NodeInfo.KubeletVersion = kubelet
		}

		return m
	}

	tests := map[string]struct {
		machines []*clusterv1.Machine
		want     []clusterv1.StatusVersion
	}{
		"none": {nil, nil},
		"sorted by meaning": {
			[]*clusterv1.Machine{machine("v1.36.10", ""), machine("v1.36.9", ""), machine("v1.36.10", "")},
			[]clusterv1.StatusVersion{{Version: "v1.36.9", Replicas: 1}, {Version: "v1.36.10", Replicas: 2}},
		},
		"the kubelet knows better": {
			[]*clusterv1.Machine{machine("v1.36.2", "v1.36.1"), machine("v1.36.2", "")},
			[]clusterv1.StatusVersion{{Version: "v1.36.1", Replicas: 1}, {Version: "v1.36.2", Replicas: 1}},
		},
		"a prerelease comes before": {
			[]*clusterv1.Machine{machine("v1.36.0", ""), machine("v1.36.0-rc.1", "")},
			[]clusterv1.StatusVersion{{Version: "v1.36.0-rc.1", Replicas: 1}, {Version: "v1.36.0", Replicas: 1}},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, versionsOf(test.machines)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Since changes with action and reason, and not with the message.
func TestSetPlan(t *testing.T) {
	tcp, begin := planeWith(nil), time.Unix(1000, 0).UTC()
	wait := rollout.Decision{Action: rollout.Wait{}, Reason: "A", Message: "one"}

	setPlan(tcp, wait, "", begin)

	wait.Message = "two"
	setPlan(tcp, wait, "it failed", begin.Add(time.Minute))

	if got := tcp.Status.Plan; got.Message != "two: it failed" || !got.Since.Time.Equal(begin) || got.Action != "Wait" {
		t.Errorf("%+v", got)
	}

	wait.Reason = "B"
	setPlan(tcp, wait, strings.Repeat("ä", maxMessage), begin.Add(2*time.Minute))

	if got := tcp.Status.Plan; !got.Since.Time.Equal(begin.Add(2*time.Minute)) || len(got.Message) > maxMessage {
		t.Errorf("since %s, %d bytes", got.Since, len(got.Message))
	}
}
