// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"strconv"
)

// MemberID is the ID of an etcd member. Zero is none. A member that is removed and joins again has another one.
type MemberID uint64

// String is the form of etcdctl and talosctl: hex without leading zeros.
func (id MemberID) String() string { return strconv.FormatUint(uint64(id), 16) }

// ParseMemberID reads what String writes.
func ParseMemberID(s string) (MemberID, error) {
	id, err := strconv.ParseUint(s, 16, 64)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("%q is no ID of an etcd member: want up to 16 hex digits, not all zero", s)
	}

	return MemberID(id), nil
}

// Member is an entry of a member list.
type Member struct {
	ID MemberID

	// Name is the hostname that the member started with. A member that has been added and has not started has none.
	Name string

	// PeerURLs are where the other members reach it.
	PeerURLs []string

	// Learner has no vote yet.
	Learner bool
}

// Alarm is something that etcd says about a member until it is disarmed, also when the member has been removed since.
type Alarm struct {
	// Member is whose alarm it is. Zero is none: etcd has found that its members' data differ, and cannot tell whose is wrong.
	Member MemberID

	// Type is etcd's word: NOSPACE or CORRUPT.
	Type string
}

const (
	noSpace = "NOSPACE"
	corrupt = "CORRUPT"
)

// remedies say what an alarm means, and what ends it. Etcd itself ends none. Source: etcd, maintenance guide.
var remedies = map[string]string{
	noSpace: "its database has reached its quota and takes no writes: free space with talosctl etcd defrag, then run talosctl etcd alarm disarm",
	corrupt: "its data differs from the other members': delete its Machine; when its member has left, run talosctl etcd alarm disarm",
}

// nobodys is the remedy for an alarm CORRUPT that is no member's.
const nobodys = "its members' data differ, and etcd cannot tell whose is wrong: compare a snapshot of each member (talosctl etcd snapshot) and delete the Machine of the one " +
	"that is wrong; when its member has left, run talosctl etcd alarm disarm"

// Of says in words whose alarm it is.
func (a Alarm) Of() string {
	if a.Member == 0 {
		return "etcd"
	}

	return "etcd member " + a.Member.String()
}

// String is the alarm with what to do about it.
func (a Alarm) String() string {
	remedy := remedies[a.Type]
	if a.Type == corrupt && a.Member == 0 {
		remedy = nobodys
	}

	if remedy != "" {
		return a.Type + " (" + remedy + ")"
	}

	return a.Type
}

// DataState says whether a node has etcd data on its disk.
type DataState int

const (
	// DataUnknown is every doubt: the node does not answer, or cannot tell.
	DataUnknown DataState = iota

	// DataAbsent is the node's own definite word that there is none.
	DataAbsent

	// DataPresent is the node's own definite word that there is some.
	DataPresent
)

// View is what one node says about etcd. The zero value is a node that was not asked.
type View struct {
	// Answered is true when the node's Talos API answered. What follows but for Problem has a meaning only then.
	Answered bool

	// Problem says why there is no answer, or that etcd does not run, in words for people and without secrets.
	Problem string

	// Data says whether there is etcd data on the node.
	Data DataState

	// Self is the ID of the node's own member; zero when etcd does not run there or has not said.
	Self MemberID

	// Members is the member list as this node has it; empty when etcd does not run there, or its member is a learner, which does not say.
	Members []Member

	// Leader is the leader that the node follows, or zero.
	Leader MemberID

	// Applied is the raft index up to which the node has applied the log.
	Applied uint64

	// Errors are those of etcd's Status. It repeats there every alarm of every member, and that there is no leader: they count only while
	// nobody reports an alarm.
	Errors []string

	// Alarms of the whole cluster, as the node has them.
	Alarms []Alarm
}

// Host is a machine on which a member runs, ran or may run.
type Host struct {
	// Name of the machine. It must be unique.
	Name string

	// Addresses are the machine's IP addresses. Weak evidence of which member is its own.
	Addresses []string

	// NodeName is its hostname or the name of its Kubernetes Node. Weak evidence.
	NodeName string

	// Recorded are the members that the node has said it was, earlier.
	Recorded []MemberID

	View View
}
