// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Keys of the Secrets that a TalosClusterConfig refers to.
const (
	// RegistryPasswordKey holds the password that goes with the registry's username.
	RegistryPasswordKey = "password"

	// RegistryAuthKey holds "user:password" in base64, the auth field of a Docker config file.
	RegistryAuthKey = "auth"

	// RegistryIdentityTokenKey holds an identity token.
	RegistryIdentityTokenKey = "identityToken"

	// CACertificateKey holds PEM certificates of the authorities that a registry's certificate is checked against.
	CACertificateKey = "ca.crt"

	// TalosCAKey, KubernetesCAKey and AggregatorCAKey hold PEM certificates of authorities that are accepted beside the
	// cluster's own, for the Talos API, the Kubernetes API and the aggregation layer.
	TalosCAKey      = "talos.crt"
	KubernetesCAKey = "kubernetes.crt"
	AggregatorCAKey = "aggregator.crt"

	// SecretsBundleKey holds a Talos secrets bundle in the YAML form of `talosctl gen secrets`.
	SecretsBundleKey = "bundle"
)

// TalosClusterConfigSpec is the cluster-wide settings of the Clusters it targets.
// +kubebuilder:validation:XValidation:rule="has(self.clusterName) != has(self.clusterSelector)",message="exactly one of clusterName and clusterSelector must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.secretsRef) || has(self.clusterName) || oldSelf.hasValue() && has(oldSelf.value().secretsRef) && !has(oldSelf.value().clusterName)",optionalOldSelf=true,message="secretsRef needs clusterName: a secrets bundle is that of one cluster"
type TalosClusterConfigSpec struct {
	ClusterTargeting `json:",inline"`

	// talos says which Talos the nodes run and which config format new machines get.
	// +optional
	Talos TalosSpec `json:"talos,omitempty,omitzero"`

	// registries are the container registries that nodes pull from, with their mirrors and credentials.
	// +optional
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Registries []Registry `json:"registries,omitempty"`

	// network of the cluster.
	// +optional
	Network NetworkSpec `json:"network,omitempty,omitzero"`

	// certSANs are extra names and addresses for the certificates of the Kubernetes and Talos APIs.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	CertSANs []string `json:"certSANs,omitempty"`

	// allowSchedulingOnControlPlanes says whether ordinary pods may run on control-plane nodes. Unset: Disabled.
	// +optional
	AllowSchedulingOnControlPlanes EnabledState `json:"allowSchedulingOnControlPlanes,omitempty"`

	// talosAPI says how the controllers reach the Talos API of nodes.
	// +optional
	TalosAPI TalosAPISpec `json:"talosAPI,omitempty,omitzero"`

	// acceptedCAsSecretRef names a Secret of this namespace with extra trust roots, for a rotation of certificate authorities:
	// PEM certificates under one or more of the keys "talos.crt", "kubernetes.crt" and "aggregator.crt" (contract 1.14 and later).
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.name) && self.name != ''",message="name must be set"
	AcceptedCAsSecretRef *corev1.LocalObjectReference `json:"acceptedCAsSecretRef,omitempty"`

	// secretsRef names a Secret of this namespace with a Talos secrets bundle (key "bundle") to use instead of a generated
	// one. It is copied once into <cluster>-talos; a later difference is an error. It needs clusterName, and must not be the
	// bundle of another Cluster: two clusters with the same secrets have the same administrators.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.name) && self.name != ''",message="name must be set"
	SecretsRef *corev1.LocalObjectReference `json:"secretsRef,omitempty"`
}

// EnabledState is a switch.
// +kubebuilder:validation:Enum=Enabled;Disabled
type EnabledState string

const (
	// Enabled is on.
	Enabled EnabledState = "Enabled"

	// Disabled is off.
	Disabled EnabledState = "Disabled"
)

// TalosSpec says which Talos the nodes of a cluster run.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.version) || !has(self.pools) || !self.pools.exists(pool, has(pool.version))",message="a pool has a version of its own only beside spec.talos.version, which settles the config contract"
type TalosSpec struct {
	// version is the Talos version that every node of the cluster should run, for example "v1.14.1".
	// +optional
	// +kubebuilder:validation:Pattern=`^v1\.[0-9]{1,3}\.[0-9]{1,3}(-[0-9A-Za-z.-]+)?$`
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// configContract is the config format of new machines, for example "v1.13". Unset: pinned once, at the cluster's first
	// render, to the minor of version, and unchanged by later upgrades.
	// +optional
	// +kubebuilder:validation:Pattern=`^v1\.[0-9]{1,3}$`
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=6
	ConfigContract string `json:"configContract,omitempty"`

	// schematicID is the Image Factory schematic of the nodes: 64 hex digits.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	SchematicID string `json:"schematicID,omitempty"`

	// installer says where installer images come from.
	// +optional
	Installer InstallerSpec `json:"installer,omitempty,omitzero"`

	// cloudProvider External turns on Talos' external cloud provider setting: the kubelet waits for a cloud controller
	// manager to set the Node's provider ID. Unset: None.
	// +optional
	CloudProvider CloudProvider `json:"cloudProvider,omitempty"`

	// pools have other Talos settings for the machines that they select; the first that matches wins.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Pools []TalosPool `json:"pools,omitempty"`
}

