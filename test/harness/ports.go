// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Ports are taken below the range from which systems take the ports of outgoing connections: such a connection could
// otherwise get a port between our look and the component's bind.
const (
	firstPort = 10000
	lastPort  = 19999
	portTries = 200
)

// portReservations are ports that no other harness on this machine, in any process, hands out while they are held. The
// kernel frees them when the process ends.
type portReservations struct {
	mu    sync.Mutex
	locks []*os.File
}

// reserve finds a free port of 127.0.0.1.
func (r *portReservations) reserve() (int, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("ichor-test-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return 0, fmt.Errorf("reserve a port: %w", err)
		}
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && canListen(port) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.locks = append(r.locks, lock)
			return port, nil
		}
		_ = lock.Close()
	}
	return 0, fmt.Errorf("reserve a port: none of %d tried between %d and %d is free", portTries, firstPort, lastPort)
}

// reserveExclusive waits until no other harness on this machine has a port, which need not be of the range of reserve.
func reserveExclusive(ctx context.Context, port int) (release func() error, err error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("ichor-test-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("reserve port %d: %w", port, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("reserve port %d: %w", port, err)
	}
	err = wait.PollUntilContextCancel(ctx, readyInterval, true, func(context.Context) (bool, error) {
		return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && canListen(port), nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reserve port %d: another process has it: %w", port, err), lock.Close())
	}
	return lock.Close, nil
}

func (r *portReservations) release() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, lock := range r.locks {
		errs = append(errs, lock.Close())
	}
	r.locks = nil
	return errors.Join(errs...)
}

// canListen looks at all addresses, since one of the components binds to all of them.
func canListen(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
