// SPDX-License-Identifier: Apache-2.0

package targeting

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// Cluster reports whether an object in objectNamespace with this targeting applies to the cluster. Only Clusters of the object's own
// namespace are targeted. An empty clusterSelector selects each of them; with neither clusterName nor clusterSelector none is, which is
// how a TalosConfigPatch says that it applies by reference only.
//
// An error names the field (clusterSelector). It is never a match: what a user cannot have meant must not reach any node.
func Cluster(target bootstrapv1.ClusterTargeting, objectNamespace string, cluster *clusterv1.Cluster) (bool, error) {
	if target.ClusterName != "" && target.ClusterSelector != nil {
		return false, errors.New("clusterName and clusterSelector are both set: remove one of them")
	}

	if target.ClusterSelector != nil {
		matches, err := match("clusterSelector", target.ClusterSelector, cluster.Labels)

		return matches && cluster.Namespace == objectNamespace, err
	}

	return target.ClusterName != "" && target.ClusterName == cluster.Name && cluster.Namespace == objectNamespace, nil
}

// Machine reports whether an object with this targeting applies to a machine with these labels, of a Cluster that it applies to. The
// labels are those of the CAPI Machine, or of a MachinePool's machine template. Without a machineSelector, or with an empty one, it
// applies to every machine.
//
// An error names the field (machineSelector). It is never a match.
func Machine(target bootstrapv1.MachineTargeting, machineLabels map[string]string) (bool, error) {
	if target.MachineSelector == nil {
		return true, nil
	}

	return match("machineSelector", target.MachineSelector, machineLabels)
}

func match(field string, selector *metav1.LabelSelector, set map[string]string) (bool, error) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, fmt.Errorf("%s: %w", field, err)
	}

	return parsed.Matches(labels.Set(set)), nil
}
