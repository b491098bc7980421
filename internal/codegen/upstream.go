// SPDX-License-Identifier: Apache-2.0

package main

// The types that stand in for what is free-form in machinery are read from these packages as source. The imports keep their
// modules in the build list, and so say which versions are read.
import (
	_ "github.com/opencontainers/runtime-spec/specs-go"
	_ "k8s.io/apiserver/pkg/apis/apiserver/v1"
	_ "k8s.io/apiserver/pkg/apis/audit/v1"
	_ "k8s.io/kube-proxy/config/v1alpha1"
	_ "k8s.io/kube-scheduler/config/v1"
	_ "k8s.io/kubelet/config/v1"
	_ "k8s.io/kubelet/config/v1beta1"
	_ "k8s.io/pod-security-admission/admission/api/v1"
)
