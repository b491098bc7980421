// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// World is a whole cluster on simulated machines, with control-plane Machines that are made by hand: cp1, cp2 and so on, and a
// MachineDeployment "workers".
type World struct {
	// Name of the Cluster.
	Name string

	// ControlPlanes and Workers count the machines.
	ControlPlanes, Workers int32

	// Light has a model of etcd and no Kubernetes.
	Light bool
}

// Small is the world of three control-plane machines and two workers.
func Small(name string) World { return World{Name: name, ControlPlanes: 3, Workers: 2} }

// Objects are the Cluster and its machines.
func (w World) Objects() []client.Object {
	cluster := Cluster(w.Name)
	if w.Light {
		cluster.Light()
	}

	objects := cluster.Objects()

	for i := range w.ControlPlanes {
		objects = append(objects, ControlPlaneMachine(w.Name, fmt.Sprintf("cp%d", i+1)).Objects()...)
	}

	if w.Workers > 0 {
		objects = append(objects, Workers(w.Name, "workers", w.Workers).Objects()...)
	}

	return objects
}
