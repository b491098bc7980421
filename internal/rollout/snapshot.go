// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
)

// Snapshot is everything that a decision depends on, read once. What could not be read is in it as unknown: an unreachable node is no
// error, and no reason to leave anything else out.
type Snapshot struct {
	Now time.Time

	// Cluster that the control plane belongs to. Nil when it does not exist, any more or yet.
	Cluster *Cluster

	ControlPlane ControlPlane

	// Machines are all control-plane Machines of the Cluster, by label, whoever owns them, those that are being deleted included.
	Machines []Machine

	// Workers are the names of what else there is of Machines and MachinePools of the Cluster.
	Workers []string

	// Nodes of the workload cluster.
	Nodes Nodes

	// Orphans says since when the observer has seen etcd members that no Machine has (see Orphans). It may forget them at any time: the
	// period of grace then begins again.
	Orphans map[etcd.MemberID]time.Time
}

// Cluster is what the CAPI Cluster says.
type Cluster struct {
	Name     string
	Paused   bool
	Deleting bool

	// InfrastructureProvisioned and Endpoint say whether its infrastructure is there and it has a valid control-plane endpoint.
	InfrastructureProvisioned bool
	Endpoint                  bool

	// FailureDomains that are meant for control planes.
	FailureDomains []string

	// TopologyVersion is the version in the Cluster's topology, or empty; UpgradeStep that of the step which a topology's upgrade is
	// at, from the annotation of that name.
	TopologyVersion string
	UpgradeStep     string
}

// ControlPlane is what the TalosControlPlane says, and what is known of its cluster's secrets.
type ControlPlane struct {
	Name     string
	Paused   bool
	Deleting bool
	Spec     controlplanev1.TalosControlPlaneSpec

	// Orphaning is true while it is deleted in such a way that what belongs to it stays, and the garbage collector has not let all of that go.
	Orphaning bool

	// Initialized is true once the Kubernetes API server has answered, ever, by status or by any other evidence.
	Initialized bool

	// Serving is true when an API server that the cluster's authority vouches for has just answered at the endpoint, although etcd was never
	// bootstrapped from here (see Begins). ServedElsewhere is true when that is noted down, and the endpoint is still the same.
	Serving, ServedElsewhere bool

	// SecretsProblem says why the cluster's secrets bundle cannot be used; empty when it can.
	SecretsProblem string

	// Bootstrap and BundleBootstrap are the records of the bootstrap on the TalosControlPlane and on the Secret with the bundle.
	Bootstrap, BundleBootstrap BootstrapMark

	// Remediation is the record of a remediation in progress, or nil.
	Remediation *RemediationRecord
}

// Machine is a control-plane Machine with everything that belongs to it. MachineOf fills in what the objects say.
type Machine struct {
	Name    string
	Created time.Time

	// Ours is true when the control plane is its controller, Orphan when it has none.
	Ours, Orphan bool

	// Deletion is how far its deletion is, or nil.
	Deletion *Deletion

	// Hook is true when it has our pre-terminate hook; OtherHooks are the pre-terminate hooks of others.
	Hook       bool
	OtherHooks []string

	FailureDomain string
	Version       string

	// Addresses are its IP addresses; HadAddress is true if it ever had one, as far as that can be known. AddressRecorded is true when that
	// is noted down on the Machine and outlasts its status.
	Addresses                   []string
	HadAddress, AddressRecorded bool

	// NodeName is the name of its Node, or empty as long as Cluster API has not linked one.
	NodeName string

	// Conditions of the Machine.
	Conditions []metav1.Condition

	// DeleteRequested and RemediateRequested say whether it has the annotations with which users ask for its deletion first, and for
	// its remediation.
	DeleteRequested, RemediateRequested bool

	// Differences from what the spec wants.
	Differences []Difference

	// RemediationFor is the record of the remediation that it was made by, or nil.
	RemediationFor *RemediationRecord

	// RecordedMembers are the etcd members that its node has said it was, as noted down on the Machine.
	RecordedMembers []etcd.MemberID

	// Operation is the name of the operation in place that is running on it, or empty.
	Operation string

	// LeaveFailed is true when its etcd member was asked to leave and did not, as far as the observer remembers. It is then removed by
	// its ID.
	LeaveFailed bool

	// ForwardFailed is true when its node was asked to give up leadership and leads still, as far as the observer remembers. Its member
	// then leaves as the leader: etcd elects another.
	ForwardFailed bool

	// BootstrapCalled is when its node was last asked to bootstrap etcd and may have begun, as far as the observer remembers. Zero: never.
	BootstrapCalled time.Time

	// Steady is true when its node says that it boots or runs, and not that it is on its way down.
	Steady bool

	// Etcd is what its node says of etcd.
	Etcd etcd.View
}

// Deletion is how far a Machine's deletion is.
type Deletion struct {
	Since time.Time

	// Stage is the reason of the Machine's Deleting condition.
	Stage string

	// AtHook is true when Cluster API waits for pre-terminate hooks: the node is drained, the infrastructure still there.
	AtHook bool
}

// Nodes are the Nodes of the workload cluster.
type Nodes struct {
	// Known is false when they could not be read.
	Known bool
	Items []Node
}

// Node is a Node of the workload cluster.
type Node struct {
	Name      string
	Addresses []string
	Ready     bool
}

// required are the conditions of a control-plane Machine that must be true before anything else is disturbed.
var required = []string{
	controlplanev1.MachineAPIServerPodHealthyCondition,
	controlplanev1.MachineControllerManagerPodHealthyCondition,
	controlplanev1.MachineSchedulerPodHealthyCondition,
	controlplanev1.MachineEtcdMemberHealthyCondition,
	controlplanev1.MachineTalosHealthyCondition,
}

// Of those, the first three are about a whole Kubernetes control plane, and the first four about that and etcd.
var (
	ofKubernetes        = required[:3]
	ofKubernetesAndEtcd = required[:4]
)

// ShowsAPIServer is true for a machine with a Node, which Cluster API finds through the Kubernetes API server only. One that goes and that
// nothing of ours keeps any more shows nothing: it was let go because no API server had answered, and what answers while it goes, goes with it.
// A control plane that counted on it would be initialized for ever, without etcd.
func (m *Machine) ShowsAPIServer() bool {
	return m.NodeName != "" && (m.Deletion == nil || m.Hook)
}

// Host is the machine as package etcd wants it.
func (m *Machine) host() etcd.Host {
	return etcd.Host{Name: m.Name, Addresses: m.Addresses, NodeName: m.NodeName, Recorded: m.RecordedMembers, View: m.Etcd}
}

// EtcdOf judges the etcd cluster of a Snapshot, as Plan does.
func EtcdOf(s Snapshot) etcd.Cluster { return etcdOf(&s) }

func etcdOf(s *Snapshot) etcd.Cluster {
	hosts := make([]etcd.Host, len(s.Machines))
	for i := range s.Machines {
		hosts[i] = s.Machines[i].host()
	}

	return etcd.Assess(hosts)
}
