// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is Longhorn's API group and version.
	GroupVersion = schema.GroupVersion{Group: "longhorn.io", Version: "v1beta2"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&BackingImage{}, &BackingImageList{},
		&Engine{}, &EngineList{},
		&EngineImage{}, &EngineImageList{},
		&InstanceManager{}, &InstanceManagerList{},
		&Node{}, &NodeList{},
		&Replica{}, &ReplicaList{},
		&Setting{}, &SettingList{},
		&Shard{}, &ShardList{},
		&ShardGroup{}, &ShardGroupList{},
		&ShareManager{}, &ShareManagerList{},
		&Volume{}, &VolumeList{},
		&VolumeAttachment{}, &VolumeAttachmentList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)

	return nil
}
