// SPDX-License-Identifier: Apache-2.0

package talos

import "errors"

// The classes of errors. Each error of this package is one of them, for errors.Is.
//
// After ErrUnreachable and ErrSlow of an operation nobody knows whether the node has done it: look again before anything else.
var (
	// ErrNoAddress is when the machine has no address that may be dialled.
	ErrNoAddress = errors.New("no usable address")

	// ErrUnreachable is when there is no connection: refused, no route, cut, or nobody who answers.
	ErrUnreachable = errors.New("unreachable")

	// ErrSlow is when there is a connection, and no answer within the time for it.
	ErrSlow = errors.New("no answer in time")

	// ErrForeign is when the node has a certificate that is not of the cluster's authority, or not for the address.
	ErrForeign = errors.New("not a node of the cluster")

	// ErrAnotherNode is when the node is of the cluster and is not the machine's.
	ErrAnotherNode = errors.New("another node")

	// ErrMaintenance is when the node has no configuration.
	ErrMaintenance = errors.New("in maintenance mode")

	// ErrRefused is when the node does not accept the certificate, or the role in it.
	ErrRefused = errors.New("refused")

	// ErrClock is when a certificate is expired or not valid yet, by the node's clock or by ours.
	ErrClock = errors.New("clocks differ")

	// ErrNotReady is when the node cannot do it yet, or is going down.
	ErrNotReady = errors.New("not ready")

	// ErrAlreadyExists is when what should be made exists.
	ErrAlreadyExists = errors.New("already exists")

	// ErrNotFound is when something does not exist.
	ErrNotFound = errors.New("not found")

	// ErrPrecondition is when the state of node or cluster forbids it, or the etcd member is not the one that was meant.
	ErrPrecondition = errors.New("precondition failed")

	// ErrUnsupported is when the node's Talos has no such call.
	ErrUnsupported = errors.New("not supported")

	// ErrFailed is everything else.
	ErrFailed = errors.New("failed")

	// ErrStopped is when the caller's context has ended.
	ErrStopped = errors.New("stopped")
)

// reasons name the classes in metrics and logs.
var reasons = map[error]string{
	ErrNoAddress: "NoAddress", ErrUnreachable: "Unreachable", ErrSlow: "Slow", ErrForeign: "Foreign", ErrAnotherNode: "AnotherNode",
	ErrMaintenance: "Maintenance", ErrRefused: "Refused", ErrClock: "Clock", ErrNotReady: "NotReady", ErrAlreadyExists: "AlreadyExists",
	ErrNotFound: "NotFound", ErrPrecondition: "Precondition", ErrUnsupported: "Unsupported", ErrFailed: "Failed", ErrStopped: "Stopped",
}

// Error is what went wrong at a machine's node. Its message has no secrets and no numbers that change: it can go into a condition.
type Error struct {
	// Machine that was meant.
	Machine string

	// Class is one of the Err... of this package.
	Class error

	// Message says what happened, and what helps, for people.
	Message string
}

func (e *Error) Error() string { return "machine " + e.Machine + ": " + e.Message }

// Unwrap gives the class.
func (e *Error) Unwrap() error { return e.Class }

// Reason names the class of an error in one word: empty for nil, Failed for an error of another package.
func Reason(err error) string {
	if err == nil {
		return ""
	}

	if e, ok := errors.AsType[*Error](err); ok {
		return reasons[e.Class]
	}

	return reasons[ErrFailed]
}

// nodeError is an Error before it is known of which machine.
type nodeError struct {
	class   error
	message string
}

func (p *nodeError) Error() string { return p.message }

func (p *nodeError) Unwrap() error { return p.class }

// of makes it an error of a machine.
func (p *nodeError) of(machine string) *Error {
	return &Error{Machine: machine, Class: p.class, Message: p.message}
}