// CloudProvider says who manages the cloud side of nodes.
// +kubebuilder:validation:Enum=None;External
type CloudProvider string

const (
	// CloudProviderNone means that nobody does.
	CloudProviderNone CloudProvider = "None"

	// CloudProviderExternal means that a cloud controller manager does.
	CloudProviderExternal CloudProvider = "External"
)

// InstallerSpec says where installer images come from:
// <registry>/<platform>-installer[-secureboot]/<schematic>:<version>.
// +kubebuilder:validation:MinProperties=1
type InstallerSpec struct {
	// registry of the installer images, with an optional path. Unset: factory.talos.dev.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._-]+)*$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Registry string `json:"registry,omitempty"`

	// platform of the installer image, for example metal, vmware or nocloud. It must be said for a new machine with an
	// install section; a running node keeps its own.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Platform string `json:"platform,omitempty"`

	// secureBoot selects the installer for machines that boot with Secure Boot. Unset: Disabled.
	// +optional
	SecureBoot EnabledState `json:"secureBoot,omitempty"`
}

// TalosPool is the Talos settings of the machines that it selects, where they differ from the cluster's.
type TalosPool struct {
	// name of the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// machineSelector selects the machines of the pool by labels of the CAPI Machine.
	// +required
	MachineSelector *metav1.LabelSelector `json:"machineSelector,omitempty"`

	// version is the Talos version of the pool.
	// +optional
	// +kubebuilder:validation:Pattern=`^v1\.[0-9]{1,3}\.[0-9]{1,3}(-[0-9A-Za-z.-]+)?$`
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// schematicID is the Image Factory schematic of the pool.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	SchematicID string `json:"schematicID,omitempty"`

	// installer of the pool, field by field over the cluster's.
	// +optional
	Installer InstallerSpec `json:"installer,omitempty,omitzero"`
}

// Registry is one registry host: where its images may be pulled from instead, and how to authenticate to it.
// +kubebuilder:validation:XValidation:rule="!has(self.username) || has(self.authSecretRef)",message="username needs authSecretRef: the password comes from that Secret"
type Registry struct {
	// host is the registry host as image names have it, with a port if it has one, or "*" for every host without an entry.
	// Credentials and TLS settings belong to the host that is contacted.
	// +required
	// +kubebuilder:validation:Pattern=`^(\*|[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9a-fA-F:]+\](:[0-9]{1,5})?)$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host,omitempty"`

	// endpoints are mirrors of the host, tried in this order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Endpoints []RegistryEndpoint `json:"endpoints,omitempty"`

	// skipFallback means that the host itself is never contacted when all endpoints fail. Unset: false. A bool as in Talos.
	// +optional
	SkipFallback *bool `json:"skipFallback,omitempty"`

	// username to authenticate with; it goes with the key "password" of authSecretRef.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Username string `json:"username,omitempty"`

	// authSecretRef names a Secret of this namespace with exactly one of the keys "password" (with username), "auth", "identityToken".
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.name) && self.name != ''",message="name must be set"
	AuthSecretRef *corev1.LocalObjectReference `json:"authSecretRef,omitempty"`

	// tls says how the host's certificate is checked and which client certificate is shown to it.
	// +optional
	TLS RegistryTLS `json:"tls,omitempty,omitzero"`
}

// RegistryEndpoint is one mirror of a registry host.
type RegistryEndpoint struct {
	// url of the mirror, with scheme, for example "https://mirror.example.com/v2/docker.io". Credentials in it are refused:
	// use authSecretRef of the mirror host's own entry.
	// +required
	// +kubebuilder:validation:Pattern=`^https?://[^@\s]+$`
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=1024
	URL string `json:"url,omitempty"`

	// overridePath uses the url's path as it is instead of appending "/v2". Unset: false. A bool as in Talos.
	// +optional
	OverridePath *bool `json:"overridePath,omitempty"`
}

