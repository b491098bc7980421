// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/talos"
	"github.com/maesh-dev/ichor/internal/workload"
)

// nodes ask the nodes of a cluster, and have them do something. It is internal/talos.
type nodes interface {
	Observe(ctx context.Context, names ...string) map[string]talos.Node
	Bootstrap(ctx context.Context, machine string) error
	ForwardLeadership(ctx context.Context, machine string, from etcd.MemberID) (string, error)
	LeaveEtcd(ctx context.Context, machine string, member etcd.MemberID) error
	RemoveEtcdMember(ctx context.Context, through string, member etcd.MemberID) error
}

// inspect puts into the snapshot what nodes say: now, if that is asked for or due, and otherwise what they have said a while ago. All are
// asked at once, so that what they say of each other is of one time.
func (r *Reconciler) inspect(ctx context.Context, seen *observation, now bool) {
	if now || r.due(seen) {
		r.ask(ctx, seen)
	}

	// What was said before the way to the nodes was lost counts no more: nobody could act by it.
	for i, m := range seen.machines {
		if seen.nodes == nil {
			seen.snapshot.Machines[i].Etcd = etcd.View{Problem: seen.disconnected}
		} else {
			seen.snapshot.Machines[i].Etcd = seen.plane.views[m.object.UID].node.Etcd
		}
	}

	seen.plane.note(rollout.Orphans(seen.snapshot), seen.snapshot.Now)
	seen.snapshot.Orphans = seen.plane.orphans

	if seen.cluster != nil && rollout.NeedsNodes(seen.snapshot) {
		seen.snapshot.Nodes = r.workloadNodes(ctx, seen)
	}

	r.probe(ctx, seen)
	seen.snapshot.ControlPlane.Serving = seen.fresh && rollout.Begins(seen.snapshot) && r.serving(ctx, seen)
	r.judge(seen)
}

// due says whether a node has not been asked for as long as it may be, or never in this way.
func (r *Reconciler) due(seen *observation) bool {
	if seen.nodes == nil {
		return false
	}

	interval := r.PollInterval
	if seen.plane.settled {
		interval = r.HealthInterval
	}

	for i, m := range seen.machines {
		last, asked := seen.plane.views[m.object.UID]
		if !asked || last.of != question(&seen.snapshot.Machines[i]) || !seen.snapshot.Now.Before(last.at.Add(interval)) {
			return true
		}
	}

	return false
}

// question is what a node is asked by.
func question(m *rollout.Machine) string {
	return fmt.Sprint(m.Addresses, m.NodeName, m.RecordedMembers)
}

func (r *Reconciler) ask(ctx context.Context, seen *observation) {
	seen.fresh = true

	if seen.nodes == nil || len(seen.machines) == 0 {
		return
	}

	said := seen.nodes.Observe(ctx)
	seen.snapshot.Now = r.Clock.Now()

	for i, m := range seen.machines {
		node, there := said[m.object.Name]
		if !there {
			node.Err = fmt.Errorf("machine %s: it was not asked", m.object.Name)
		}

		next := view{node: node, of: question(&seen.snapshot.Machines[i]), at: seen.snapshot.Now, heard: seen.snapshot.Now}

		if last, asked := seen.plane.views[m.object.UID]; asked && next.node.Err != nil {
			next.heard = last.heard
		}

		if next.node.Err != nil {
			ctrl.LoggerFrom(ctx).V(3).Info("A node does not say how it is", "Machine", klog.KObj(m.object), "why", next.node.Err.Error())
		}

		seen.plane.views[m.object.UID] = next
	}
}

// workloadNodes are the Nodes of the cluster, read only when a decision may depend on them.
func (r *Reconciler) workloadNodes(ctx context.Context, seen *observation) rollout.Nodes {
	nodes, err := workload.Nodes(ctx, r.ClusterCache, seen.plane.cluster)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(3).Info("The Nodes of the cluster cannot be read", "why", err.Error())

		return rollout.Nodes{}
	}

	return rollout.Nodes{Known: true, Items: nodes}
}

// probe asks, once etcd is bootstrapped, whether the Kubernetes API server answers. That it once has is in the records.
func (r *Reconciler) probe(ctx context.Context, seen *observation) {
	s := &seen.snapshot
	if s.ControlPlane.Initialized || s.ControlPlane.Deleting || seen.cluster == nil || !s.ControlPlane.Bootstrap.Set || !seen.fresh {
		return
	}

	// The only machine of a control plane that goes before the API server has answered goes as one that never served.
	if len(s.Machines) == 1 && s.Machines[0].Deletion != nil {
		return
	}

	running := false
	for i := range s.Machines {
		running = running || s.Machines[i].Etcd.Self != 0
	}

	if !running {
		return
	}

	if err := workload.Answers(ctx, r.Client, seen.plane.cluster); err != nil {
		ctrl.LoggerFrom(ctx).V(3).Info("The Kubernetes API server does not answer yet", "why", err.Error())

		return
	}

	s.ControlPlane.Initialized = true
}

// serving asks, before anything of a new cluster is begun, whether an API server of it answers at its endpoint: whoever brings the secrets of a
// control plane that runs may bring its Machines later, or not at all. Only what the cluster's authority vouches for is an answer.
func (r *Reconciler) serving(ctx context.Context, seen *observation) bool {
	if seen.cluster == nil || seen.bundle == nil || !seen.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return false
	}

	bundle, err := seen.plane.bundle(seen.bundle, r.Secrets.Read)
	if err != nil {
		return false // nothing is begun with it
	}

	if err := workload.Serves(ctx, serverOf(seen.cluster), bundle.Certs.K8s.Crt); err != nil {
		ctrl.LoggerFrom(ctx).V(3).Info("No API server of the cluster answers before etcd is bootstrapped", "why", err.Error())

		return false
	}

	return true
}

// silent is for how long a machine's node has not answered.
func (v view) silent(now time.Time) time.Duration {
	if v.node.Err == nil {
		return 0
	}

	return now.Sub(v.heard)
}

// initialized says whether the Kubernetes API server has ever answered, by any evidence.
func (o *observation) initialized() bool {
	c := &o.snapshot.ControlPlane
	if c.Initialized || c.Bootstrap.Record.Done || c.BundleBootstrap.Record.Done || ptr.Deref(o.controlPlane.Status.Initialization.ControlPlaneInitialized, false) {
		return true
	}

	return slices.ContainsFunc(o.snapshot.Machines, func(m rollout.Machine) bool { return m.ShowsAPIServer() })
}
