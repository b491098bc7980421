// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// observation is what is known before anything is decided. All of it comes from the cache, but for a Secret that the cache does not select.
type observation struct {
	config *bootstrapv1.TalosConfig

	// owner is nil while no Machine or MachinePool owns the TalosConfig.
	owner *owner

	// cluster is nil while the Cluster does not exist.
	cluster *clusterv1.Cluster

	// secret is the Secret with the TalosConfig's name, nil when there is none. It is looked for last: see act.
	secret *corev1.Secret
}

// logValues name what belongs to the TalosConfig, as Cluster API's logs do.
func (o observation) logValues() []any {
	if o.owner == nil {
		return nil
	}

	return []any{
		o.owner.machine.Kind, klog.KObj(o.owner.object),
		machineconfig.KindCluster, klog.KRef(o.config.Namespace, o.owner.clusterName),
	}
}

// owner is what matters of a Machine or MachinePool.
type owner struct {
	object      client.Object
	machine     machineconfig.Machine
	clusterName string

	// dataSecretName is what Cluster API has taken over from the TalosConfig's status.
	dataSecretName string

	// joined means that the machine is a node, so that it never reads its bootstrap data again. A MachinePool may get a
	// new instance at any time.
	joined bool
}

// String names it, as "Machine w-1".
func (o *owner) String() string { return o.machine.Kind + " " + o.machine.Name }

func (r *Reconciler) observe(ctx context.Context, config *bootstrapv1.TalosConfig) (observation, error) {
	seen := observation{config: config}

	var err error
	if seen.owner, err = r.owner(ctx, config); err != nil {
		return seen, err
	}

	if seen.owner != nil {
		cluster := &clusterv1.Cluster{}

		err = r.Client.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: seen.owner.clusterName}, cluster)
		switch {
		case err == nil:
			seen.cluster = cluster
		case !apierrors.IsNotFound(err):
			return seen, fmt.Errorf("cluster %s: %w", seen.owner.clusterName, err)
		}
	}

	return seen, nil
}

// secret returns the Secret with the TalosConfig's name, or nil. One without the label is in no cache but that of metadata, and is read live.
func (r *Reconciler) secret(ctx context.Context, config *bootstrapv1.TalosConfig) (*corev1.Secret, error) {
	secret, key := &corev1.Secret{}, client.ObjectKeyFromObject(config)

	err := r.Client.Get(ctx, key, secret)
	if err == nil {
		return secret, nil
	}

	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("secret %s: %w", config.Name, err)
	}

	version, err := r.Inputs.Version(ctx, config.Namespace, machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: config.Name})
	if version == (inputs.Version{}) || err != nil {
		return nil, err
	}

	err = r.APIReader.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, &secrets.ReadError{Object: "Secret " + config.Name, Err: err}
	}

	return secret, nil
}

// owner returns the Machine or MachinePool that owns the TalosConfig, or nil. An owner reference to an object that the
// cache does not have yet counts as none: its arrival wakes the TalosConfig.
func (r *Reconciler) owner(ctx context.Context, config *bootstrapv1.TalosConfig) (*owner, error) {
	machine, err := util.GetOwnerMachine(ctx, r.Client, config.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("owner Machine: %w", err)
	}

	if err == nil && machine != nil {
		return machineOwner(machine), nil
	}

	pool, err := util.GetOwnerMachinePool(ctx, r.Client, config.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("owner MachinePool: %w", err)
	}

	if err == nil && pool != nil {
		return poolOwner(pool), nil
	}

	return nil, nil
}

func machineOwner(machine *clusterv1.Machine) *owner {
	return &owner{
		object:         machine,
		machine:        machineconfig.NewMachine(machine),
		clusterName:    machine.Spec.ClusterName,
		dataSecretName: ptr.Deref(machine.Spec.Bootstrap.DataSecretName, ""),
		joined:         machine.Status.NodeRef.IsDefined(),
	}
}

func poolOwner(pool *clusterv1.MachinePool) *owner {
	return &owner{
		object:         pool,
		machine:        machineconfig.NewMachinePool(pool),
		clusterName:    pool.Spec.ClusterName,
		dataSecretName: ptr.Deref(pool.Spec.Template.Spec.Bootstrap.DataSecretName, ""),
	}
}

// holder says whom a Secret with the TalosConfig's name belongs to.
type holder int

const (
	// holderConfig means this TalosConfig.
	holderConfig holder = iota

	// holderLost means this TalosConfig before its reference got lost: Cluster API boots the machine from the Secret, but
	// a restored backup or a move gave the TalosConfig another UID.
	holderLost

	// holderUser means that Cluster API boots the machine from the Secret, which belongs to nobody and was not rendered here.
	holderUser

	// holderOther means something else: another object, a user, or an earlier TalosConfig of the same name.
	holderOther
)

// holderOf says whom the Secret belongs to. That the names are equal proves nothing: a Machine may have been deleted and
// made again under its name before its Secret was collected, and that Secret has the config of the old one. Nor does it that the machine
// boots from a Secret without an owner: a user may have written it, and it would be written over. The hash says that it was rendered here.
func holderOf(secret *corev1.Secret, config *bootstrapv1.TalosConfig, owner *owner) holder {
	controller := metav1.GetControllerOf(secret)

	if controller != nil && controller.UID == config.UID {
		return holderConfig
	}

	switch bootsFromIt := owner != nil && owner.dataSecretName == secret.Name; {
	case !bootsFromIt:
		return holderOther
	case controller != nil && isFormerSelf(*controller, config):
		return holderLost
	case controller != nil:
		return holderOther
	case descriptionOf(secret).hash != "":
		return holderLost
	default:
		return holderUser
	}
}

// isFormerSelf says whether the reference is to a TalosConfig of the name, whatever its UID.
func isFormerSelf(ref metav1.OwnerReference, config *bootstrapv1.TalosConfig) bool {
	return clustersecrets.IsTalosConfig(ref) && ref.Name == config.Name
}
