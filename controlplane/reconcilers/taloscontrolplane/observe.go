// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// observation is what is known of a control plane before anything is decided.
type observation struct {
	controlPlane *controlplanev1.TalosControlPlane

	// cluster is nil when it does not exist; clusterName is known all the same, if the control plane has ever belonged to it.
	cluster     *clusterv1.Cluster
	clusterName string

	// machines are the control-plane Machines of the cluster, whoever owns them, by name.
	machines []*machine

	// all are the Machines of the cluster, workers too. They are the cache's own, and are not changed.
	all []clusterv1.Machine

	// bundle is the Secret with the cluster's secrets bundle, nil when there is none; secretsFault what is wrong with the secrets.
	bundle       *corev1.Secret
	secretsFault *clustersecrets.FaultError

	// kubeconfigFault is what is wrong with the kubeconfig, if that was looked at.
	kubeconfigFault  error
	kubeconfigLooked bool

	// kubeconfigNote is what there is to say about a kubeconfig with which nothing is wrong.
	kubeconfigNote string

	// nodes ask nodes; nil when nobody can.
	nodes nodes

	// disconnected says why nobody can ask nodes although the secrets are there.
	disconnected string

	// fresh is true when every node was asked in this reconcile.
	fresh bool

	// invalid says that an annotation of ours cannot be read.
	invalid error

	// released is true when the control plane has been let go: there is nothing to report on.
	released bool

	// template is the metadata of what machines are made from, nil when that does not exist.
	template *metav1.PartialObjectMetadata

	// missing is what the control plane refers to and does not exist.
	missing string

	// unread are the kinds that could not be read in this reconcile, with the reason: each is tried once.
	unread map[schema.GroupKind]error

	plane    *plane
	snapshot rollout.Snapshot
}

// machine is a control-plane Machine with what belongs to it.
type machine struct {
	// object has the conditions as they are now; stored is as the cache has it.
	object, stored *clusterv1.Machine

	// config is nil when it does not exist, or is of another provider.
	config *bootstrapv1.TalosConfig

	// infrastructure is the metadata of the infrastructure machine, nil when it does not exist.
	infrastructure *metav1.PartialObjectMetadata
}

func (r *Reconciler) cluster(ctx context.Context, tcp *controlplanev1.TalosControlPlane) (*clusterv1.Cluster, error) {
	cluster, err := util.GetOwnerCluster(ctx, r.Client, tcp.ObjectMeta)

	switch {
	case err == nil:
		return cluster, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	default:
		return nil, fmt.Errorf("cluster of TalosControlPlane %s: %w", tcp.Name, err)
	}
}

// clusterName is the name of a control plane's Cluster, also when that is gone.
func clusterName(tcp *controlplanev1.TalosControlPlane, cluster *clusterv1.Cluster) string {
	if cluster != nil {
		return cluster.Name
	}

	for _, ref := range tcp.OwnerReferences {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		if group == clusterv1.GroupVersion.Group && ref.Kind == clusterv1.ClusterKind {
			return ref.Name
		}
	}

	return tcp.Labels[clusterv1.ClusterNameLabel]
}

// observe reads everything, once. An unreachable node is no error.
func (r *Reconciler) observe(ctx context.Context, cluster *clusterv1.Cluster, tcp *controlplanev1.TalosControlPlane) (*observation, error) {
	seen := &observation{
		controlPlane: tcp, cluster: cluster, clusterName: clusterName(tcp, cluster),
		plane: r.memory.of(client.ObjectKeyFromObject(tcp), tcp.UID),
	}
	seen.plane.cluster = types.NamespacedName{Namespace: tcp.Namespace, Name: seen.clusterName}

	if err := r.observeMachines(ctx, seen); err != nil {
		return nil, err
	}

	if err := r.observeSecrets(ctx, seen); err != nil {
		return nil, err
	}

	if err := r.observeTemplate(ctx, seen); err != nil {
		return nil, err
	}

	workers, err := r.workers(ctx, seen)
	if err != nil {
		return nil, err
	}

	seen.snapshot = rollout.Snapshot{Now: r.Clock.Now(), Cluster: clusterOf(cluster), ControlPlane: seen.controlPlaneOf(), Workers: workers}
	seen.readMachines()

	if err := r.connect(ctx, seen); err != nil {
		// As if no node answered: the control plane says so, and is looked at again.
		ctrl.LoggerFrom(ctx).Error(err, "Cannot connect to the nodes")

		seen.disconnected = err.Error()
	}

	r.inspect(ctx, seen, false)

	return seen, nil
}

