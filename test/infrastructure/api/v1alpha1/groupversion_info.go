// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the API group and version of the provider.
	GroupVersion = schema.GroupVersion{Group: "infrastructure.ichor.maesh.dev", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&SimCluster{}, &SimClusterList{}, &SimClusterTemplate{}, &SimClusterTemplateList{},
		&SimMachine{}, &SimMachineList{}, &SimMachineTemplate{}, &SimMachineTemplateList{},
		&SimMachinePool{}, &SimMachinePoolList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)

	return nil
}
