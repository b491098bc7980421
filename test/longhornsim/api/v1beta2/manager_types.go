// SPDX-License-Identifier: Apache-2.0

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InstanceManagerState is the state of an instance manager.
type InstanceManagerState string

// States of instance managers and share managers.
const (
	ManagerStarting InstanceManagerState = "starting"
	ManagerRunning  InstanceManagerState = "running"
	ManagerStopped  InstanceManagerState = "stopped"
	ManagerError    InstanceManagerState = "error"
	ManagerUnknown  InstanceManagerState = "unknown"
)

// InstanceManagerAllInOne is the type of the instance managers of today.
const InstanceManagerAllInOne = "aio"

// InstanceManagerSpec is what an instance manager should be.
type InstanceManagerSpec struct {
	// +optional
	Image string `json:"image,omitempty"`
	// +optional
	NodeID string `json:"nodeID,omitempty"`
	// +kubebuilder:validation:Enum=aio;engine;replica
	// +optional
	Type string `json:"type,omitempty"`
	// +optional
	DataEngine DataEngine `json:"dataEngine,omitempty"`
}

// InstanceProcess is an engine or a replica that runs.
type InstanceProcess struct {
	// +optional
	Spec InstanceProcessSpec `json:"spec,omitempty"`
	// +optional
	Status InstanceProcessStatus `json:"status,omitempty"`
}

// InstanceProcessSpec names a process.
type InstanceProcessSpec struct {
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	DataEngine DataEngine `json:"dataEngine,omitempty"`
}

// InstanceProcessStatus is how a process does.
type InstanceProcessStatus struct {
	// +optional
	State InstanceState `json:"state,omitempty"`
	// +optional
	PortStart int `json:"portStart,omitempty"`
	// +optional
	Type string `json:"type,omitempty"`
}

// InstanceManagerStatus is what an instance manager is.
type InstanceManagerStatus struct {
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// +optional
	CurrentState InstanceManagerState `json:"currentState,omitempty"`
	// +nullable
	// +optional
	InstanceEngines map[string]InstanceProcess `json:"instanceEngines,omitempty"`
	// +nullable
	// +optional
	InstanceReplicas map[string]InstanceProcess `json:"instanceReplicas,omitempty"`
	// +nullable
	// +optional
	InstanceEngineFrontends map[string]InstanceProcess `json:"instanceEngineFrontends,omitempty"`
	// +optional
	IP string `json:"ip,omitempty"`
}

// InstanceManager is the pod in which the engines and replicas of a node run.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhim
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Data Engine",type=string,JSONPath=`.spec.dataEngine`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.currentState`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeID`
type InstanceManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InstanceManagerSpec   `json:"spec,omitempty"`
	Status InstanceManagerStatus `json:"status,omitempty"`
}

// InstanceManagerList is a list of InstanceManagers.
// +kubebuilder:object:root=true
type InstanceManagerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []InstanceManager `json:"items"`
}

// EngineImageSpec names the image of the engine's program.
type EngineImageSpec struct {
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`
}

// EngineImageStatus is where the program is.
type EngineImageStatus struct {
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// +optional
	State string `json:"state,omitempty"`
	// +nullable
	// +optional
	NodeDeploymentMap map[string]bool `json:"nodeDeploymentMap,omitempty"`
}

// EngineImage is a version of the engine's program.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhei
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
type EngineImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EngineImageSpec   `json:"spec,omitempty"`
	Status EngineImageStatus `json:"status,omitempty"`
}

// EngineImageList is a list of EngineImages.
// +kubebuilder:object:root=true
type EngineImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EngineImage `json:"items"`
}

// ShareManagerSpec names the image of the NFS server.
type ShareManagerSpec struct {
	// +optional
	Image string `json:"image,omitempty"`
}

// ShareManagerStatus is how the NFS server does.
type ShareManagerStatus struct {
	// OwnerID is the node on which it runs.
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// +optional
	State InstanceManagerState `json:"state,omitempty"`
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
}

// ShareManager serves a volume that many nodes may write.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhsm
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.ownerID`
type ShareManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShareManagerSpec   `json:"spec,omitempty"`
	Status ShareManagerStatus `json:"status,omitempty"`
}

// ShareManagerList is a list of ShareManagers.
// +kubebuilder:object:root=true
type ShareManagerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ShareManager `json:"items"`
}
