// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// While it waits for its definitions a manager answers no probe, and must not be ended for it: it is to tell itself what is missing.
func TestStartupProbeWaitsForDefinitions(t *testing.T) {
	for _, provider := range []string{"bootstrap", "controlplane"} {
		t.Run(provider, func(t *testing.T) {
			g := NewWithT(t)

			text, err := os.ReadFile(filepath.Join("..", "..", "config", provider, "manager", "manager.yaml"))
			g.Expect(err).NotTo(HaveOccurred())

			var deployment appsv1.Deployment
			g.Expect(yaml.UnmarshalStrict(text, &deployment)).To(Succeed())

			probe := deployment.Spec.Template.Spec.Containers[0].StartupProbe
			g.Expect(probe).To(HaveField("HTTPGet.Path", "/healthz"))

			patience := time.Duration(probe.PeriodSeconds*probe.FailureThreshold) * time.Second
			g.Expect(patience).To(BeNumerically(">=", definitionsTimeout+15*time.Second), "the manager's own start is in it")
		})
	}
}
