// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// LockLabel on a Machine keeps node operations off it, whatever its value.
const LockLabel = "ichor.maesh.dev/lock"

// NodeOperationsSpec says how the nodes of a Cluster may be disturbed: upgrades, config changes and reboots.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.order) || !has(self.order.pools) || self.order.pools.all(name, has(self.pools) && self.pools.exists(pool, pool.name == name))",fieldPath=".order.pools",message="order.pools names a pool that is not in pools: add it there, or take it out of order.pools"
type NodeOperationsSpec struct {
	// mode Automatic, the default, does what is due. PlanOnly says what it would do.
	// +optional
	Mode NodeOperationsMode `json:"mode,omitempty"`

	// maxUnavailableWorkers is how many workers may be unavailable at a time, for whatever reason: a number, or a percentage of all
	// workers, rounded down and at least 1. Unset: 1. Control-plane nodes go one at a time always.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9]|[1-9][0-9]|100)%$')",message="maxUnavailableWorkers must be at least 1, or a percentage from 1% to 100%"
	MaxUnavailableWorkers *intstr.IntOrString `json:"maxUnavailableWorkers,omitempty"`

	// windows are the times at which an operation may begin; one that has begun is never interrupted. Unset: always.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Windows []MaintenanceWindow `json:"windows,omitempty"`

	// order says which nodes come first.
	// +optional
	Order NodeOrder `json:"order,omitempty,omitzero"`

	// gates must all hold before an operation begins.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Gates []Gate `json:"gates,omitempty"`

	// drain says how a node is emptied before it is rebooted.
	// +optional
	Drain DrainSpec `json:"drain,omitempty,omitzero"`

	// readyTimeoutSeconds is how long a node may take to become ready after a reboot before the operation counts as failed.
	// Unset: 1200.
	// +optional
	// +kubebuilder:validation:Minimum=60
	ReadyTimeoutSeconds int32 `json:"readyTimeoutSeconds,omitempty"`

	// configChanges Apply, the default, brings a node's config to what is rendered for it. Report says what differs.
	// +optional
	ConfigChanges ConfigChanges `json:"configChanges,omitempty"`

	// storageSafety Auto, the default, disturbs no node whose volumes that would endanger. Off asks no storage system.
	// +optional
	StorageSafety StorageSafety `json:"storageSafety,omitempty"`

	// pools have other settings for the machines that they select; the first that matches wins. What a pool does not say is as above.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Pools []NodeOperationsPool `json:"pools,omitempty"`

	// etcdSnapshot says whether a snapshot of etcd is taken before control-plane nodes are upgraded. Unset: it is not.
	// +optional
	EtcdSnapshot EtcdSnapshotSpec `json:"etcdSnapshot,omitempty,omitzero"`
}

// NodeOperationsMode says whether node operations are carried out.
// +kubebuilder:validation:Enum=Automatic;PlanOnly
type NodeOperationsMode string

const (
	// AutomaticMode does what is due.
	AutomaticMode NodeOperationsMode = "Automatic"

	// PlanOnlyMode says what it would do.
	PlanOnlyMode NodeOperationsMode = "PlanOnly"
)

// ConfigChanges says what happens when a node's config differs from what is rendered for it.
// +kubebuilder:validation:Enum=Apply;Report
type ConfigChanges string

const (
	// ApplyConfigChanges applies the rendered config.
	ApplyConfigChanges ConfigChanges = "Apply"

	// ReportConfigChanges says what differs.
	ReportConfigChanges ConfigChanges = "Report"
)

// StorageSafety says whether volumes are protected while nodes are disturbed.
// +kubebuilder:validation:Enum=Auto;Off
type StorageSafety string

const (
	// StorageSafetyAuto protects them.
	StorageSafetyAuto StorageSafety = "Auto"

	// StorageSafetyOff does not.
	StorageSafetyOff StorageSafety = "Off"
)

