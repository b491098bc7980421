// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// judgement is what was found in the object and in the Secrets. It holds no value of any.
type judgement struct {
	objectJudgement

	// bundles has what was found for each cluster whose secrets cannot be used, or are not there yet.
	bundles []bundleFinding

	// notices are of bundles that can be used.
	notices prose.Findings
}

// objectJudgement is what was found in the object and the Secrets of its registries.
type objectJudgement struct {
	// warnings and registries are of spec.registries.
	warnings, registries []string

	// other faults are of the rest of the object.
	other []string
}

type bundleFinding struct {
	reason, cluster, message string

	// again says that nothing which is watched tells when it is over.
	again bool
}

type rememberedObject struct {
	state objectState
	found objectJudgement
}

type rememberedCluster struct {
	state clusterState
	found []bundleFinding
}

// judge looks into the Secrets, each only if it or what it is judged by has changed since the last time.
func (r *Reconciler) judge(ctx context.Context, seen observation) (judgement, error) {
	var (
		found judgement
		err   error
	)

	if found.objectJudgement, err = r.judgeObject(ctx, seen); err != nil {
		return found, err
	}

	read := r.reader(seen)

	for i := range seen.clusters {
		findings, err := r.judgeCluster(ctx, seen.config, &seen.clusters[i], seen.states[i], read)
		if err != nil {
			return found, err
		}

		found.bundles = append(found.bundles, findings...)

		notice, err := r.Secrets.Notice(ctx, &seen.clusters[i])
		if err != nil {
			return found, err
		}

		if notice != "" {
			found.notices.Add("Cluster "+seen.clusters[i].Name, notice)
		}
	}

	return found, nil
}

func (r *Reconciler) judgeObject(ctx context.Context, seen observation) (objectJudgement, error) {
	cached, _ := r.objects.Get(seen.config.UID)
	if last, ok := cached.(rememberedObject); ok && last.state.equal(seen.object) {
		return last.found, nil
	}

	var found objectJudgement

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

	r.objects.Add(seen.config.UID, rememberedObject{seen.object, found})

	return found, nil
}

// judgeCluster looks at the secrets of one cluster.
func (r *Reconciler) judgeCluster(ctx context.Context, config *bootstrapv1.TalosClusterConfig, cluster *clusterv1.Cluster, state clusterState,
	read secretReader,
) ([]bundleFinding, error) {
	key := clusterKey{config.UID, cluster.UID}

	cached, _ := r.secrets.Get(key)
	if last, ok := cached.(rememberedCluster); ok && last.state.equal(state) {
		return last.found, nil
	}

	made, faults, err := r.Secrets.Check(ctx, cluster, config, func(ctx context.Context, name string) (*corev1.Secret, error) {
		return read(ctx, name, state.versionOf(name))
	})
	if err != nil {
		return nil, err
	}

	var found []bundleFinding

	// Whether Secrets of an earlier cluster are in the way depends on machines, whose number changes no version; whether the bundle to copy is
	// another Cluster's, on that one's.
	unsteady := !made && config.Spec.SecretsRef != nil
	for _, fault := range faults {
		found = append(found, bundleFinding{fault.Reason, cluster.Name, fault.Error(), fault.Again})
		unsteady = unsteady || fault.Leftover || fault.Again
	}

	if !made && len(faults) == 0 {
		found = append(found, bundleFinding{
			bootstrapv1.SecretsBundleNotCreatedReason, cluster.Name,
			fmt.Sprintf("secret %s is made with the cluster's first machine", secrets.BundleName(cluster.Name)),
			config.Spec.SecretsRef != nil,
		})
	}

	if !unsteady {
		r.secrets.Add(key, rememberedCluster{state, found})
	}

	return found, nil
}

// secretReader reads a Secret in a version, or a newer one; nil for the version of one that does not exist.
type secretReader func(ctx context.Context, name string, version inputs.Version) (*corev1.Secret, error)

// reader reads each Secret at most once. What the cache has in this version is not read live.
func (r *Reconciler) reader(seen observation) secretReader {
	known := map[string]*corev1.Secret{}

	return func(ctx context.Context, name string, version inputs.Version) (*corev1.Secret, error) {
		if version == (inputs.Version{}) {
			return nil, nil
		}

		if secret, ok := known[name]; ok {
			return secret, nil
		}

		key := client.ObjectKey{Namespace: seen.config.Namespace, Name: name}
		secret := &corev1.Secret{}

		// The cache has values of a cluster's own Secrets only.
		_, own := secrets.ClusterOf(name)

		err := r.Client.Get(ctx, key, secret)
		if !own || err != nil || inputs.ContentVersion(secret) != version {
			secret = &corev1.Secret{}
			err = r.APIReader.Get(ctx, key, secret)
		}

		if client.IgnoreNotFound(err) != nil {
			return nil, &secrets.ReadError{Object: "Secret " + name, Err: err}
		}

		if err != nil {
			secret = nil
		}

		known[name] = secret

		return secret, nil
	}
}
