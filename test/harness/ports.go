// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
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
			r.locks = append(r.locks, lock)
			return port, nil
		}
		_ = lock.Close()
	}
	return 0, fmt.Errorf("reserve a port: none of %d tried between %d and %d is free", portTries, firstPort, lastPort)
}

func (r *portReservations) release() error {
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
