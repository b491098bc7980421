// SPDX-License-Identifier: Apache-2.0

package rivals_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// handedOver is the state of a data Secret at the moment when its name was set on the Machine: what a machine boots from.
type handedOver struct {
	secret types.UID
	config [sha256.Size]byte
}

// coreStandIn plays the part of Cluster API's core manager that the bootstrap contract is about: it sets the name of the data Secret on
// the Machine when the TalosConfig says that the Secret is there.
type coreStandIn struct {
	client client.Client

	mu   sync.Mutex
	seen map[types.UID]handedOver // by Machine
}

func newCoreStandIn(c client.Client) *coreStandIn {
	return &coreStandIn{client: c, seen: map[types.UID]handedOver{}}
}

func (c *coreStandIn) run(ctx context.Context, over <-chan struct{}) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()

	for {
		if err := c.handOver(ctx); err != nil {
			return err
		}

		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// handOver looks at all Machines once.
func (c *coreStandIn) handOver(ctx context.Context) error {
	list := &clusterv1.MachineList{}
	if err := c.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}

	for i := range list.Items {
		machine := &list.Items[i]
		if machine.Spec.Bootstrap.DataSecretName != nil {
			continue
		}

		// What is deleted in the meantime is none of the stand-in's business.
		if err := c.handOverTo(ctx, machine); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("machine %s: %w", machine.Name, err)
		}
	}

	return nil
}

func (c *coreStandIn) handOverTo(ctx context.Context, machine *clusterv1.Machine) error {
	config := &bootstrapv1.TalosConfig{}
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(machine), config); err != nil {
		return err
	}

	if !ptr.Deref(config.Status.Initialization.DataSecretCreated, false) {
		return nil
	}

	if len(config.OwnerReferences) != 1 || config.OwnerReferences[0].UID != machine.UID {
		return nil
	}

	// A TalosConfig that says so has a Secret, whatever happens to the managers.
	secret := &corev1.Secret{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: config.Status.DataSecretName}, secret); err != nil {
		return err
	}

	before := machine.DeepCopy()
	machine.Spec.Bootstrap.DataSecretName = &config.Status.DataSecretName

	if err := c.client.Patch(ctx, machine, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.seen[machine.UID] = handedOver{secret.UID, sha256.Sum256(secret.Data["value"])}

	return nil
}

func (c *coreStandIn) handedOver(machine *clusterv1.Machine) (handedOver, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	found, ok := c.seen[machine.UID]

	return found, ok
}