// MaintenanceWindow is a recurring time in which operations may begin.
type MaintenanceWindow struct {
	// name of the window.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// cron is when the window opens, in the five fields of cron: "0 2 * * 6" is Saturday at two in the morning.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^ ]+ ){4}[^ ]+$')",message="cron must have five fields: minute, hour, day of the month, month, day of the week"
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	Cron string `json:"cron,omitempty"`

	// durationMinutes is how long it stays open.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10080
	DurationMinutes int32 `json:"durationMinutes,omitempty"`

	// timeZone of cron, for example "Europe/Berlin". Unset: UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// NodeOrder says which nodes come first. Control-plane nodes come before workers always.
// +kubebuilder:validation:MinProperties=1
type NodeOrder struct {
	// pools are names of nodeOperations.pools, in the order in which they are done; the others come after them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Pools []string `json:"pools,omitempty"`

	// canary OnePerPool does one node of each pool before the others. Unset: None.
	// +optional
	Canary Canary `json:"canary,omitempty"`
}

// Canary says which nodes are tried first.
// +kubebuilder:validation:Enum=None;OnePerPool
type Canary string

const (
	// NoCanary tries none.
	NoCanary Canary = "None"

	// CanaryPerPool tries one node of each pool.
	CanaryPerPool Canary = "OnePerPool"
)

// Gate is a condition that an object of the workload cluster must meet before an operation begins.
type Gate struct {
	// name of the gate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// object of the workload cluster. One that is missing or cannot be read keeps the gate shut.
	// +required
	Object GateObject `json:"object,omitempty,omitzero"`

	// expression is CEL over the object, as the variable "object": `object.status.phase == "Healthy"`. It must be true.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`

	// message says what is wrong when the expression is not true.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// GateObject names an object of the workload cluster.
type GateObject struct {
	// apiVersion of the object, for example "apps/v1".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// namespace of the object. Unset for kinds without one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// DrainSpec says how a node is emptied before it is rebooted.
// +kubebuilder:validation:MinProperties=1
type DrainSpec struct {
	// timeoutSeconds is how long a drain may take before it is given up: the node is then put back into service, and the message
	// says what could not be moved. Nothing is ever forced. Unset: 1800.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// skipSelectors select pods that stay on the node, by their labels.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	SkipSelectors []metav1.LabelSelector `json:"skipSelectors,omitempty"`
}

// NodeOperationsPool has other settings for the machines that it selects. Order, gates, storage safety and snapshots of etcd are matters of
// the whole Cluster.
type NodeOperationsPool struct {
	// name of the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// machineSelector matches labels of the Machines of the pool.
	// +required
	MachineSelector *metav1.LabelSelector `json:"machineSelector,omitempty"`

	// strategy InPlace, the default, changes the nodes that exist. Replace leaves them alone until the user rolls their
	// MachineDeployment.
	// +optional
	Strategy PoolStrategy `json:"strategy,omitempty"`

	// mode of the pool. Automatic does not override a nodeOperations.mode of PlanOnly.
	// +optional
	Mode NodeOperationsMode `json:"mode,omitempty"`

	// maxUnavailableWorkers is how many workers of the pool may be unavailable at a time: a number, or a percentage of the pool's
	// workers, rounded down and at least 1. The limit for all workers holds as well. Unset: only that.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9]|[1-9][0-9]|100)%$')",message="maxUnavailableWorkers must be at least 1, or a percentage from 1% to 100%"
	MaxUnavailableWorkers *intstr.IntOrString `json:"maxUnavailableWorkers,omitempty"`

	// windows of the pool, in place of nodeOperations.windows.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Windows []MaintenanceWindow `json:"windows,omitempty"`

	// drain of the pool's nodes, in place of nodeOperations.drain.
	// +optional
	Drain DrainSpec `json:"drain,omitempty,omitzero"`

	// readyTimeoutSeconds of the pool's nodes, in place of nodeOperations.readyTimeoutSeconds.
	// +optional
	// +kubebuilder:validation:Minimum=60
	ReadyTimeoutSeconds int32 `json:"readyTimeoutSeconds,omitempty"`

	// configChanges of the pool, in place of nodeOperations.configChanges.
	// +optional
	ConfigChanges ConfigChanges `json:"configChanges,omitempty"`
}

// PoolStrategy says how the nodes of a pool are brought up to date.
// +kubebuilder:validation:Enum=InPlace;Replace
type PoolStrategy string

const (
	// InPlacePool changes the nodes that exist.
	InPlacePool PoolStrategy = "InPlace"

	// ReplacePool leaves them alone until they are replaced.
	ReplacePool PoolStrategy = "Replace"
)

// EtcdSnapshotSpec says whether, and to where, a snapshot of etcd is taken.
// +kubebuilder:validation:XValidation:rule="self.mode != 'BeforeUpgrade' || has(self.directory) != has(self.s3)",message="mode BeforeUpgrade needs exactly one of directory and s3"
type EtcdSnapshotSpec struct {
	// mode BeforeUpgrade takes one before control-plane nodes are upgraded; an upgrade does not begin without it. Off takes none.
	// +required
	Mode EtcdSnapshotMode `json:"mode,omitempty"`

	// directory that is mounted into the manager, as an absolute path.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.contains('..')",message="directory must be an absolute path"
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=512
	Directory string `json:"directory,omitempty"`

	// s3 is a bucket of a service that speaks S3.
	// +optional
	S3 S3Target `json:"s3,omitempty,omitzero"`
}

// EtcdSnapshotMode says when a snapshot of etcd is taken.
// +kubebuilder:validation:Enum=BeforeUpgrade;Off
type EtcdSnapshotMode string

const (
	// SnapshotBeforeUpgrade takes one before control-plane nodes are upgraded.
	SnapshotBeforeUpgrade EtcdSnapshotMode = "BeforeUpgrade"

	// SnapshotOff takes none.
	SnapshotOff EtcdSnapshotMode = "Off"
)

// S3Target is a bucket of a service that speaks S3.
type S3Target struct {
	// endpoint is the URL of the service, for example "https://s3.eu-central-1.amazonaws.com".
	// +required
	// +kubebuilder:validation:Pattern=`^https?://[^/@?#]+$`
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=512
	Endpoint string `json:"endpoint,omitempty"`

	// bucket to write to.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	Bucket string `json:"bucket,omitempty"`

	// region of the bucket. Unset: us-east-1.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`

	// prefix of the objects' names.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Prefix string `json:"prefix,omitempty"`

	// credentialsSecretRef names a Secret of this namespace with the keys "accessKeyID" and "secretAccessKey".
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.name) && self.name != ''",message="name must be set"
	CredentialsSecretRef *corev1.LocalObjectReference `json:"credentialsSecretRef,omitempty"`
}
