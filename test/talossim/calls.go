// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

type rolesKey struct{}

// rolesOf are the roles of a caller.
func rolesOf(ctx context.Context) role.Set {
	roles, _ := ctx.Value(rolesKey{}).(role.Set)
	return roles
}

// identify returns a caller's roles: a reader's in maintenance mode, else those of the certificate. An impersonator, as
// every control-plane node is, may speak for a caller whose roles it names. Source: Talos, pkg/grpc/middleware/authz.
func (b *boot) identify(ctx context.Context) (role.Set, error) {
	if b.config() == nil {
		return role.MakeSet(role.Reader), nil
	}
	info, ok := peer.FromContext(ctx)
	if !ok {
		return role.Zero, status.Error(codes.Unauthenticated, "no peer")
	}
	transport, ok := info.AuthInfo.(credentials.TLSInfo)
	if !ok || len(transport.State.PeerCertificates) == 0 {
		return role.Zero, status.Error(codes.Unauthenticated, "no client certificate")
	}
	roles, _ := role.Parse(transport.State.PeerCertificates[0].Subject.Organization)
	if roles.Includes(role.Impersonator) {
		if sent, _ := metadata.FromIncomingContext(ctx); len(sent.Get(roleKey)) > 0 {
			roles, _ = role.Parse(sent.Get(roleKey))
		}
	}
	return roles, nil
}

// admit lets a call in, or says why not, after the delay that is set.
func (b *boot) admit(ctx context.Context, method string, roles role.Set) error {
	if !mayCall(method, roles) {
		return status.Errorf(codes.PermissionDenied, "not authorized: %s", method)
	}
	delay := b.node.Faults().Delay
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-b.ctx.Done():
		return errGoingDown
	}
}

var errGoingDown = status.Error(codes.Unavailable, "the node is going down")

// guard runs a call with the traps that wait for it, and remembers it.
func (b *boot) guard(ctx context.Context, full string, roles role.Set, request any, call func(context.Context) error) (err error) {
	name, said := shortMethod(full), &remarks{}
	ctx = context.WithValue(ctx, remarksKey{}, said)
	defer func() {
		code := status.Code(err).String()
		b.node.noteCall(full, roles, said, code)
		b.node.mu.Lock()
		b.node.calls = append(b.node.calls, Call{Method: name, Roles: roles.Strings(), Code: code})
		b.node.mu.Unlock()
		b.node.writeDown()
	}()
	if err := b.admit(ctx, full, roles); err != nil {
		return err
	}
	if t := b.node.spring(name, before); t != nil {
		if t.err != nil {
			return t.err
		}
		b.node.note("loses power before %s", name)
		b.node.crash(b)
		return errGoingDown
	}
	if strings.HasPrefix(full, "/cosi.") {
		if err := b.show(); err != nil {
			return err
		}
	}
	b.node.look(ctx, name, request)
	err = call(context.WithValue(ctx, rolesKey{}, roles))
	if t := b.node.spring(name, after); t != nil {
		b.awaitBootstrap(ctx)
		said.say("and loses power")
		b.node.crash(b)
	}
	return err
}

func (b *boot) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	roles, err := b.identify(ctx)
	if err != nil {
		return nil, err
	}
	targets, many, err := b.route(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	switch {
	case many:
		return b.forwardMany(ctx, targets, info.FullMethod, roles, request)
	case len(targets) > 0:
		return b.forward(ctx, targets[0], info.FullMethod, roles, request)
	}
	err = b.guard(ctx, info.FullMethod, roles, request, func(ctx context.Context) error {
		response, err = handler(ctx, request)
		return err
	})
	return response, err
}

func (b *boot) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	roles, err := b.identify(stream.Context())
	if err != nil {
		return err
	}
	targets, many, err := b.route(stream.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	if len(targets) > 0 {
		return b.forwardStream(stream, targets, many, info.FullMethod, roles)
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	stop := context.AfterFunc(b.streams, cancel)
	defer stop()
	err = b.guard(ctx, info.FullMethod, roles, nil, func(ctx context.Context) error {
		return handler(server, &admittedStream{ServerStream: stream, ctx: ctx})
	})
	if err != nil && b.streams.Err() != nil && stream.Context().Err() == nil {
		return errGoingDown
	}
	return err
}

// admittedStream carries the caller's roles.
type admittedStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // It is the stream's own context.
}

func (s *admittedStream) Context() context.Context { return s.ctx }

// shortMethod names a method as Call has it.
func shortMethod(full string) string {
	path := strings.TrimPrefix(full, "/")
	if name, ok := strings.CutPrefix(path, "machine.MachineService/"); ok {
		return name
	}
	return path[strings.LastIndex(path[:strings.Index(path, "/")+1], ".")+1:]
}

// shortName is the last element of a path.
func shortName(name string) string { return name[strings.LastIndex(name, "/")+1:] }
