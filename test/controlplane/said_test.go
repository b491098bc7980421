// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/talossim"
)

// update writes golden files anew: package scenario has the flag.
func update() bool { return flag.Lookup("update").Value.String() == "true" }

// said is what a condition of a Machine says.
func (s *scenario) said(name, condition string) string {
	machine := &clusterv1.Machine{}
	if err := s.Client.Get(s.ctx, s.key(name), machine); err != nil {
		return err.Error()
	}

	return spoken(machine, condition)
}

func spoken(object conditions.Getter, condition string) string {
	c := conditions.Get(object, condition)
	if c == nil {
		return "is not there"
	}

	return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
}

// told waits until a situation is told in the words that it must be told in.
func (s *scenario) told(of situation) {
	s.t.Helper()

	about := odd
	if of.alone {
		about = s.first()
	}

	s.Eventually(func() string { return s.said(about, of.condition) }).Should(And(HavePrefix(string(of.status)), containing(of.says)))
	s.Eventually(func() string { return s.controlPlane().Status.Plan.Message }).Should(containing(of.plan))
}

func containing(words []string) types.GomegaMatcher {
	all := make([]types.GomegaMatcher, 0, len(words))
	for _, word := range words {
		all = append(all, ContainSubstring(word))
	}

	return And(all...)
}

// golden compares all that is said with a file, in which machines have names that do not change.
func (s *scenario) golden(path string, plan bool) {
	s.t.Helper()

	said := func() string { return s.everythingSaid(plan) }

	if update() {
		var last string

		s.Eventually(func() bool { // what is said goes on changing while machines come up
			before := last
			last = said()

			return before == last
		}).WithPolling(5 * time.Second).Should(BeTrue())
		s.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		s.Expect(os.WriteFile(path, []byte(last), 0o600)).To(Succeed())

		return
	}

	want, err := os.ReadFile(path)
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(said).Should(Equal(string(want)), "%s differs (go test -update writes it anew)", path)
}

// everythingSaid is what the Machines and the control plane say, and its plan if that is wanted.
func (s *scenario) everythingSaid(plan bool) string {
	var out strings.Builder

	list := s.machineList()
	slices.SortFunc(list, func(a, b clusterv1.Machine) int { return strings.Compare(s.anonymous(a.Name), s.anonymous(b.Name)) })

	for i := range list {
		fmt.Fprintf(&out, "Machine %s\n", list[i].Name)

		for _, condition := range []string{
			controlplanev1.MachineAPIServerPodHealthyCondition, controlplanev1.MachineControllerManagerPodHealthyCondition,
			controlplanev1.MachineSchedulerPodHealthyCondition, controlplanev1.MachineEtcdMemberHealthyCondition, controlplanev1.MachineTalosHealthyCondition,
		} {
			fmt.Fprintf(&out, "  %s %s\n", condition, spoken(&list[i], condition))
		}
	}

	tcp := s.controlPlane()
	fmt.Fprintf(&out, "TalosControlPlane\n")

	for _, condition := range []string{
		controlplanev1.AvailableCondition, controlplanev1.EtcdClusterHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
	} {
		fmt.Fprintf(&out, "  %s %s\n", condition, spoken(tcp, condition))
	}

	if plan {
		fmt.Fprintf(&out, "  plan %s %s: %s\n", tcp.Status.Plan.Action, tcp.Status.Plan.Reason, tcp.Status.Plan.Message)
	}

	return s.anonymous(out.String())
}

// anonymous has names, addresses and IDs of members that are the same each time.
func (s *scenario) anonymous(text string) string {
	var pairs []string

	for _, machine := range s.Stage.Machines(s.key("c")) {
		name := machine.Node.Name()
		if name == s.first() {
			pairs = append(pairs, name, "first")
			name = "first"
		}

		if id := memberOf(machine.Node); id != "" {
			pairs = append(pairs, id, "MEMBER-"+name)
		}

		pairs = append(pairs, machine.Node.Address()+":50000", "ADDRESS-"+name, machine.Node.Address(), "ADDRESS-"+name)
	}

	return strings.NewReplacer(pairs...).Replace(text)
}

func memberOf(node *talossim.Node) string {
	if id := node.EtcdMemberID(); id != 0 {
		return strconv.FormatUint(id, 16)
	}

	return ""
}
