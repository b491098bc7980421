// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
)

// MachineOf is what the stored objects say of a machine. Left to the observer are Operation, LeaveFailed, ForwardFailed,
// BootstrapCalled, Steady and Etcd.
// controlPlane is the UID of the TalosControlPlane.
//
// An annotation of ours that cannot be read is an error: it holds what a decision may need, and a person has changed it.
func MachineOf(spec *controlplanev1.TalosControlPlaneSpec, controlPlane types.UID, stored Stored, now time.Time) (Machine, error) {
	machine := stored.Machine
	out := Machine{
		Name: machine.Name, Created: machine.CreationTimestamp.Time,
		FailureDomain: machine.Spec.FailureDomain, Version: machine.Spec.Version,
		NodeName: machine.Status.NodeRef.Name, Conditions: machine.Status.Conditions,
		Addresses:   addressesOf(machine),
		Differences: Differences(spec, stored, now),
	}

	out.DeleteRequested, out.RemediateRequested = has(machine, clusterv1.DeleteMachineAnnotation), has(machine, clusterv1.RemediateMachineAnnotation)

	owner := metav1.GetControllerOf(machine)
	out.Ours, out.Orphan = owner != nil && owner.UID == controlPlane, owner == nil

	for _, name := range slices.Sorted(maps.Keys(machine.Annotations)) {
		switch {
		case name == controlplanev1.PreTerminateHookAnnotation:
			out.Hook = true
		case strings.HasPrefix(name, clusterv1.PreTerminateDeleteHookAnnotationPrefix+"/"), name == clusterv1.PreTerminateDeleteHookAnnotationPrefix:
			out.OtherHooks = append(out.OtherHooks, name)
		}
	}

	if !machine.DeletionTimestamp.IsZero() {
		out.Deletion = deletionOf(machine)
	}

	return out, out.readRecords(machine)
}

// readRecords reads our annotations.
func (m *Machine) readRecords(machine *clusterv1.Machine) error {
	var err error

	if m.RecordedMembers, err = ParseMembers(machine.Annotations[controlplanev1.EtcdMembersAnnotation]); err != nil {
		return fmt.Errorf("annotation %s of Machine %s: %w", controlplanev1.EtcdMembersAnnotation, machine.Name, err)
	}

	// A member that is noted down has had an address. So, nearly always, has one with a provider ID: that is spec, and outlasts a move too.
	m.AddressRecorded = has(machine, controlplanev1.HadAddressAnnotation) || len(m.RecordedMembers) > 0
	m.HadAddress = m.AddressRecorded || len(m.Addresses) > 0 || m.NodeName != "" || machine.Spec.ProviderID != ""

	if value, ok := machine.Annotations[controlplanev1.RemediationForAnnotation]; ok {
		if m.RemediationFor, err = ParseRemediationRecord(value); err != nil {
			return fmt.Errorf("annotation %s of Machine %s: %w", controlplanev1.RemediationForAnnotation, machine.Name, err)
		}
	}

	return nil
}

// ParseMembers reads EtcdMembersAnnotation.
func ParseMembers(value string) ([]etcd.MemberID, error) {
	if value == "" {
		return nil, nil
	}

	var out []etcd.MemberID

	for text := range strings.SplitSeq(value, ",") {
		id, err := etcd.ParseMemberID(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}

		out = append(out, id)
	}

	return out, nil
}

// FormatMembers writes EtcdMembersAnnotation: the members of before and a new one. Only the last few are kept; a node that has been more
// than that has not been those for long.
func FormatMembers(recorded []etcd.MemberID, member etcd.MemberID) string {
	const most = 8

	all := append(slices.DeleteFunc(slices.Clone(recorded), func(id etcd.MemberID) bool { return id == member }), member)
	all = all[max(0, len(all)-most):]

	texts := make([]string, len(all))
	for i, id := range all {
		texts[i] = id.String()
	}

	return strings.Join(texts, ",")
}

func deletionOf(machine *clusterv1.Machine) *Deletion {
	d := &Deletion{Since: machine.DeletionTimestamp.Time}

	if c := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineDeletingCondition); c != nil && c.Status == metav1.ConditionTrue {
		d.Stage, d.AtHook = c.Reason, c.Reason == clusterv1.MachineDeletingWaitingForPreTerminateHookReason
	}

	return d
}

// addressesOf are the IP addresses of a Machine, in one form each.
func addressesOf(machine *clusterv1.Machine) []string {
	var out []string

	for _, address := range machine.Status.Addresses {
		if parsed, err := netip.ParseAddr(address.Address); err == nil {
			out = append(out, parsed.Unmap().String())
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

func has(machine *clusterv1.Machine, annotation string) bool {
	_, ok := machine.Annotations[annotation]

	return ok
}
