// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// Group are machines whose configs differ at most by the machine's name, in a hostname that no patch touches: what a render of one finds
// holds for all of them. Machines of one MachineSet are one group.
type Group struct {
	// Observed is what the caches say of the first of the machines, by name.
	Observed

	// Owners are all of them.
	Owners []metav1.Object

	key string
}

// Groups returns the machines of the namespace that have a TalosConfig, in groups, by the names of their first, and the namespace's
// TalosConfigPatches. All of it is of one state of the caches. A machine whose Cluster does not exist is left out.
func (r *Reader) Groups(ctx context.Context, namespace string) ([]Group, []*machineconfig.Patch, error) {
	settings, err := r.settings(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}

	subjects, err := r.subjects(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}

	named := slices.ContainsFunc(settings.patches, touchesHostname)
	slices.SortFunc(subjects, func(a, b Subject) int { return cmp.Compare(a.Machine.Name, b.Machine.Name) })

	var groups []Group

	index := map[string]int{}

	for _, subject := range subjects {
		key, err := groupKey(subject, named)
		if err != nil {
			return nil, nil, err
		}

		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, Group{Observed: settings.of(subject), key: key})
		}

		groups[i].Owners = append(groups[i].Owners, subject.Owner)
	}

	return groups, settings.patches, nil
}

// touchesHostname says whether a hostname may be more than one value in a document of its own once the patch is applied.
func touchesHostname(patch *machineconfig.Patch) bool {
	spec := &patch.Object().Spec
	sets := func(kind string) bool {
		return kind == string(machineconfigv1alpha1.KindHostnameConfig) || kind == string(machineconfigv1alpha1.KindConfig)
	}

	return slices.ContainsFunc(spec.Documents, func(document machineconfigv1alpha1.Document) bool { return sets(string(document.Kind)) }) ||
		slices.ContainsFunc(spec.Deletions, func(deletion bootstrapv1.PatchDeletion) bool { return sets(deletion.Kind) })
}

// groupKey is the same for machines of one group.
func groupKey(subject Subject, named bool) (string, error) {
	machine := subject.Machine
	hostname := ""

	switch subject.TalosConfig.Spec.Hostname.Source {
	case bootstrapv1.HostnameSourceMachineName:
		hostname = machine.Name
	case bootstrapv1.HostnameSourceInfrastructureMachineName:
		// Whether there is one decides whether the machine renders.
		hostname = cmp.Or(machine.InfrastructureName, "/")
	case bootstrapv1.HostnameSourceAutomatic, "":
	}

	// Names that are DNS labels are equal to every check.
	if !named && len(validation.IsDNS1123Label(hostname)) == 0 {
		hostname = "label"
	}

	machine.Name, machine.InfrastructureName = "", ""

	encoded, err := json.Marshal([]any{
		subject.Cluster.UID, hostname, machine, subject.TalosConfig.Spec, subject.TalosConfig.Status.ConfigContract,
	})
	if err != nil {
		return "", fmt.Errorf("%s %s: encode: %w", subject.Machine.Kind, subject.Machine.Name, err)
	}

	return string(encoded), nil
}

// GroupFingerprint is that of the group's inputs, whatever its machines are called, with the contract that the Cluster is pinned to.
func (r *Reader) GroupFingerprint(ctx context.Context, group Group, pin string) (Fingerprint, error) {
	known, err := r.facts(ctx, group.Observed)
	if err != nil {
		return Fingerprint{}, err
	}

	known.Machine, known.TalosConfig = machineconfig.Machine{}, group.key
	known.Secrets = map[string]any{"pin": pin}

	return known.sum()
}

// subjects are the machines of the namespace that have a TalosConfig and a Cluster. Nothing in them may be changed.
func (r *Reader) subjects(ctx context.Context, namespace string) ([]Subject, error) {
	var (
		in       = client.InNamespace(namespace)
		clusters = &clusterv1.ClusterList{}
		configs  = &bootstrapv1.TalosConfigList{}
		machines = &clusterv1.MachineList{}
		pools    = &clusterv1.MachinePoolList{}
	)

	for _, list := range []client.ObjectList{clusters, configs, machines, pools} {
		if err := r.cache.List(ctx, list, in, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}

	byName := make(map[string]*clusterv1.Cluster, len(clusters.Items))
	for i := range clusters.Items {
		byName[clusters.Items[i].Name] = &clusters.Items[i]
	}

	configByName := make(map[string]*bootstrapv1.TalosConfig, len(configs.Items))
	for i := range configs.Items {
		configByName[configs.Items[i].Name] = &configs.Items[i]
	}

	var subjects []Subject

	add := func(owner metav1.Object, machine machineconfig.Machine, cluster string, bootstrap clusterv1.Bootstrap) {
		ref := bootstrap.ConfigRef
		if ref.APIGroup != bootstrapv1.GroupVersion.Group || ref.Kind != machineconfig.KindTalosConfig || !owner.GetDeletionTimestamp().IsZero() {
			return
		}

		if config, of := configByName[ref.Name], byName[cluster]; config != nil && of != nil {
			subjects = append(subjects, Subject{TalosConfig: config, Cluster: of, Owner: owner, Machine: machine})
		}
	}

	for i := range machines.Items {
		machine := &machines.Items[i]
		add(machine, machineconfig.NewMachine(machine), machine.Spec.ClusterName, machine.Spec.Bootstrap)
	}

	for i := range pools.Items {
		pool := &pools.Items[i]
		add(pool, machineconfig.NewMachinePool(pool), pool.Spec.ClusterName, pool.Spec.Template.Spec.Bootstrap)
	}

	return subjects, nil
}

// Applied returns the patches that apply to the machine, in order, and what is wrong with the selection.
func (o Observed) Applied() ([]*machineconfig.Patch, error) {
	return machineconfig.SelectPatches(o.input())
}
