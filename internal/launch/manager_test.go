// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// A manager gives its lease up before its Pod is killed, also when a worker does not end.
func TestEndsBeforeItIsKilled(t *testing.T) {
	g := NewWithT(t)

	configured := NewOptions()
	configured.Diagnostics.TLSMinVersion = "VersionTLS12"
	options, err := Manager{Name: "test"}.options(configured)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(options.LeaderElectionReleaseOnCancel).To(BeTrue())

	for _, provider := range []string{"bootstrap", "controlplane"} {
		content, err := os.ReadFile("../../config/" + provider + "/manager/manager.yaml")
		g.Expect(err).NotTo(HaveOccurred())

		deployment := &appsv1.Deployment{}
		g.Expect(yaml.Unmarshal(content, deployment)).To(Succeed())

		grace := deployment.Spec.Template.Spec.TerminationGracePeriodSeconds
		g.Expect(grace).NotTo(BeNil(), provider)
		g.Expect(*options.GracefulShutdownTimeout).To(BeNumerically("<", time.Duration(*grace)*time.Second), provider)
		g.Expect(*options.GracefulShutdownTimeout).To(BeNumerically(">", 0), provider)
	}
}