func (r *Reconciler) observeMachines(ctx context.Context, seen *observation) error {
	if seen.clusterName == "" {
		return nil
	}

	list := &clusterv1.MachineList{}

	// Of workers only names and addresses are of interest, so they are not copied.
	err := r.Client.List(ctx, list, client.InNamespace(seen.controlPlane.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: seen.clusterName}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}

	seen.all = list.Items
	there := map[types.UID]bool{}

	for i := range list.Items {
		if !util.IsControlPlaneMachine(&list.Items[i]) {
			continue
		}

		m := &machine{object: list.Items[i].DeepCopy(), stored: list.Items[i].DeepCopy()}
		there[m.object.UID] = true

		seen.machines = append(seen.machines, m)

		// Who goes need not be compared with anything, and must go also when the kinds of its machines are gone.
		if !seen.controlPlane.DeletionTimestamp.IsZero() {
			continue
		}

		if m.config, err = r.config(ctx, m.object); err != nil {
			return err
		}

		// What is not known makes no difference, and must not keep a member from leaving.
		if m.infrastructure, err = r.infrastructure(ctx, seen, m.object); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot tell what a machine was made from", "Machine", klog.KObj(m.object))
		}

		if err := ctx.Err(); err != nil {
			return err
		}
	}

	slices.SortFunc(seen.machines, func(a, b *machine) int { return strings.Compare(a.object.Name, b.object.Name) })
	seen.plane.keep(there)

	return nil
}

// config is a Machine's TalosConfig, or nil.
func (r *Reconciler) config(ctx context.Context, machine *clusterv1.Machine) (*bootstrapv1.TalosConfig, error) {
	if !hasTalosConfig(machine) {
		return nil, nil
	}

	config := &bootstrapv1.TalosConfig{}

	err := r.Client.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.Bootstrap.ConfigRef.Name}, config)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("TalosConfig of Machine %s: %w", machine.Name, err)
	}

	return config, nil
}

func hasTalosConfig(machine *clusterv1.Machine) bool {
	ref := machine.Spec.Bootstrap.ConfigRef

	return ref.APIGroup == bootstrapv1.GroupVersion.Group && ref.Kind == talosConfigKind
}

// workers are the names of what else there is of machines. They matter only when the control plane goes.
func (r *Reconciler) workers(ctx context.Context, seen *observation) ([]string, error) {
	if seen.controlPlane.DeletionTimestamp.IsZero() || seen.clusterName == "" {
		return nil, nil
	}

	var names []string

	for i := range seen.all {
		if !util.IsControlPlaneMachine(&seen.all[i]) {
			names = append(names, seen.all[i].Name)
		}
	}

	pools := &clusterv1.MachinePoolList{}

	err := r.Client.List(ctx, pools, client.InNamespace(seen.controlPlane.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: seen.clusterName}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list MachinePools: %w", err)
	}

	for i := range pools.Items {
		names = append(names, pools.Items[i].Name)
	}

	slices.Sort(names)

	return names, nil
}

