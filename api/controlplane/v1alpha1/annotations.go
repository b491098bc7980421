// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TalosControlPlaneFinalizer keeps a TalosControlPlane until its Machines are gone.
const TalosControlPlaneFinalizer = "controlplane.ichor.maesh.dev/taloscontrolplane"

// BootstrapAnnotation says that etcd is bootstrapped on a machine: once in a cluster's life. It stands on the TalosControlPlane
// and on the Secret <cluster>-talos, as JSON, and is written before the call:
//
//	{"machine":"cp-x7k2p"}
//
// with "done":true from the time on that the Kubernetes API server has answered. Who removes it from both places, after the named
// Machine is gone, allows another bootstrap; it then still needs every machine of the control plane to have no etcd data.
const BootstrapAnnotation = "controlplane.ichor.maesh.dev/bootstrap"

// ServedElsewhereAnnotation on the TalosControlPlane is the control-plane endpoint at which a Kubernetes API server with a certificate of the
// cluster's authority answered before etcd was bootstrapped: "10.0.0.10:6443". As long as the Cluster has that endpoint, etcd is not
// bootstrapped beside it, also when it is out of reach for a while. Who removes the annotation says that it is gone for good; it is asked
// again before etcd is bootstrapped.
const ServedElsewhereAnnotation = "controlplane.ichor.maesh.dev/served-elsewhere"

// PreTerminateHookAnnotation on a Machine keeps its infrastructure until its etcd member has left. Every control-plane Machine has
// it from birth. To remove it by hand is to accept that a member may stay behind in etcd.
const PreTerminateHookAnnotation = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/ichor-etcd"

// EtcdMembersAnnotation on a Machine holds the IDs of the etcd members that its node has said it was, newest last, in hex with
// commas between them: "8e9e05c52164694d". By it a member is removed when its node no longer answers.
const EtcdMembersAnnotation = "controlplane.ichor.maesh.dev/etcd-members"

// HadAddressAnnotation on a Machine says that it has had an address, whatever its value: a node may run on it, with etcd data. Etcd is not
// bootstrapped before each such machine has said that it has none, also when the Machine's status is lost in a move.
const HadAddressAnnotation = "controlplane.ichor.maesh.dev/had-address"

// Annotations that follow a remediation, as JSON: {"machine":"cp-x7k2p","timestamp":"2026-01-02T03:04:05Z","retryCount":1}.
const (
	// RemediationInProgressAnnotation on the TalosControlPlane says which Machine is being replaced because it was unhealthy. It is
	// written before the Machine is deleted and removed when its replacement exists.
	RemediationInProgressAnnotation = "controlplane.ichor.maesh.dev/remediation-in-progress"

	// RemediationForAnnotation on a Machine says which unhealthy Machine it replaces.
	RemediationForAnnotation = "controlplane.ichor.maesh.dev/remediation-for"
)

// Annotations of the Secret <cluster>-kubeconfig, as the Secret <cluster>-talosconfig has its own.
const (
	// RotateAnnotation asks for a new client certificate. The user sets it to anything; each other value asks once, and so does the same
	// one after the annotation has been removed. A Secret that a user has made is left as it is, and the condition CertificatesAvailable says so.
	RotateAnnotation = "controlplane.ichor.maesh.dev/rotate"

	// RotatedAnnotation is the value of RotateAnnotation that was answered last.
	RotatedAnnotation = "controlplane.ichor.maesh.dev/rotated"
)
