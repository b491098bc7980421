// SPDX-License-Identifier: Apache-2.0

package rivals_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/test/scale"
)

// endState is what must be true when all is quiet.
type endState struct {
	world   *scale.World
	core    *coreStandIn
	history *history
}

// objects of the namespace, by name.
type objects struct {
	machines map[string]*clusterv1.Machine
	configs  map[string]*bootstrapv1.TalosConfig
	secrets  map[string]*corev1.Secret
}

func (e *endState) read(ctx context.Context) (objects, error) {
	read := objects{map[string]*clusterv1.Machine{}, map[string]*bootstrapv1.TalosConfig{}, map[string]*corev1.Secret{}}
	machineList, configList, secretList := &clusterv1.MachineList{}, &bootstrapv1.TalosConfigList{}, &corev1.SecretList{}

	for _, list := range []client.ObjectList{machineList, configList, secretList} {
		if err := e.world.Admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return read, err
		}
	}

	for i := range machineList.Items {
		read.machines[machineList.Items[i].Name] = &machineList.Items[i]
	}

	for i := range configList.Items {
		read.configs[configList.Items[i].Name] = &configList.Items[i]
	}

	for i := range secretList.Items {
		read.secrets[secretList.Items[i].Name] = &secretList.Items[i]
	}

	return read, nil
}

// ofCluster says whether a Secret is one of a cluster's own.
func ofCluster(name string) bool {
	for i := range clusters {
		if slices.Contains(clusterSecrets(fmt.Sprintf("c%d", i)), name) {
			return true
		}
	}

	return false
}

func clusterSecrets(cluster string) []string {
	return append(secrets.AuthorityNames(cluster), secrets.BundleName(cluster), secrets.TalosconfigName(cluster))
}

// reached says what is still missing: a Machine without data, something of a Machine that is gone.
func (e *endState) reached(ctx context.Context) error {
	if err := e.core.handOver(ctx); err != nil {
		return err
	}

	now, err := e.read(ctx)
	if err != nil {
		return err
	}

	for name, machine := range now.machines {
		config := now.configs[name]

		switch {
		case config == nil:
			return fmt.Errorf("machine %s has no TalosConfig", name)
		case machine.Spec.Bootstrap.DataSecretName == nil || !conditions.IsTrue(config, bootstrapv1.TalosConfigReadyCondition):
			return fmt.Errorf("machine %s has no data yet: %v", name, config.Status.Conditions)
		}
	}

	for name := range now.configs {
		if now.machines[name] == nil {
			return fmt.Errorf("TalosConfig %s is left of a Machine that is gone", name)
		}
	}

	for name := range now.secrets {
		if now.machines[name] == nil && !ofCluster(name) {
			return fmt.Errorf("secret %s is left of a Machine that is gone", name)
		}
	}

	return nil
}

// check proves the end state, and returns how many Machines there are.
func (e *endState) check(ctx context.Context) (int, error) {
	now, err := e.read(ctx)
	if err != nil {
		return 0, err
	}

	there := map[types.UID]bool{}
	for _, config := range now.configs {
		there[config.UID] = true
	}

	faults := []error{e.history.check(ofCluster, there)}
	bundles := map[string]*secrets.Bundle{}

	for i := range clusters {
		cluster := fmt.Sprintf("c%d", i)

		bundle, err := checkCluster(now, cluster)
		if err != nil {
			faults = append(faults, err)

			continue
		}

		bundles[cluster] = bundle
	}

	for _, machine := range now.machines {
		faults = append(faults, e.checkMachine(now, machine, bundles[machine.Spec.ClusterName]))
	}

	return len(now.machines), errors.Join(faults...)
}

// checkCluster returns the cluster's bundle, if everything that is made of it fits.
func checkCluster(now objects, cluster string) (*secrets.Bundle, error) {
	for _, name := range clusterSecrets(cluster) {
		if now.secrets[name] == nil {
			return nil, fmt.Errorf("secret %s does not exist", name)
		}
	}

	bundle, contract, err := secrets.FromSecret(now.secrets[secrets.BundleName(cluster)], machinerysecrets.NewClock())
	if err != nil {
		return nil, err
	}

	if err = secrets.Check(bundle, contract); err != nil {
		return nil, err
	}

	for _, name := range secrets.AuthorityNames(cluster) {
		if err = secrets.CheckSupplied(bundle, cluster, now.secrets[name]); err != nil {
			return nil, err
		}
	}

	talosconfig := now.secrets[secrets.TalosconfigName(cluster)]
	if !holds(talosconfig.Data[secrets.TalosconfigKey], bundle.Certs.OS.Crt) {
		return nil, fmt.Errorf("secret %s does not trust the bundle's certificate authority of Talos", talosconfig.Name)
	}

	return bundle, nil
}

// checkMachine says so when the Machine's data Secret is not the one that was handed over, or does not fit the cluster's bundle.
func (e *endState) checkMachine(now objects, machine *clusterv1.Machine, bundle *secrets.Bundle) error {
	secret := now.secrets[machine.Name]

	switch first, ok := e.core.handedOver(machine); {
	case secret == nil || bundle == nil:
		return fmt.Errorf("machine %s has no data Secret, or its cluster no bundle", machine.Name)
	case !ok:
		return fmt.Errorf("machine %s: the name of its data Secret was set by somebody else", machine.Name)
	case first != handedOver{secret.UID, sha256.Sum256(secret.Data["value"])}:
		return fmt.Errorf("machine %s: secret %s is not what it was when the Machine got its name", machine.Name, secret.Name)
	}

	if err := checkOwner(secret, now.configs[machine.Name].UID); err != nil {
		return err
	}

	if err := checkConfig(secret.Data["value"], bundle); err != nil {
		return fmt.Errorf("secret %s: %w", secret.Name, err)
	}

	return nil
}

func checkOwner(secret *corev1.Secret, config types.UID) error {
	if owners := secret.OwnerReferences; len(owners) != 1 || owners[0].UID != config {
		return fmt.Errorf("secret %s has the owners %v, want the TalosConfig %s alone", secret.Name, secret.OwnerReferences, config)
	}

	return nil
}

// checkConfig loads the config as a node does, and looks for everything by which a node and its cluster know each other.
func checkConfig(config []byte, bundle *secrets.Bundle) error {
	if _, err := configloader.NewFromBytes(config); err != nil {
		return err
	}

	proofs := map[string][]byte{
		"cluster ID":                          []byte(bundle.Cluster.ID),
		"cluster secret":                      []byte(bundle.Cluster.Secret),
		"machine token":                       []byte(bundle.TrustdInfo.Token),
		"bootstrap token":                     []byte(bundle.Secrets.BootstrapToken),
		"certificate authority of Talos":      bundle.Certs.OS.Crt,
		"certificate authority of Kubernetes": bundle.Certs.K8s.Crt,
	}

	for name, value := range proofs {
		if len(value) == 0 || !holds(config, value) {
			return fmt.Errorf("the %s is not the bundle's", name)
		}
	}

	return nil
}

// holds says whether the config has the value in it: as it is, encoded as older documents have certificates, or with the lines indented as
// newer ones have them.
func holds(config, value []byte) bool {
	if bytes.Contains(config, []byte(base64.StdEncoding.EncodeToString(value))) {
		return true
	}

	for line := range bytes.Lines(value) {
		if !bytes.Contains(config, bytes.TrimSpace(line)) {
			return false
		}
	}

	return true
}
