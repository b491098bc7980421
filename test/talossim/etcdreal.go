// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/crypto/x509"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/maesh-dev/ichor/test/process"
	"github.com/maesh-dev/ichor/test/tools"
)

const (
	// etcdInterval is how often a member that joins tries again.
	etcdInterval = 100 * time.Millisecond
	// etcdTimeout bounds a call; without a quorum etcd itself gives up after seven seconds.
	etcdTimeout = 8 * time.Second
	// componentGrace is how long a component may take to end when a node goes down in an orderly way or not.
	componentGrace = 2 * time.Second
)

// realEtcd is a member of a real etcd cluster: a process with the certificates that the machine configuration gives.
type realEtcd struct {
	path    string
	dir     string
	name    string
	address string
	ca      *x509.PEMEncodedCertificateAndKey
	args    map[string][]string
	faults  func() Faults
	// peers are the addresses of the other nodes that could be members.
	peers func() []string

	// starting is held while the process starts: a join may meet a bootstrap.
	starting sync.Mutex

	mu       sync.Mutex
	proc     *process.Process
	memberID uint64
}

func (e *realEtcd) dataDir() string { return filepath.Join(e.dir, "etcd") }

func (e *realEtcd) exists() bool {
	_, err := os.Stat(filepath.Join(e.dataDir(), "member"))
	return err == nil
}

func (e *realEtcd) id() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.memberID
}

func (e *realEtcd) running() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.proc != nil
}

func clientURL(address string) string { return "https://" + net.JoinHostPort(address, "2379") }
func peerURL(address string) string   { return "https://" + net.JoinHostPort(address, "2380") }

// certificates writes what etcd serves and dials with, and returns the authority's file.
func (e *realEtcd) certificates() (ca string, err error) {
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return "", err
	}
	ca = filepath.Join(e.dir, "etcd-ca.crt")
	if err := os.WriteFile(ca, e.ca.Crt, 0o600); err != nil {
		return "", err
	}
	both := []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth, stdx509.ExtKeyUsageClientAuth}
	names := []string{e.name, "localhost"}
	for _, file := range []string{"etcd-server", "etcd-peer"} {
		if err := writePair(e.ca, e.dir, file, e.name, names, []string{e.address, "127.0.0.1"}, both); err != nil {
			return "", err
		}
	}
	return ca, nil
}

