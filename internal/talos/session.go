// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// Roles of calls. Source of what Talos asks for: Talos, internal/app/machined/pkg/system/services/machined.go, rules.
//
//	Version, ServiceList, List, EtcdStatus, EtcdMemberList, EtcdAlarmList, resources    os:reader
//	Bootstrap, EtcdForfeitLeadership, EtcdLeaveCluster, EtcdRemoveMemberByID            os:admin
//
// No call of this package is one that os:operator may make and os:reader may not.
const (
	reader = role.Reader
	admin  = role.Admin
)

// stagger is how long one way to a node is tried alone, before the next is tried beside it.
const stagger = time.Second

// session is a connection on which a node was proved to be a machine.
type session struct {
	nodes *Nodes
	m     *Machine
	way   candidate
	conn  *connection

	// facts are what the node says of itself.
	facts facts
	proof proof
}

// open finds a machine's node on one of the ways to it. Ways that do not answer are given up in favour of the others; what is told if none
// does is the most that was learnt. Close it.
func (n *Nodes) open(ctx context.Context, m *Machine, of role.Role) (*session, error) {
	ways, why := n.reach.candidates(m, n.shared)
	if len(ways) == 0 {
		return nil, &nodeError{ErrNoAddress, why}
	}

	if last, ok := n.cluster.lastWay(m.Name); ok {
		// Where it was found last it is most likely found again.
		slices.SortStableFunc(ways, func(a, b candidate) int { return index(b == last) - index(a == last) })
	}

	s, err := n.race(ctx, m, ways, of)
	if err != nil {
		return nil, leftOut(err, why)
	}

	n.cluster.found(m.Name, s.way)

	return s, nil
}

// leftOut adds to what came of the ways that were tried which were not. Who has found the machine's node needs no other way.
func leftOut(err error, why string) error {
	fault, ok := errors.AsType[*nodeError](err)
	if why == "" || !ok || !slices.Contains(elsewhere, fault.class) {
		return err
	}

	return &nodeError{fault.class, fault.message + "; " + why}
}

// elsewhere are the errors after which the node may be found on another way.
var elsewhere = []error{ErrUnreachable, ErrSlow, ErrForeign, ErrAnotherNode, ErrNoAddress}

func index(first bool) int {
	if first {
		return 1
	}

	return 0
}

// attempt is what came of one way.
type attempt struct {
	session *session
	err     error
}

// race tries ways one after the other, each with a head start.
func (n *Nodes) race(ctx context.Context, m *Machine, ways []candidate, of role.Role) (*session, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	results, started := make(chan attempt, len(ways)), 0
	next := func() {
		if started < len(ways) {
			way := ways[started]
			started++

			go func() {
				s, err := n.try(ctx, m, way, of)
				results <- attempt{s, err}
			}()
		}
	}

	next()

	ticker := time.NewTicker(stagger)
	defer ticker.Stop()

	var failures []error

	for len(failures) < len(ways) {
		select {
		case <-ticker.C:
			next()
		case result := <-results:
			if result.err == nil {
				go discardOthers(results, started-len(failures)-1)

				return result.session, nil
			}

			failures = append(failures, result.err)

			next()
		}
	}

	return nil, mostTelling(failures)
}

// discardOthers closes what the slower ways have found.
func discardOthers(results <-chan attempt, pending int) {
	for range pending {
		if result := <-results; result.err == nil {
			result.session.close()
		}
	}
}

// telling is the order in which errors of several ways are told: what a node has said comes before silence.
var telling = []error{
	ErrMaintenance, ErrAnotherNode, ErrClock, ErrRefused, ErrForeign, ErrNotReady, ErrFailed, ErrPrecondition, ErrUnsupported, ErrSlow, ErrUnreachable,
}

func mostTelling(failures []error) error {
	rank := func(err error) int {
		if at := slices.IndexFunc(telling, func(class error) bool { return errors.Is(err, class) }); at >= 0 {
			return at
		}

		return len(telling)
	}

	return slices.MinFunc(failures, func(a, b error) int { return rank(a) - rank(b) })
}

// try connects on one way and has the node say who it is.
func (n *Nodes) try(ctx context.Context, m *Machine, way candidate, of role.Role) (*session, error) {
	conn, err := n.cluster.connect(way.dial, of)
	if err != nil {
		return nil, err
	}

	s := &session{nodes: n, m: m, way: way, conn: conn}

	if err := s.introduce(ctx); err != nil {
		s.close()

		return nil, n.explain(ctx, err, way)
	}

	return s, nil
}

// introduce reads who the node is, and proves it.
func (s *session) introduce(ctx context.Context) error {
	var err error

	if s.facts, err = s.readFacts(ctx); err != nil {
		return err
	}

	s.proof, err = s.nodes.prove(s.m, s.facts)

	return err
}

// explain looks closer at a node that has a certificate of another authority: one in maintenance mode has, too.
func (n *Nodes) explain(ctx context.Context, err error, way candidate) error {
	if errors.Is(err, ErrForeign) && way.node == "" && n.cluster.inMaintenance(ctx, way) {
		return &nodeError{ErrMaintenance, "its node at " + way.String() + " is in maintenance mode: it has no configuration, or refused the one it was given, and its console says why"}
	}

	return err
}

func (s *session) close() { s.conn.release() }

// outgoing directs calls to the node when another passes them on.
func (s *session) outgoing(ctx context.Context) context.Context {
	if s.way.node == "" {
		return ctx
	}

	return metadata.AppendToOutgoingContext(ctx, "node", s.way.node)
}

// ask makes a call that reads. It may take half of the time for the node, so that one that hangs leaves time for what is asked next.
func (s *session) ask(ctx context.Context, call func(context.Context) error) error {
	return s.call(ctx, s.nodes.cluster.timeout/2, call)
}

// call makes one call within a bound and classifies its error. A connection that failed is not used again; one on which the node has answered
// did not fail, also when the answer is that this call is not allowed.
func (s *session) call(ctx context.Context, bound time.Duration, call func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(s.outgoing(ctx), bound)
	defer cancel()

	err := call(bounded)
	if err == nil {
		return nil
	}

	failed := classify(ctx, err, s.conn.trace.failure(), s.way)
	refused := errors.Is(failed, ErrRefused) && codeOf(err) != codes.PermissionDenied

	if refused || slices.ContainsFunc([]error{ErrUnreachable, ErrSlow, ErrForeign, ErrClock, ErrNotReady}, func(class error) bool { return errors.Is(failed, class) }) {
		s.nodes.cluster.discard(s.conn, s.way.dial)
	}

	return failed
}