// RegistryTLS is the TLS settings for a registry host.
// +kubebuilder:validation:MinProperties=1
type RegistryTLS struct {
	// caSecretRef names a Secret of this namespace with the key "ca.crt": PEM certificates that the host's certificate is checked against.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.name) && self.name != ''",message="name must be set"
	CASecretRef *corev1.LocalObjectReference `json:"caSecretRef,omitempty"`

	// clientCertificateSecretRef names a Secret of this namespace with the keys "tls.crt" and "tls.key".
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.name) && self.name != ''",message="name must be set"
	ClientCertificateSecretRef *corev1.LocalObjectReference `json:"clientCertificateSecretRef,omitempty"`

	// insecureSkipVerify accepts any certificate of the host. Unset: false. A bool as in Talos.
	// +optional
	InsecureSkipVerify *bool `json:"insecureSkipVerify,omitempty"`
}

// NetworkSpec is the network of a cluster. Pod and service CIDRs and the DNS domain come from the Cluster.
// +kubebuilder:validation:MinProperties=1
type NetworkSpec struct {
	// cni is the pod network. Unset: Flannel, which Talos deploys.
	// +optional
	CNI CNISpec `json:"cni,omitempty,omitzero"`

	// kubeProxy Disabled leaves kube-proxy out, for networks that replace it. Unset: Enabled.
	// +optional
	KubeProxy EnabledState `json:"kubeProxy,omitempty"`

	// kubePrismPort is the port of the in-node load balancer for the Kubernetes API; 0 turns it off. Unset: Talos' default, 7445.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	KubePrismPort *int32 `json:"kubePrismPort,omitempty"`
}

// CNIType says how the pod network is deployed.
// +kubebuilder:validation:Enum=Flannel;None;Manifests
type CNIType string

const (
	// CNIFlannel is Flannel, deployed by Talos.
	CNIFlannel CNIType = "Flannel"

	// CNINone means that the user deploys the pod network.
	CNINone CNIType = "None"

	// CNIManifests means that Talos applies the manifests at the given URLs.
	CNIManifests CNIType = "Manifests"
)

// CNISpec is the pod network of a cluster.
// +kubebuilder:validation:XValidation:rule="(self.type == 'Manifests') == has(self.urls)",message="urls must be set with type Manifests, and only then"
type CNISpec struct {
	// type says how the pod network is deployed.
	// +required
	Type CNIType `json:"type,omitempty"`

	// urls of the manifests that Talos applies.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^https?://[^@\s]+$`
	// +kubebuilder:validation:items:MinLength=8
	// +kubebuilder:validation:items:MaxLength=1024
	URLs []string `json:"urls,omitempty"`
}

// TalosAPISpec says how the controllers reach the Talos API of nodes. The Cluster's endpoint and addresses shared by more
// than one machine are never used.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.endpoints) || (!has(self.addressTypes) && !has(self.cidrs))",message="endpoints excludes addressTypes and cidrs"
type TalosAPISpec struct {
	// endpoints are load balancers in front of the Talos API, as host or host:port.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=259
	Endpoints []string `json:"endpoints,omitempty"`

	// addressTypes are the types of Machine addresses to use, in order of preference.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	AddressTypes []clusterv1.MachineAddressType `json:"addressTypes,omitempty"`

	// cidrs limits the Machine addresses to those in one of these networks.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=43
	CIDRs []string `json:"cidrs,omitempty"`
}

// TalosClusterConfigStatus is the observed state of a TalosClusterConfig.
// +kubebuilder:validation:MinProperties=1
type TalosClusterConfigStatus struct {
	// conditions of the TalosClusterConfig: Ready, RegistriesResolved, SecretsBundleAvailable, Movable, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the status was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// TalosClusterConfig is the cluster-wide settings of the Clusters it targets. At most one may target a Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=talosclusterconfigs,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Talos",type="string",JSONPath=".spec.talos.version",description="Talos version of the cluster's nodes"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether machines can be rendered with it"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What is wrong"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type TalosClusterConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the cluster-wide settings.
	// +required
	Spec TalosClusterConfigSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status TalosClusterConfigStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the TalosClusterConfig.
func (c *TalosClusterConfig) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions sets the conditions of the TalosClusterConfig.
func (c *TalosClusterConfig) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// TalosClusterConfigList is a list of TalosClusterConfigs.
//
// +kubebuilder:object:root=true
type TalosClusterConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TalosClusterConfig `json:"items"`
}

func init() {
	objectTypes = append(objectTypes, &TalosClusterConfig{}, &TalosClusterConfigList{})
}
