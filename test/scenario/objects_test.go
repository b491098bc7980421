// SPDX-License-Identifier: Apache-2.0

package scenario_test

import "fmt"

// clusterYAML is a Cluster without a control-plane provider: its control-plane Machines are made by hand.
func clusterYAML(fidelity string) string {
	return fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c}
spec:
  clusterNetwork:
    pods: {cidrBlocks: [10.244.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
    serviceDomain: cluster.local
  infrastructureRef: {apiGroup: infrastructure.ichor.maesh.dev, kind: SimCluster, name: c}
---
apiVersion: infrastructure.ichor.maesh.dev/v1alpha1
kind: SimCluster
metadata: {name: c}
spec: {fidelity: %s}
---
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosClusterConfig
metadata: {name: c}
spec:
  clusterName: c
  talos: {version: v1.14.1}
`, fidelity)
}

// controlPlaneYAML is a control-plane Machine and all that it refers to. machine is the spec of the SimMachine.
func controlPlaneYAML(name, machine string) string {
	return fmt.Sprintf(`
apiVersion: infrastructure.ichor.maesh.dev/v1alpha1
kind: SimMachine
metadata: {name: %[1]s}
spec: %[2]s
---
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfig
metadata: {name: %[1]s}
spec:
  hostname: {source: MachineName}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata:
  name: %[1]s
  labels: {cluster.x-k8s.io/cluster-name: c, cluster.x-k8s.io/control-plane: ""}
spec:
  clusterName: c
  version: v1.36.1
  bootstrap: {configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfig, name: %[1]s}}
  infrastructureRef: {apiGroup: infrastructure.ichor.maesh.dev, kind: SimMachine, name: %[1]s}
`, name, machine)
}

// templateYAML is what the machines of workersYAML are made from.
const templateYAML = `
apiVersion: infrastructure.ichor.maesh.dev/v1alpha1
kind: SimMachineTemplate
metadata: {name: workers}
spec: {template: {spec: {}}}
---
`

// workersYAML is a MachineDeployment of two.
const workersYAML = templateYAML + `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigTemplate
metadata: {name: workers}
spec:
  template:
    spec:
      hostname: {source: MachineName}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: workers}
spec:
  clusterName: c
  replicas: 2
  template:
    spec:
      clusterName: c
      version: v1.36.1
      bootstrap: {configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfigTemplate, name: workers}}
      infrastructureRef: {apiGroup: infrastructure.ichor.maesh.dev, kind: SimMachineTemplate, name: workers}
`

// givenYAML is a worker's Machine with bootstrap data that somebody else has made.
const givenYAML = `
apiVersion: v1
kind: Secret
metadata: {name: given}
stringData: {value: "kind: NotTalos"}
---
apiVersion: infrastructure.ichor.maesh.dev/v1alpha1
kind: SimMachine
metadata: {name: given}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: given, labels: {cluster.x-k8s.io/cluster-name: c}}
spec:
  clusterName: c
  version: v1.36.1
  bootstrap: {dataSecretName: given}
  infrastructureRef: {apiGroup: infrastructure.ichor.maesh.dev, kind: SimMachine, name: given}
`
