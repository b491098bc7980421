// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// TalosControlPlaneSpec is the desired control plane of a Cluster.
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || !has(self.rollout.strategy) || !has(self.rollout.strategy.rollingUpdate) || !has(self.rollout.strategy.rollingUpdate.maxSurge) || self.rollout.strategy.rollingUpdate.maxSurge != 0 || (has(self.replicas) && self.replicas >= 3)",message="rollout.strategy.rollingUpdate.maxSurge 0 removes a machine before its replacement is there and needs at least 3 replicas"
type TalosControlPlaneSpec struct {
	// replicas is how many control-plane machines there should be: an odd number, since etcd gains nothing from an even one.
	// Unset: 1.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="a control plane has at least 1 replica; delete the Cluster to remove it"
	// +kubebuilder:validation:XValidation:rule="self < 1 || self % 2 == 1",message="replicas must be odd: etcd survives no more failures with an even number of members"
	Replicas *int32 `json:"replicas,omitempty"`

	// version is the Kubernetes version, for example "v1.36.1".
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^v1[.][0-9]{1,3}[.][0-9]{1,3}(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",message="version must be a Kubernetes version with v, minor and patch, such as v1.36.1"
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// machineTemplate says how Machines are made.
	// +required
	MachineTemplate TalosControlPlaneMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// talosConfigSpec is the spec of the machines' TalosConfigs.
	// +optional
	TalosConfigSpec bootstrapv1.TalosConfigSpec `json:"talosConfigSpec,omitempty,omitzero"`

	// rollout says when and how machines are brought up to date.
	// +optional
	Rollout RolloutSpec `json:"rollout,omitempty,omitzero"`

	// remediation limits how often unhealthy machines are replaced.
	// +optional
	Remediation RemediationSpec `json:"remediation,omitempty,omitzero"`

	// machineNaming says how Machines are named.
	// +optional
	MachineNaming MachineNamingSpec `json:"machineNaming,omitempty,omitzero"`

	// nodeOperations says how the nodes of the Cluster, workers included, may be disturbed.
	// +optional
	NodeOperations NodeOperationsSpec `json:"nodeOperations,omitempty,omitzero"`
}

// TalosControlPlaneStatus is the observed state of a TalosControlPlane.
// +kubebuilder:validation:MinProperties=1
type TalosControlPlaneStatus struct {
	// conditions of the control plane: Available, Initialized, CertificatesAvailable, EtcdClusterHealthy,
	// ControlPlaneComponentsHealthy, MachinesReady, MachinesUpToDate, RollingOut, ScalingUp, ScalingDown, Remediating, Deleting,
	// Paused, NodeOperations.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization provides observations of the control plane's initialization, as the Cluster API contract wants them.
	// +optional
	Initialization TalosControlPlaneInitializationStatus `json:"initialization,omitempty,omitzero"`

	// selector of the control plane's Machines, as the scale subresource wants it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`

	// replicas is the number of control-plane Machines.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// readyReplicas is the number of those whose Ready condition is true.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is the number of those whose Available condition is true.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// upToDateReplicas is the number of those whose UpToDate condition is true.
	// +optional
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`

	// versions are the Kubernetes versions of the machines, oldest first: what the kubelet reports, else what the Machine asks for.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Versions []clusterv1.StatusVersion `json:"versions,omitempty"`

	// version is the oldest of versions, for tools that know no other field.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// observedGeneration is the generation that the status was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastRemediation is the last replacement of an unhealthy machine.
	// +optional
	LastRemediation LastRemediationStatus `json:"lastRemediation,omitempty,omitzero"`

	// plan is what happens next, or what blocks it.
	// +optional
	Plan PlanStatus `json:"plan,omitempty,omitzero"`
}

// TalosControlPlaneInitializationStatus provides observations of the initialization of a TalosControlPlane.
// +kubebuilder:validation:MinProperties=1
type TalosControlPlaneInitializationStatus struct {
	// controlPlaneInitialized is true from the time on that the Kubernetes API server has answered.
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// LastRemediationStatus is the last replacement of an unhealthy machine.
type LastRemediationStatus struct {
	// machine is the name of the Machine that was deleted.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Machine string `json:"machine,omitempty"`

	// time of the deletion.
	// +required
	Time metav1.Time `json:"time,omitempty,omitzero"`

	// retryCount is how many retries there have been in a row.
	// +required
	// +kubebuilder:validation:Minimum=0
	RetryCount *int32 `json:"retryCount,omitempty"`
}

// PlanStatus is a decision about the control plane: what is done next, or what it waits for.
type PlanStatus struct {
	// action that is taken, for example CreateMachine or RemoveEtcdMember; Wait when something has to happen first; None when there
	// is nothing to do.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Action string `json:"action,omitempty"`

	// reason is one word for programs.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message is a sentence for people: what happens and why, or what blocks it. Of several things it names the first five.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Message string `json:"message,omitempty"`

	// since is when action or reason last changed.
	// +required
	Since metav1.Time `json:"since,omitempty,omitzero"`
}

// TalosControlPlane is the control plane of a Cluster: Machines that run Talos, with etcd and the Kubernetes control plane on them.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=taloscontrolplanes,shortName=tcp,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type=='Available')].status",description="Whether the control plane serves its Cluster"
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".spec.replicas",description="How many machines there should be"
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.replicas",description="How many machines there are"
// +kubebuilder:printcolumn:name="Ready",type="integer",JSONPath=".status.readyReplicas",description="How many machines are ready"
// +kubebuilder:printcolumn:name="Available",type="integer",JSONPath=".status.availableReplicas",description="How many machines are available"
// +kubebuilder:printcolumn:name="Up-to-date",type="integer",JSONPath=".status.upToDateReplicas",description="How many machines are as the spec wants them"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version",description="Kubernetes version"
// +kubebuilder:printcolumn:name="Plan",type="string",JSONPath=".status.plan.reason",description="What happens next, or what blocks it"
// +kubebuilder:printcolumn:name="Initialized",type="boolean",priority=1,JSONPath=".status.initialization.controlPlaneInitialized",description="Whether the API server has answered"
// +kubebuilder:printcolumn:name="Paused",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Paused')].status",description="Whether nothing is done"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.plan.message",description="What happens next and why, or what blocks it"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type TalosControlPlane struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired control plane.
	// +required
	Spec TalosControlPlaneSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status TalosControlPlaneStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the TalosControlPlane.
func (c *TalosControlPlane) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions sets the conditions of the TalosControlPlane.
func (c *TalosControlPlane) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// TalosControlPlaneList is a list of TalosControlPlanes.
//
// +kubebuilder:object:root=true
type TalosControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TalosControlPlane `json:"items"`
}

func init() {
	objectTypes = append(objectTypes, &TalosControlPlane{}, &TalosControlPlaneList{})
}