// run starts the process and learns the member's ID.
func (e *realEtcd) run(ctx context.Context, state, initialCluster string) error {
	e.starting.Lock()
	defer e.starting.Unlock()
	if e.running() {
		return nil
	}
	ca, err := e.certificates()
	if err != nil {
		return err
	}
	args := map[string][]string{
		"name": {e.name}, "data-dir": {e.dataDir()},
		"listen-client-urls": {clientURL(e.address)}, "advertise-client-urls": {clientURL(e.address)},
		"listen-peer-urls": {peerURL(e.address)}, "initial-advertise-peer-urls": {peerURL(e.address)},
		"initial-cluster": {initialCluster}, "initial-cluster-state": {state},
		"client-cert-auth": {"true"}, "trusted-ca-file": {ca},
		"cert-file": {filepath.Join(e.dir, "etcd-server.crt")}, "key-file": {filepath.Join(e.dir, "etcd-server.key")},
		"peer-client-cert-auth": {"true"}, "peer-trusted-ca-file": {ca},
		"peer-cert-file": {filepath.Join(e.dir, "etcd-peer.crt")}, "peer-key-file": {filepath.Join(e.dir, "etcd-peer.key")},
		// The data need not outlive a crash of the machine that the test runs on.
		"unsafe-no-fsync": {"true"}, "log-level": {"warn"},
	}
	proc, err := process.Start(ctx, e.dir, process.Program{
		Name: "etcd", Path: e.path, Args: flags(args, e.args), Grace: componentGrace,
		Ready: func(ctx context.Context) error {
			id, err := e.ownID(ctx)
			if err == nil {
				e.mu.Lock()
				e.memberID = id
				e.mu.Unlock()
			}
			return err
		},
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proc = proc
	return nil
}

// ownID asks the member itself. It answers before it has a leader, and as a learner.
func (e *realEtcd) ownID(ctx context.Context) (uint64, error) {
	var id uint64
	err := e.with(ctx, []string{e.address}, func(ctx context.Context, c *clientv3.Client) error {
		response, err := c.Status(ctx, clientURL(e.address))
		if err == nil {
			id = response.Header.MemberId
		}
		return err
	})
	return id, err
}

func (e *realEtcd) bootstrap(ctx context.Context) error {
	return e.run(ctx, "new", e.name+"="+peerURL(e.address))
}

func (e *realEtcd) start(ctx context.Context) error {
	// What the data directory holds counts; the flags only have to be well formed.
	return e.run(ctx, "existing", e.name+"="+peerURL(e.address))
}

func (e *realEtcd) join(ctx context.Context) error {
	ticker := time.NewTicker(etcdInterval)
	defer ticker.Stop()
	var rows []*etcdserverpb.Member
	for {
		done, err := e.tryJoin(ctx, &rows)
		if done {
			return nil
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// tryJoin does the next thing on the way to a voting member. A place in the list is taken once in a boot; rows is the list as
// it was then.
func (e *realEtcd) tryJoin(ctx context.Context, rows *[]*etcdserverpb.Member) (done bool, err error) {
	if e.running() {
		if e.faults().EtcdNeverCatchesUp {
			return false, nil
		}
		err := e.anywhere(ctx, func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.MemberPromote(ctx, e.id())
			return err
		})
		return err == nil || errors.Is(err, rpctypes.ErrMemberNotLearner), err
	}
	if e.exists() { // told to bootstrap meanwhile
		return true, nil
	}
	if *rows == nil {
		*rows, err = e.add(ctx)
	}
	if err != nil || e.faults().EtcdNeverStarts {
		return false, err
	}
	var initial []string
	for _, m := range *rows {
		name := m.Name
		if slices.Contains(m.PeerURLs, peerURL(e.address)) {
			name = e.name
		}
		for _, url := range m.PeerURLs {
			initial = append(initial, name+"="+url)
		}
	}
	return false, e.run(ctx, "existing", strings.Join(initial, ","))
}

// add gives the node a place in the list, as its data directory is empty, and returns the list. A member with its name is one
// that lost its data, and is removed first; a learner at its address that never started is taken for its own, from an attempt
// before. Source: Talos, internal/app/machined/pkg/system/services/etcd.go, addMember.
func (e *realEtcd) add(ctx context.Context) (rows []*etcdserverpb.Member, err error) {
	err = e.with(ctx, e.peers(), func(ctx context.Context, c *clientv3.Client) error {
		list, err := c.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range list.Members {
			if m.Name == e.name {
				if _, err := c.MemberRemove(ctx, m.ID); err != nil {
					return err
				}
			}
		}
		added, err := c.MemberAddAsLearner(ctx, []string{peerURL(e.address)})
		if err == nil {
			rows = added.Members
			return nil
		}
		left := func(m *etcdserverpb.Member) bool {
			return slices.Equal(m.PeerURLs, []string{peerURL(e.address)}) && m.IsLearner && m.Name == ""
		}
		if errors.Is(err, rpctypes.ErrPeerURLExist) && slices.ContainsFunc(list.Members, left) {
			rows = list.Members
			return nil
		}
		return err
	})
	return rows, err
}

func (e *realEtcd) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.proc != nil {
		// A member that was removed ends by itself, which is no news here.
		_ = e.proc.Kill()
		e.proc = nil
	}
}

func (e *realEtcd) wipe() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.memberID = 0
	return os.RemoveAll(e.dataDir())
}

// with calls etcd at these nodes.
func (e *realEtcd) with(ctx context.Context, addresses []string, call func(context.Context, *clientv3.Client) error) error {
	if len(addresses) == 0 {
		return errNotRunning
	}
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(e.ca)
	if err != nil {
		return err
	}
	pair, err := x509.NewKeyPair(authority, x509.CommonName("talos"), x509.NotBefore(time.Now().Add(-time.Minute)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}))
	if err != nil {
		return err
	}
	roots := stdx509.NewCertPool()
	roots.AppendCertsFromPEM(e.ca.Crt)
	var urls []string
	for _, address := range addresses {
		urls = append(urls, clientURL(address))
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	c, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: urls, DialTimeout: etcdTimeout, Logger: quiet,
		TLS: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{*pair.Certificate}, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // The call is over.
	return call(ctx, c)
}

func (e *realEtcd) local(ctx context.Context, call func(context.Context, *clientv3.Client) error) error {
	if !e.running() {
		return errNoClient
	}
	return e.with(ctx, []string{e.address}, call)
}

// anywhere calls this member if it runs, and the others too.
func (e *realEtcd) anywhere(ctx context.Context, call func(context.Context, *clientv3.Client) error) error {
	addresses := e.peers()
	if e.running() {
		addresses = append([]string{e.address}, addresses...)
	}
	return e.with(ctx, addresses, call)
}

// etcdTool is the program.
func etcdTool(ctx context.Context) (string, error) { return toolPath(ctx, tools.Etcd) }
