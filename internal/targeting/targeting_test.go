// SPDX-License-Identifier: Apache-2.0

package targeting_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/targeting"
)

func check(t *testing.T, got bool, err error, want bool, wantErr string) {
	t.Helper()

	if (err != nil) != (wantErr != "") || (err != nil && !strings.Contains(err.Error(), wantErr)) {
		t.Fatalf("error %v, want %q", err, wantErr)
	}

	if got != want {
		t.Errorf("matches: %t, want %t", got, want)
	}
}

func expression(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func TestCluster(t *testing.T) {
	t.Parallel()

	production := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "production"}}

	tests := map[string]struct {
		target    bootstrapv1.ClusterTargeting
		namespace string
		want      bool
		wantErr   string
	}{
		"by name":                        {target: bootstrapv1.ClusterTargeting{ClusterName: "a"}, namespace: "ns", want: true},
		"by name, other cluster":         {target: bootstrapv1.ClusterTargeting{ClusterName: "b"}, namespace: "ns"},
		"by name, other namespace":       {target: bootstrapv1.ClusterTargeting{ClusterName: "a"}, namespace: "other"},
		"by label":                       {target: bootstrapv1.ClusterTargeting{ClusterSelector: production}, namespace: "ns", want: true},
		"by label, other namespace":      {target: bootstrapv1.ClusterTargeting{ClusterSelector: production}, namespace: "other"},
		"by label, other value":          {target: bootstrapv1.ClusterTargeting{ClusterSelector: expression("env", "In", "test")}, namespace: "ns"},
		"by expression":                  {target: bootstrapv1.ClusterTargeting{ClusterSelector: expression("env", "NotIn", "test")}, namespace: "ns", want: true},
		"empty selector":                 {target: bootstrapv1.ClusterTargeting{ClusterSelector: &metav1.LabelSelector{}}, namespace: "ns", want: true},
		"empty selector, other ns":       {target: bootstrapv1.ClusterTargeting{ClusterSelector: &metav1.LabelSelector{}}, namespace: "other"},
		"neither":                        {namespace: "ns"},
		"both":                           {target: bootstrapv1.ClusterTargeting{ClusterName: "a", ClusterSelector: production}, namespace: "ns", wantErr: "clusterName and clusterSelector"},
		"unknown operator":               {target: bootstrapv1.ClusterTargeting{ClusterSelector: expression("env", "Is", "production")}, namespace: "ns", wantErr: `clusterSelector: "Is"`},
		"In without values":              {target: bootstrapv1.ClusterTargeting{ClusterSelector: expression("env", "In")}, namespace: "ns", wantErr: "clusterSelector: "},
		"invalid label key":              {target: bootstrapv1.ClusterTargeting{ClusterSelector: expression("not a key", "Exists")}, namespace: "ns", wantErr: "clusterSelector: "},
		"invalid selector, other ns too": {target: bootstrapv1.ClusterTargeting{ClusterSelector: expression("env", "In")}, namespace: "other", wantErr: "clusterSelector: "},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "a", Labels: map[string]string{"env": "production"},
			}}

			got, err := targeting.Cluster(tc.target, tc.namespace, cluster)
			check(t, got, err, tc.want, tc.wantErr)
		})
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		selector *metav1.LabelSelector
		labels   map[string]string
		want     bool
		wantErr  string
	}{
		"no selector":            {labels: map[string]string{"pool": "a"}, want: true},
		"no selector, no labels": {want: true},
		"empty selector":         {selector: &metav1.LabelSelector{}, want: true},
		"matches":                {selector: expression("pool", "In", "a", "b"), labels: map[string]string{"pool": "a"}, want: true},
		"other value":            {selector: expression("pool", "In", "a", "b"), labels: map[string]string{"pool": "c"}},
		"label missing":          {selector: expression("pool", "Exists")},
		"control plane, which has no value": {
			selector: &metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}},
			labels:   map[string]string{clusterv1.MachineControlPlaneLabel: ""}, want: true,
		},
		"every worker":                {selector: expression(clusterv1.MachineControlPlaneLabel, "DoesNotExist"), labels: map[string]string{"pool": "a"}, want: true},
		"invalid operator, no labels": {selector: expression("pool", "Equals", "a"), wantErr: "machineSelector: "},
		"Exists with a value":         {selector: expression("pool", "Exists", "a"), labels: map[string]string{"pool": "a"}, wantErr: "machineSelector: "},
		"invalid value":               {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a b"}}, wantErr: "machineSelector: "},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := targeting.Machine(bootstrapv1.MachineTargeting{MachineSelector: tc.selector}, tc.labels)
			check(t, got, err, tc.want, tc.wantErr)
		})
	}
}
