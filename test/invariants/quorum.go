// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/maesh-dev/ichor/test/talossim"
)

const (
	// askPeriod is how often etcd is asked who has a vote while all is well.
	askPeriod = 2 * time.Second

	// askTimeout bounds one question.
	askTimeout = 10 * time.Second

	// agreeTimeout bounds the time that members may take to agree and to elect a leader, after whatever a step has done.
	agreeTimeout = 30 * time.Second

	// redundant is the number of votes from which on a quorum can be kept while a node is disturbed.
	redundant = 3
)

// quorum is what is known of the members with a vote, by ID, with their names.
type quorum struct {
	voters map[uint64]string
	asked  time.Time
}

// sampleQuorum compares who runs with who has a vote. Before it says that too few run, it asks anew who has a vote: a member that
// has left may stop. With fewer than three votes there is nothing to spare, and Check alone looks whether etcd works again.
func (w *Watch) sampleQuorum(ctx context.Context) {
	w.mu.Lock()
	known := w.quorum
	w.mu.Unlock()

	nodes := w.options.Nodes()
	if len(nodes) == 0 {
		w.mu.Lock()
		w.quorum = quorum{}
		w.mu.Unlock()

		return
	}

	if time.Since(known.asked) < askPeriod && missing(known.voters, nodes) == "" {
		return
	}

	voters, answered := askVoters(ctx, nodes)

	w.mu.Lock()
	defer w.mu.Unlock()

	if answered {
		w.quorum = quorum{voters: voters, asked: time.Now()}
	}

	lost := missing(w.quorum.voters, w.options.Nodes())
	if lost == "" || ctx.Err() != nil {
		return
	}

	w.fault(Quorum, "of %d members with a vote too few run: %s do not", len(w.quorum.voters), lost)
}

// missing names the members that do not run if they are so many that no quorum is left.
func missing(voters map[uint64]string, nodes []*talossim.Node) string {
	if len(voters) < redundant {
		return ""
	}

	absent := maps.Clone(voters)

	for _, node := range nodes {
		if node.EtcdRuns() {
			delete(absent, node.EtcdMemberID())
		}
	}

	if len(voters)-len(absent) > len(voters)/2 {
		return ""
	}

	return strings.Join(slices.Sorted(maps.Values(absent)), ", ")
}

// askVoters asks the members that run until one tells who has a vote.
func askVoters(ctx context.Context, nodes []*talossim.Node) (map[uint64]string, bool) {
	view, answered := askEtcd(ctx, nodes)
	if !answered {
		return nil, false
	}

	return votersOf(view), true
}

// askEtcd asks the members that run until one with a vote answers.
func askEtcd(ctx context.Context, nodes []*talossim.Node) (talossim.EtcdView, bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	for _, node := range nodes {
		if !node.EtcdRuns() {
			continue
		}

		if view, err := node.AskEtcd(ctx); err == nil && !view.Learner {
			return view, true
		}
	}

	return talossim.EtcdView{}, false
}

func votersOf(view talossim.EtcdView) map[uint64]string {
	voters := map[uint64]string{}

	for _, member := range view.Members {
		if !member.GetIsLearner() {
			voters[member.GetId()] = member.GetHostname()
		}
	}

	return voters
}

// checkAgreement waits until all members that run follow one leader and know of the same members. What differs for long is two
// clusters, or none that works.
func (w *Watch) checkAgreement(ctx context.Context) error {
	last := ""

	err := wait.PollUntilContextTimeout(ctx, samplePeriod, agreeTimeout, true, func(ctx context.Context) (bool, error) {
		last = disagreement(ctx, w.options.Nodes())

		w.mu.Lock()
		defer w.mu.Unlock()

		// What is known to be lost does not come back while one waits.
		lost := slices.ContainsFunc(w.faults, func(fault *Fault) bool { return fault.Invariant == Quorum })

		return last == "" || lost || w.paused[Quorum] > 0, nil
	})
	if err == nil {
		return nil
	}

	if ctx.Err() != nil {
		return ctx.Err()
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	w.fault(Quorum, "%s", last)

	return nil
}

// disagreement says what keeps the members that run from being one cluster; empty if they are, or if there are none.
func disagreement(ctx context.Context, nodes []*talossim.Node) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	var (
		first   talossim.EtcdView
		teller  string
		running int
	)

	for _, node := range nodes {
		if !node.EtcdRuns() {
			continue
		}

		running++

		view, err := node.AskEtcd(ctx)

		switch {
		case err != nil:
			return err.Error()
		case view.Leader == 0:
			return fmt.Sprintf("the etcd member of %s has no leader", node.Name())
		case view.Learner:
			continue
		case teller == "":
			first, teller = view, node.Name()
		case !maps.Equal(votersOf(first), votersOf(view)):
			return fmt.Sprintf("the etcd members of %s and %s are not of one cluster: the first knows %s, the second %s", teller, node.Name(), names(first), names(view))
		}
	}

	if running > 0 && teller == "" {
		return "no etcd member that runs has a vote"
	}

	return ""
}

func names(view talossim.EtcdView) string {
	return strings.Join(slices.Sorted(maps.Values(votersOf(view))), ", ")
}
