// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
)

// A report wakes its own object when it begins to say which Clusters there are, and never otherwise: a Cluster may have come in between, and one
// that is not targeted wakes only who says so already.
func TestOwnReport(t *testing.T) {
	with := func(version string, conditions ...metav1.Condition) *bootstrapv1.TalosClusterConfig {
		config := &bootstrapv1.TalosClusterConfig{ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 1, ResourceVersion: version}}
		config.Status.Conditions = conditions

		return config
	}
	of := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: bootstrapv1.SecretsBundleAvailableCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}

	tests := map[string]struct {
		before, now *bootstrapv1.TalosClusterConfig
		want        bool
	}{
		"the first report":                    {with("1"), with("2", of(bootstrapv1.SecretsBundleNoClusterReason, "nor any other")), true},
		"its Cluster is gone":                 {with("1", of("Another", "")), with("2", of(bootstrapv1.SecretsBundleNoClusterReason, "there is b")), true},
		"there is another one":                {with("1", of(bootstrapv1.SecretsBundleNoClusterReason, "")), with("2", of(bootstrapv1.SecretsBundleNoClusterReason, "there is b")), false},
		"its Cluster has come":                {with("1", of(bootstrapv1.SecretsBundleNoClusterReason, "")), with("2", of("Another", "")), false},
		"the first report, with its Clusters": {with("1"), with("2", of("Another", "")), false},
		"the periodic look":                   {with("1", of("Another", "")), with("1", of("Another", "")), true},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wakes := predicate.Or(reporting.Own(), beganToSayNoCluster())
			if got := wakes.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.now}); got != test.want {
				t.Errorf("wakes: %t, want %t", got, test.want)
			}
		})
	}
}
