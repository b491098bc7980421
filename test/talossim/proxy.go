// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// What one node tells another when it passes a call on. Source: Talos, pkg/grpc/middleware/authz and
// internal/app/apid/pkg/backend.
const (
	// roleKey has the roles of the one who called first.
	roleKey = "talos-role"
	// passedOnKey says that the call has found its node.
	passedOnKey = "proxyfrom"
)

// manyServices are those whose calls may go to several nodes at once. Source: Talos, internal/app/apid/pkg/director.
var manyServices = []string{"machine.MachineService", "cluster.ClusterService", "storage.StorageService", "time.TimeService"}

// route says to which nodes a call is to be passed on, none for this one, and whether the answer is that of many. Only a
// control-plane node passes calls on, since only it has a certificate to speak for others; it dials itself like any other.
func (b *boot) route(ctx context.Context, method string) (targets []string, many bool, err error) {
	sent, _ := metadata.FromIncomingContext(ctx)
	if len(sent.Get(passedOnKey)) > 0 {
		return nil, false, nil
	}
	one, all := sent.Get("node"), sent.Get("nodes")
	if len(one) > 1 {
		return nil, false, status.Error(codes.InvalidArgument, "node metadata must be single-valued")
	}
	config := b.config()
	if config == nil || !config.controlPlane() {
		if len(one) == 1 && b.isLocal(one[0]) {
			one = nil
		}
		if len(all) == 1 && b.isLocal(all[0]) {
			all = nil
		}
		if len(one)+len(all) > 0 {
			return nil, false, status.Error(codes.PermissionDenied, "no request forwarding")
		}
	}
	if len(all) == 0 {
		return one, false, nil
	}
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if !slices.Contains(manyServices, service) {
		return nil, false, status.Errorf(codes.InvalidArgument, "one-2-many proxying is not supported for method %s", method)
	}
	return all, true, nil
}

func (b *boot) isLocal(target string) bool {
	if config := b.config(); config != nil && target == config.hostname(b.node) {
		return true
	}
	return target == b.node.address
}

// connections are those of a node to others.
type connections struct {
	mu     sync.Mutex
	conns  map[string]*grpc.ClientConn
	closed bool
}

// connect returns the connection to a node, by its address or name.
func (b *boot) connect(target string) (*grpc.ClientConn, error) {
	c := &b.peers
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errGoingDown
	}
	if conn := c.conns[target]; conn != nil {
		return conn, nil
	}
	secured, err := b.clientTLS()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	address := b.node.world.resolve(target)
	secured.ServerName = address
	conn, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(address, strconv.Itoa(constants.ApidPort)),
		grpc.WithTransportCredentials(credentials.NewTLS(secured)), QuickReconnect(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(constants.GRPCMaxMessageSize)),
		grpc.WithContextDialer(b.node.world.dial))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if c.conns == nil {
		c.conns = map[string]*grpc.ClientConn{}
	}
	c.conns[target] = conn
	return conn, nil
}

// clientTLS is what the node shows to another: a certificate that lets it speak for its callers.
func (b *boot) clientTLS() (*tls.Config, error) {
	config := b.config()
	if config == nil || config.Machine().Security().IssuingCA() == nil {
		return nil, errNoConfig
	}
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(config.Machine().Security().IssuingCA())
	if err != nil {
		return nil, fmt.Errorf("machine.ca: %w", err)
	}
	now := b.now()
	pair, err := x509.NewKeyPair(ca, x509.Organization(string(role.Impersonator)),
		x509.NotBefore(now), x509.NotAfter(now.Add(certificateValidity)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}))
	if err != nil {
		return nil, err
	}
	roots := stdx509.NewCertPool()
	for _, accepted := range config.acceptedCAs() {
		roots.AppendCertsFromPEM(accepted)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: roots, Certificates: []tls.Certificate{*pair.Certificate}, Time: b.now,
	}, nil
}

// close ends all connections and lets none come.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// resolve finds the address of a node by its name; what is no name is an address.
func (w *World) resolve(target string) string {
	for _, n := range w.Nodes() {
		b := n.current()
		if n.Name() == target || b != nil && b.config() != nil && b.config().hostname(n) == target {
			return n.address
		}
	}
	return target
}

// dial reaches the nodes of the world and nothing else.
func (w *World) dial(ctx context.Context, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	if !slices.ContainsFunc(w.Nodes(), func(n *Node) bool { return n.address == host }) {
		return nil, errors.New("dial: no route to host")
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", address)
}

func passedOn(ctx context.Context, roles role.Set) context.Context {
	return metadata.NewOutgoingContext(ctx, metadata.MD{roleKey: roles.Strings(), passedOnKey: []string{"apid"}})
}

// method is what the registry knows of a call.
type method struct {
	protoreflect.MethodDescriptor

	in, out protoreflect.MessageType
}

func describe(full string) (method, error) {
	service, name, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return method{}, status.Error(codes.Unimplemented, err.Error())
	}
	described, ok := found.(protoreflect.ServiceDescriptor)
	if !ok || described.Methods().ByName(protoreflect.Name(name)) == nil {
		return method{}, status.Errorf(codes.Unimplemented, "unknown method %s", full)
	}
	m := method{MethodDescriptor: described.Methods().ByName(protoreflect.Name(name))}
	if m.in, err = protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName()); err != nil {
		return method{}, status.Error(codes.Internal, err.Error())
	}
	if m.out, err = protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName()); err != nil {
		return method{}, status.Error(codes.Internal, err.Error())
	}
	return m, nil
}

