// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/cli/inventory"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/convert"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// trialCluster is the cluster, and the namespace, of the machines that a conversion is rendered for.
const trialCluster = "trial"

// renderAlone renders new machines with the patch and nothing else.
func (o *convertOptions) renderAlone(result *convert.Result, found *findings) error {
	contract, err := version.ParseContract(o.contract)
	if err != nil {
		return err
	}

	kubernetes, err := version.NewestKubernetes(contract.Talos())
	if err != nil {
		return err
	}

	// An image of the patch may be of an older one: then the patch is for machines of that version.
	if pinned, ok := machineconfig.ParsePatch(result.Patch).Kubernetes(); ok && version.CheckKubernetes(contract.Talos(), pinned) == nil {
		kubernetes = pinned
	}

	set := trialSet(result, contract)

	for _, machineType := range machineTypes {
		if o.machineType == "" || o.machineType == machineType {
			set.Machines = append(set.Machines, trialMachine(machineType, kubernetes))
		}
	}

	subjects, _, err := inventory.Subjects(set)
	if err != nil {
		return err
	}

	renderer := inventory.NewRenderer(set)

	for _, subject := range subjects {
		rendered, err := renderer.Render(subject, true)
		if err != nil {
			addTrial(result, found, subject, err)

			continue
		}

		for _, warning := range rendered.Warnings {
			found.add(Finding{Severity: SeverityWarning, Message: warning}, subject.Machine.Name)
		}

		for _, source := range rendered.Provenance.Ineffective {
			if place, ok := result.Find(source.Path); ok && source.Kind == machineconfig.KindTalosConfigPatch {
				finding := placed(place, fmt.Sprintf("changes nothing in the config of a new machine (config contract %s)", contract))
				finding.Severity = SeverityWarning
				found.add(finding, subject.Machine.Name)
			}
		}
	}

	return nil
}

// trialSet is a cluster with the patch.
func trialSet(result *convert.Result, contract version.Contract) *manifest.Set {
	patch := result.Patch.DeepCopy()
	patch.Namespace, patch.Spec.ClusterName = trialCluster, trialCluster

	set := &manifest.Set{
		Clusters: []*clusterv1.Cluster{{
			ObjectMeta: metav1.ObjectMeta{Name: trialCluster, Namespace: trialCluster},
			Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "endpoint.invalid", Port: 6443}},
		}},
		TalosConfigPatches: []*bootstrapv1.TalosConfigPatch{patch},
	}

	if result.Secret != nil {
		secret := result.Secret.DeepCopy()
		secret.Namespace = trialCluster

		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}

		for key, value := range secret.StringData {
			secret.Data[key] = []byte(value)
		}

		set.Secrets = append(set.Secrets, secret)
	}

	for _, name := range machineTypes {
		config := &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: trialCluster}}
		config.Spec.ConfigContract = contract.String()

		// The document completes what spec.install makes, and alone lacks what Talos requires. The legacy one stands beside it.
		if hasPart(patch, machineconfigv1alpha1.KindUnattendedInstallConfig) || hasLegacyInstall(patch) {
			config.Spec.Install = bootstrapv1.InstallSpec{Disk: "/dev/sda", Image: "installer.invalid/installer:" + contract.Talos().String()}
		}

		set.TalosConfigs = append(set.TalosConfigs, config)
	}

	return set
}

func hasPart(patch *bootstrapv1.TalosConfigPatch, kind machineconfigv1alpha1.DocumentKind) bool {
	for i := range patch.Spec.Documents {
		if patch.Spec.Documents[i].Kind == kind {
			return true
		}
	}

	return false
}

func hasLegacyInstall(patch *bootstrapv1.TalosConfigPatch) bool {
	for i := range patch.Spec.Documents {
		if config := patch.Spec.Documents[i].Config; config != nil && config.Machine != nil && config.Machine.Install != nil {
			return true
		}
	}

	return false
}

func trialMachine(machineType string, kubernetes version.Kubernetes) *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: machineType, Namespace: trialCluster, Labels: map[string]string{}}}
	if machineType == machineTypeControlPlane {
		machine.Labels[clusterv1.MachineControlPlaneLabel] = ""
	}

	machine.Spec.ClusterName, machine.Spec.Version = trialCluster, kubernetes.String()
	machine.Spec.InfrastructureRef.Name = machineType
	machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group, Kind: machineconfig.KindTalosConfig, Name: machineType,
	}

	return machine
}

// addTrial takes over the errors of a render, at the places of the input that they are about.
func addTrial(result *convert.Result, found *findings, subject *inventory.Subject, err error) {
	faults := machineconfig.Errors(err)
	if len(faults) == 0 {
		found.add(Finding{Severity: SeverityError, Message: err.Error()}, subject.Machine.Name)
	}

	for _, fault := range faults {
		found.add(ofRender(result, fault), subject.Machine.Name)
	}
}

// ofRender is an error of the renderer, at its place of the input.
func ofRender(result *convert.Result, fault *machineconfig.Error) Finding {
	finding := Finding{Severity: SeverityError, Document: fault.Document, Field: fault.Field, Reason: fault.Reason, Message: fault.Err.Error()}

	if fault.Source.Kind == machineconfig.KindTalosConfigPatch {
		if place, ok := placeOf(result, fault); ok {
			finding.Location = placed(place, "").Location
		}
	} else if fault.Source != (machineconfig.Source{}) {
		finding.Message = fault.Source.String() + ": " + finding.Message
	}

	return finding
}

var sourceIndex = regexp.MustCompile(`^spec\.documents\[(\d+)\]$`)

// placeOf is the place of a render's fault: in a document that of the field, where the document has it.
func placeOf(result *convert.Result, fault *machineconfig.Error) (convert.Place, bool) {
	if match := sourceIndex.FindStringSubmatch(fault.Source.Path); match != nil {
		index, err := strconv.Atoi(match[1])
		if err == nil {
			return result.FindField(index, fault.Field)
		}
	}

	return result.Find(strings.TrimSuffix(fault.Source.Path, "."))
}
