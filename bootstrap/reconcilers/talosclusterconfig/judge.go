// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// judgement is what was found in the object and in the Secrets. It holds no value of any.
type judgement struct {
	// warnings and registries are of spec.registries.
	warnings, registries []string

	// other faults are of the rest of the object.
	other []string

	// bundles has a finding for each cluster whose bundle cannot be used, or is not there yet.
	bundles []bundleFinding
}

type bundleFinding struct{ reason, message string }

type remembered struct {
	state state
	found judgement
}

// judge reads the Secrets, unless nothing has changed since the last time.
func (r *Reconciler) judge(ctx context.Context, seen observation) (judgement, error) {
	cached, _ := r.judged.Get(seen.config.UID)
	if last, ok := cached.(remembered); ok && last.state.equal(seen.state) {
		return last.found, nil
	}

	var found judgement

	warnings, err := machineconfig.CheckClusterConfig(seen.config)
	found.warnings = warnings

	_, resolveErr := r.Inputs.Live(seen.config.Namespace).Credentials(ctx, seen.config)
	if resolveErr != nil && machineconfig.ReasonOf(resolveErr) == "" {
		return found, resolveErr
	}

	for _, fault := range machineconfig.Errors(errors.Join(err, resolveErr)) {
		if strings.HasPrefix(fault.Source.Path, "spec.registries") {
			found.registries = append(found.registries, fault.Error())
		} else {
			found.other = append(found.other, fault.Error())
		}
	}

	for i := range seen.clusters {
		finding, err := r.judgeBundle(ctx, seen.config, &seen.clusters[i])
		if err != nil {
			return found, err
		}

		if finding != (bundleFinding{}) {
			found.bundles = append(found.bundles, finding)
		}
	}

	r.judged.Add(seen.config.UID, remembered{seen.state, found})

	return found, nil
}

// judgeBundle looks at the bundle of one cluster, and at the one that it is to be copied from.
func (r *Reconciler) judgeBundle(ctx context.Context, config *bootstrapv1.TalosClusterConfig, cluster *clusterv1.Cluster) (bundleFinding, error) {
	name := secrets.BundleName(cluster.Name)

	bundle, exists, fault, err := r.readBundle(ctx, cluster.Namespace, name)
	if err != nil {
		return bundleFinding{}, err
	}

	if fault != nil {
		return bundleFinding{bootstrapv1.SecretsBundleInvalidReason, fmt.Sprintf("Cluster %s: %s", cluster.Name, fault)}, nil
	}

	if !exists {
		lost, err := r.lost(ctx, cluster)
		if err != nil {
			return bundleFinding{}, err
		}

		if lost != "" {
			return bundleFinding{bootstrapv1.SecretsBundleMissingReason, fmt.Sprintf("Cluster %s: %s", cluster.Name, lost)}, nil
		}
	}

	missing := bundleFinding{}
	if !exists {
		missing = bundleFinding{
			bootstrapv1.SecretsBundleNotCreatedReason,
			fmt.Sprintf("Cluster %s: secret %s is made with the cluster's first machine", cluster.Name, name),
		}
	}

	if config.Spec.SecretsRef == nil {
		return missing, nil
	}

	theirs, given, fault, err := r.readBundle(ctx, cluster.Namespace, config.Spec.SecretsRef.Name)

	switch {
	case err != nil:
		return bundleFinding{}, err
	case fault != nil:
		return bundleFinding{bootstrapv1.SecretsBundleInvalidReason, fmt.Sprintf("spec.secretsRef: %s", fault)}, nil
	case !given && !exists:
		return bundleFinding{
			bootstrapv1.SecretsBundleInvalidReason,
			fmt.Sprintf("spec.secretsRef: secret %q does not exist in the namespace: create it", config.Spec.SecretsRef.Name),
		}, nil
	case !given || !exists:
		return missing, nil
	}

	if err := secrets.CheckSameBundle(bundle, config.Spec.SecretsRef.Name, theirs); err != nil {
		return bundleFinding{
			bootstrapv1.SecretsBundleMismatchReason,
			fmt.Sprintf("Cluster %s: spec.secretsRef: %s; Secret %s was copied from it once", cluster.Name, err, name),
		}, nil
	}

	return bundleFinding{}, nil
}

// readBundle reads a Secret with a bundle live. A fault is one that a user must mend.
func (r *Reconciler) readBundle(ctx context.Context, namespace, name string) (bundle *secrets.Bundle, exists bool, fault, err error) {
	secret := &corev1.Secret{}

	err = r.APIReader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, false, nil, nil
	}

	if err != nil {
		return nil, false, nil, fmt.Errorf("secret %s: read: %w", name, err)
	}

	bundle, _, fault = secrets.FromSecret(secret, r.Clock)

	return bundle, true, fault, nil
}