// forward passes a call on to one node. What that node answers comes back unchanged.
func (b *boot) forward(ctx context.Context, target, full string, roles role.Set, request any) (proto.Message, error) {
	m, err := describe(full)
	if err != nil {
		return nil, err
	}
	conn, err := b.connect(target)
	if err != nil {
		return nil, err
	}
	answer := m.out.New().Interface()
	if err := conn.Invoke(passedOn(ctx, roles), full, request, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// forwardMany passes a call on to several nodes. The answer has a message of each, with the node's name; an error is a
// message too.
func (b *boot) forwardMany(ctx context.Context, targets []string, full string, roles role.Set, request any) (proto.Message, error) {
	m, err := describe(full)
	if err != nil {
		return nil, err
	}
	messages := m.Output().Fields().ByName("messages")
	if messages == nil {
		return nil, status.Errorf(codes.InvalidArgument, "one-2-many proxying is not supported for method %s", full)
	}
	answers, errs := make([]proto.Message, len(targets)), make([]error, len(targets))
	var asking sync.WaitGroup
	for i, target := range targets {
		asking.Go(func() { answers[i], errs[i] = b.forward(ctx, target, full, roles, request) })
	}
	asking.Wait()
	merged := m.out.New()
	list := merged.Mutable(messages).List()
	for i, target := range targets {
		if errs[i] != nil {
			failed := list.NewElement()
			mark(failed.Message(), target, errs[i])
			list.Append(failed)
			continue
		}
		theirs := answers[i].ProtoReflect().Get(messages).List()
		for j := range theirs.Len() {
			mark(theirs.Get(j).Message(), target, nil)
			list.Append(theirs.Get(j))
		}
	}
	return merged.Interface(), nil
}

// mark says which node a message is of, and what went wrong there.
func mark(message protoreflect.Message, target string, err error) {
	field := message.Descriptor().Fields().ByName("metadata")
	if field == nil {
		return
	}
	of := &common.Metadata{Hostname: target} //nolint:staticcheck // Nodes still answer so, deprecated or not.
	if err != nil {
		of.Error, of.Status = err.Error(), status.Convert(err).Proto() //nolint:staticcheck // as above
	}
	message.Set(field, protoreflect.ValueOfMessage(of.ProtoReflect()))
}

// forwardStream passes a stream on, in both directions.
func (b *boot) forwardStream(stream grpc.ServerStream, targets []string, many bool, full string, roles role.Set) error {
	m, err := describe(full)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(passedOn(stream.Context(), roles))
	defer cancel()
	upstreams, errs := make([]grpc.ClientStream, len(targets)), make([]error, len(targets))
	for i, target := range targets {
		conn, err := b.connect(target)
		if err == nil {
			upstreams[i], err = conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: m.IsStreamingClient(), ServerStreams: true}, full)
		}
		errs[i] = err
	}
	go passRequests(stream, upstreams, m, cancel)

	var sending sync.Mutex
	send := func(message proto.Message) error {
		sending.Lock()
		defer sending.Unlock()
		return stream.SendMsg(message)
	}
	var answering sync.WaitGroup
	for i, target := range targets {
		answering.Go(func() {
			if errs[i] == nil {
				errs[i] = passAnswers(upstreams[i], m, func(message proto.Message) error {
					if many {
						mark(message.ProtoReflect(), target, nil)
					}
					return send(message)
				})
			}
			if many && errs[i] != nil {
				failed := m.out.New()
				mark(failed, target, errs[i])
				errs[i] = send(failed.Interface())
			}
		})
	}
	answering.Wait()
	if !many {
		return errs[0]
	}
	return errors.Join(errs...)
}

// passRequests gives every node what the caller sends. It ends with the caller's stream.
func passRequests(from grpc.ServerStream, to []grpc.ClientStream, m method, cancel context.CancelFunc) {
	for {
		message := m.in.New().Interface()
		err := from.RecvMsg(message)
		if err != nil && !errors.Is(err, io.EOF) {
			cancel()
			return
		}
		for _, upstream := range to {
			// An error shows where the answers are read.
			switch {
			case upstream == nil:
			case err != nil:
				_ = upstream.CloseSend()
			default:
				_ = upstream.SendMsg(message)
			}
		}
		if err != nil {
			return
		}
	}
}

func passAnswers(from grpc.ClientStream, m method, send func(proto.Message) error) error {
	for {
		message := m.out.New().Interface()
		if err := from.RecvMsg(message); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := send(message); err != nil {
			return err
		}
	}
}
