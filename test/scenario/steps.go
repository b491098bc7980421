// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/test/invariants"
)

// update writes golden transcripts anew.
var update = flag.Bool("update", false, "write the golden files of scenarios anew")

// step is what a scenario has done, and what happened to the machines meanwhile.
type step struct {
	name  string
	lines []string
}

// Step does a part of the scenario, and looks at the invariants after it. It must wait for what it sets off: what happens later is
// told of the next one.
func (s *Scenario) Step(name string, do func()) {
	s.t.Helper()

	before := strings.Count(s.transcript(), "\n")

	s.within(name, do)

	lines := strings.Split(strings.TrimSuffix(s.transcript(), "\n"), "\n")
	s.steps = append(s.steps, step{name: name, lines: lines[min(before, len(lines)):]})

	s.Expect(s.Watch.Check(s.Ctx)).To(Succeed(), "after the step %q", name)
}

// within does something that belongs to a step. What comes between it and the next one is told of as after it.
func (s *Scenario) within(name string, do func()) {
	s.place = fmt.Sprintf("in the step %q", name)

	do()

	s.place = fmt.Sprintf("after the step %q", name)
}

// failer is what Gomega needs of a test.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// witness fails a test, and says where in the scenario it is. Gomega itself says what a wait saw last.
type witness struct {
	failer

	scenario *Scenario
}

func (w witness) Fatalf(format string, args ...any) {
	w.Helper()

	if w.scenario.place == "" {
		w.failer.Fatalf(format, args...)

		return
	}

	w.failer.Fatalf("%s:%s", w.scenario.place, fmt.Sprintf(format, args...))
}

// telling makes the expectations of a test those of the scenario: their waits are bounded, and what fails names its step.
func (s *Scenario) telling(to failer) *WithT {
	g := NewWithT(witness{failer: to, scenario: s})
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(interval)

	return g
}

// Steady waits until no manager writes anything in the namespace any more, and nothing is asked of the machines.
func (s *Scenario) Steady() {
	s.t.Helper()

	requests := map[string]invariants.RequestLog{}

	for name, user := range s.Managers {
		log, err := s.FollowRequests(user)
		s.Expect(err).NotTo(HaveOccurred())

		defer log.Close() //nolint:errcheck // It was read.

		requests[name] = log
	}

	s.Expect(invariants.Steady(s.Ctx, invariants.Quiet{
		Namespace: s.Namespace, Requests: requests, Transcript: s.transcript, For: quiet, Within: patience,
	})).To(Succeed())
}

// Golden compares what the steps were, and what was asked of the machines in each, with a file in testdata.
func (s *Scenario) Golden(name string) {
	s.t.Helper()

	got, path := s.tell(), filepath.Join("testdata", name+".golden")

	if *update {
		s.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		s.Expect(os.WriteFile(path, []byte(got), 0o644)).To(Succeed())
	}

	want, err := os.ReadFile(path)
	s.Expect(err).NotTo(HaveOccurred(), "write it with -update")
	s.Expect(cmp.Diff(string(want), got)).To(BeEmpty(), "%s; write it anew with -update", path)
}

// tell is the golden text: the steps, and of each the lines of the transcript, machine by machine. Machines act at the same time, so
// that only the order of one machine's lines tells something.
func (s *Scenario) tell() string {
	names := newAliases()

	var text strings.Builder

	for _, step := range s.steps {
		fmt.Fprintf(&text, "== %s\n", step.name)

		machines := map[string][]string{}

		for _, line := range step.lines {
			if line == "" {
				continue
			}

			machine, _, _ := strings.Cut(line, ":")
			alias := names.of(machine)
			machines[alias] = append(machines[alias], names.replace(line))
		}

		order := make([]string, 0, len(machines))
		for machine := range machines {
			order = append(order, machine)
		}

		slices.Sort(order)

		for _, machine := range order {
			fmt.Fprintln(&text, strings.Join(slices.Compact(machines[machine]), "\n"))
		}
	}

	return text.String()
}

// generated is a name that ends in what Kubernetes makes up: once for a Machine of a control plane, twice for one of a
// MachineDeployment.
var generated = regexp.MustCompile(`^(.+?)(?:-[bcdfghjklmnpqrstvwxz2456789]{5}){1,2}$`)

// aliases are names that are the same each time: the part of a generated name that is not made up, and a number.
type aliases struct {
	known  map[string]string
	counts map[string]int
}

func newAliases() *aliases { return &aliases{known: map[string]string{}, counts: map[string]int{}} }

func (a *aliases) of(name string) string {
	if alias, known := a.known[name]; known {
		return alias
	}

	alias := name
	if parts := generated.FindStringSubmatch(name); parts != nil {
		a.counts[parts[1]]++
		alias = fmt.Sprintf("%s-%d", parts[1], a.counts[parts[1]])
	}

	a.known[name] = alias

	return alias
}

// replace puts aliases for all names that are known.
func (a *aliases) replace(line string) string {
	for name, alias := range a.known {
		if name != alias {
			line = strings.ReplaceAll(line, name, alias)
		}
	}

	return line
}