// clusterOf is what the Cluster says.
func clusterOf(cluster *clusterv1.Cluster) *rollout.Cluster {
	if cluster == nil {
		return nil
	}

	out := &rollout.Cluster{
		Name: cluster.Name, Deleting: !cluster.DeletionTimestamp.IsZero(), Paused: ptr.Deref(cluster.Spec.Paused, false),
		InfrastructureProvisioned: ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false),
		Endpoint:                  cluster.Spec.ControlPlaneEndpoint.IsValid(),
		UpgradeStep:               cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation],
	}

	if cluster.Spec.Topology.IsDefined() {
		out.TopologyVersion = cluster.Spec.Topology.Version
	}

	for _, domain := range cluster.Status.FailureDomains {
		if ptr.Deref(domain.ControlPlane, false) {
			out.FailureDomains = append(out.FailureDomains, domain.Name)
		}
	}

	return out
}

// controlPlaneOf is what the TalosControlPlane says, and what is known of the cluster's secrets.
func (o *observation) controlPlaneOf() rollout.ControlPlane {
	tcp := o.controlPlane
	record, set := tcp.Annotations[controlplanev1.BootstrapAnnotation]

	out := rollout.ControlPlane{
		Name: tcp.Name, Paused: annotations.HasPaused(tcp), Deleting: !tcp.DeletionTimestamp.IsZero(), Spec: tcp.Spec,
		Orphaning:   controllerutil.ContainsFinalizer(tcp, metav1.FinalizerOrphanDependents),
		Initialized: ptr.Deref(tcp.Status.Initialization.ControlPlaneInitialized, false),
		Bootstrap:   rollout.ParseBootstrapMark(record, set),
	}

	if o.cluster != nil {
		out.Initialized = out.Initialized || ptr.Deref(o.cluster.Status.Initialization.ControlPlaneInitialized, false)

		// What answered at another endpoint says nothing of this one.
		endpoint, served := tcp.Annotations[controlplanev1.ServedElsewhereAnnotation]
		out.ServedElsewhere = served && endpoint == o.cluster.Spec.ControlPlaneEndpoint.String()
	}

	// What is left of an earlier Cluster of the name, and about to go, says nothing of this one: it would be initialized for ever, without etcd.
	if o.bundle != nil && (o.secretsFault == nil || !o.secretsFault.Leftover) {
		record, set := o.bundle.Annotations[controlplanev1.BootstrapAnnotation]
		out.BundleBootstrap = rollout.ParseBootstrapMark(record, set)
	}

	if o.secretsFault != nil {
		out.SecretsProblem = o.secretsFault.Error()
	}

	if value, ok := tcp.Annotations[controlplanev1.RemediationInProgressAnnotation]; ok {
		var err error
		if out.Remediation, err = rollout.ParseRemediationRecord(value); err != nil {
			o.invalid = fmt.Errorf("annotation %s of TalosControlPlane %s: %w", controlplanev1.RemediationInProgressAnnotation, tcp.Name, err)
		}
	}

	return out
}

// readMachines puts into the snapshot what the stored objects say of the machines.
func (o *observation) readMachines() {
	contract := ""
	if o.bundle != nil {
		contract = o.bundle.Annotations[secrets.ConfigContractAnnotation]
	}

	for _, m := range o.machines {
		stored := rollout.Stored{Machine: m.object, Config: m.config, Contract: contract}
		if m.infrastructure != nil {
			stored.InfrastructureAnnotations = m.infrastructure.Annotations
		}

		out, err := rollout.MachineOf(&o.controlPlane.Spec, o.controlPlane.UID, stored, o.snapshot.Now)
		if err != nil {
			o.invalid = errors.Join(o.invalid, err)
		}

		// A machine of another bootstrap provider has no Talos that is ours.
		out.Orphan = out.Orphan && hasTalosConfig(m.object)
		out.LeaveFailed = o.plane.leaveFailed[m.object.UID]
		out.BootstrapCalled = o.plane.bootstraps[m.object.UID]
		out.ForwardFailed = o.plane.forwards[m.object.UID] >= maxForwards
		o.snapshot.Machines = append(o.snapshot.Machines, out)
	}
}

// machine finds a control-plane Machine by its name.
func (o *observation) machine(name string) (*machine, error) {
	for _, m := range o.machines {
		if m.object.Name == name {
			return m, nil
		}
	}

	return nil, fmt.Errorf("machine %s: it does not exist", name)
}
