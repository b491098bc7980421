// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"context"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// classify says what an error of a call is. Where is the address that was dialled, proxied whether a load balancer or another node passes
// the call on.
func classify(ctx context.Context, err error, seen failure, where candidate) *nodeError {
	if known, ok := errors.AsType[*nodeError](err); ok {
		return known
	}

	if errors.Is(ctx.Err(), context.Canceled) {
		return &nodeError{ErrStopped, "was not asked to the end: the caller has stopped"}
	}

	switch code := codeOf(err); code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return seen.classify(code, where)
	default:
		return answer(code, messageOf(err), where)
	}
}

// codeOf finds the code of an error, wrapped or not.
func codeOf(err error) codes.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}

	return status.Code(err)
}

// answer is an error that the node itself gives.
func answer(code codes.Code, said string, where candidate) *nodeError {
	switch code {
	case codes.PermissionDenied, codes.Unauthenticated:
		return &nodeError{ErrRefused, fmt.Sprintf("its node at %s does not allow it to the role that Talos asks for: %s", where, said)}
	case codes.AlreadyExists:
		return &nodeError{ErrAlreadyExists, said}
	case codes.NotFound:
		return &nodeError{ErrNotFound, said}
	case codes.FailedPrecondition, codes.InvalidArgument, codes.OutOfRange:
		return &nodeError{ErrPrecondition, said}
	case codes.Unimplemented:
		return &nodeError{ErrUnsupported, "its Talos has no such call: " + said}
	default:
		return &nodeError{ErrFailed, said}
	}
}

// reachable is what to look at when there is no connection.
const reachable = "see that the machine is on and that its Talos API can be reached from here"

// classify says why there was no answer.
func (f failure) classify(code codes.Code, where candidate) *nodeError {
	switch {
	case f.alert != 0:
		return f.refusal(where)
	case f.handshake != nil:
		return f.untrusted(where)
	case f.dial != nil:
		return &nodeError{ErrUnreachable, fmt.Sprintf("no connection to %s: %s; %s", where, spoken(f.dial), reachable)}
	case !f.connected:
		return &nodeError{ErrUnreachable, fmt.Sprintf("no connection to %s: nobody answers; %s", where, reachable)}
	case code == codes.DeadlineExceeded:
		return &nodeError{ErrSlow, fmt.Sprintf("its node at %s does not answer in time: it has too much to do, or the network to it loses what is sent", where)}
	case where.node != "":
		return &nodeError{ErrUnreachable, fmt.Sprintf("no connection to %s: the endpoint answers and does not reach the node", where)}
	default:
		return &nodeError{ErrNotReady, fmt.Sprintf("its node at %s is going down or coming up", where)}
	}
}

// refusal is an alert that the node sent.
func (f failure) refusal(where candidate) *nodeError {
	switch f.alert {
	case alertCertificateExpired:
		return &nodeError{ErrClock, fmt.Sprintf(
			"its node at %s takes our new certificate for one that is expired or not valid yet: its clock and ours differ, set both by NTP", where)}
	case alertUnknownAuthority:
		return &nodeError{ErrRefused, fmt.Sprintf(
			"its node at %s does not accept certificates of the Talos CA in the cluster's secrets bundle: it was configured with another", where)}
	default:
		return &nodeError{ErrRefused, fmt.Sprintf("its node at %s does not accept our certificate", where)}
	}
}

// untrusted is a handshake that failed.
func (f failure) untrusted(where candidate) *nodeError {
	if invalid, ok := errors.AsType[stdx509.CertificateInvalidError](f.handshake); ok && invalid.Reason == stdx509.Expired {
		return &nodeError{ErrClock, fmt.Sprintf(
			"the certificate of its node at %s is expired or not valid yet: its clock and ours differ, set both by NTP", where)}
	}

	if _, ok := errors.AsType[stdx509.HostnameError](f.handshake); ok {
		return &nodeError{ErrForeign, fmt.Sprintf(
			"what answers at %s has a certificate of the cluster and not for this address: add the address to spec.certSANs of the TalosClusterConfig", where)}
	}

	if f.foreign() {
		return &nodeError{ErrForeign, fmt.Sprintf("what answers at %s has a certificate of another Talos CA than the one in the cluster's secrets bundle: it is not a node of this cluster. "+
			"If the address is the machine's, it was configured for another cluster: delete the Machine, and another is made. "+
			"If all machines say so, the bundle is the wrong one: delete none, and put the right one back", where)}
	}

	return &nodeError{ErrUnreachable, fmt.Sprintf("no connection to %s: the TLS handshake ends with: %s", where, spoken(f.handshake))}
}

// foreign is true when the certificate is of an authority that nobody here knows. A node without a configuration has one, too.
func (f failure) foreign() bool {
	_, unknown := errors.AsType[stdx509.UnknownAuthorityError](f.handshake)
	_, invalid := errors.AsType[stdx509.CertificateInvalidError](f.handshake)

	return unknown || invalid
}

// spoken says in words what is wrong with a connection, without ports of our own or times.
func spoken(err error) string {
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("the name %q cannot be resolved", name.Name)
	}

	for number, words := range map[syscall.Errno]string{
		syscall.ECONNREFUSED: "connection refused", syscall.EHOSTUNREACH: "no route to the host", syscall.ENETUNREACH: "no route to the network",
		syscall.ECONNRESET: "connection reset",
	} {
		if errors.Is(err, number) {
			return words
		}
	}

	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "nobody answers"
	}

	return "connection closed"
}

// messageOf is what a node says, as one line of bounded length.
func messageOf(err error) string {
	const most = 256

	text := strings.Join(strings.Fields(status.Convert(err).Message()), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}

	if text == "" {
		return "no reason given"
	}

	return text
}
