// SPDX-License-Identifier: Apache-2.0

package loopback

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
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Ports are taken below the range from which systems take the ports of outgoing connections: such a connection could
// otherwise get a port between our look and the program's bind.
const (
	firstPort = 10000
	lastPort  = 19999
)

const (
	// tries bounds a search: of the thousands of ports, and the millions of addresses, few are taken.
	tries = 200

	// waitInterval is how often a wait for what another has looks again.
	waitInterval = 50 * time.Millisecond
)

// Reservations are what one world has reserved. The zero value has nothing. Its methods may be called from several goroutines.
type Reservations struct {
	mu    sync.Mutex
	locks map[string]*os.File
}

// Port reserves a port that is free on all addresses.
func (r *Reservations) Port() (int, error) {
	for range tries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)

		held, err := r.hold(portName(port), func() bool { return canListen("", port) })
		if err != nil {
			return 0, fmt.Errorf("reserve a port: %w", err)
		}

		if held {
			return port, nil
		}
	}

	return 0, fmt.Errorf("reserve a port: none of %d tried between %d and %d is free", tries, firstPort, lastPort)
}

// Address reserves an address on which these ports are free.
func (r *Reservations) Address(ports ...int) (string, error) {
	for range tries {
		// 127.0.y.z is left to everybody else, and 127.200.y.z to package pods.
		first := byte(1 + rand.IntN(199))
		address := net.IPv4(127, first, byte(rand.IntN(256)), byte(1+rand.IntN(254))).String()

		held, err := r.hold(address, func() bool { return canListen(address, ports...) })
		if err != nil {
			return "", fmt.Errorf("reserve an address: %w", err)
		}

		if held {
			return address, nil
		}
	}

	return "", fmt.Errorf("reserve an address: on none of %d tried in 127.0.0.0/8 are the ports %v free: a program that listens on all addresses takes them from all", tries, ports)
}

// Hold reserves a certain address. It is an error if another has it, in this process or elsewhere.
func (r *Reservations) Hold(address string) error {
	held, err := r.hold(address, func() bool { return true })
	if err == nil && !held {
		err = errors.New("it is reserved already, here or by another test world on this machine")
	}

	if err != nil {
		return fmt.Errorf("reserve the address %s: %w", address, err)
	}

	return nil
}

// Free gives an address back. One that is not held is left alone.
func (r *Reservations) Free(address string) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	lock := r.locks[address]
	delete(r.locks, address)

	if lock == nil {
		return nil
	}

	return unlock(lock)
}

// Release gives everything back.
func (r *Reservations) Release() error {
	r.mu.Lock()
	defer r.mu.Unlock()

	var errs []error
	for _, lock := range r.locks {
		errs = append(errs, unlock(lock))
	}

	r.locks = nil

	return errors.Join(errs...)
}

// hold reserves a name; false means that another has it, or that it is of no use.
func (r *Reservations) hold(name string, usable func() bool) (bool, error) {
	lock, err := tryLock(name)
	if lock == nil {
		return false, err
	}

	if !usable() {
		return false, unlock(lock)
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	if r.locks == nil {
		r.locks = map[string]*os.File{}
	}

	r.locks[name] = lock

	return true, nil
}

// WaitForPort waits until a certain port is free and nobody else has reserved it, and reserves it until release is called.
func WaitForPort(ctx context.Context, port int) (release func() error, err error) {
	r := &Reservations{}

	err = wait.PollUntilContextCancel(ctx, waitInterval, true, func(context.Context) (bool, error) {
		return r.hold(portName(port), func() bool { return canListen("", port) })
	})
	if err != nil {
		return nil, fmt.Errorf("reserve port %d: another process has it: %w", port, err)
	}

	return r.Release, nil
}

func portName(port int) string { return "port-" + strconv.Itoa(port) }

// tryLock locks the file that stands for a name; nil means that another has it.
func tryLock(name string) (*os.File, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("ichor-test-loopback-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}

	lock, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}

	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || !current(lock) {
		return nil, lock.Close()
	}

	return lock, nil
}

// current tells whether a file is still the one of its name: whoever had it before may have removed it after it was opened.
func current(file *os.File) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}

	named, err := os.Stat(file.Name())

	return err == nil && os.SameFile(opened, named)
}

// unlock removes the file and lets it go.
func unlock(lock *os.File) error {
	return errors.Join(os.Remove(lock.Name()), lock.Close())
}

// canListen tells whether ports are free on an address; an empty one stands for all.
func canListen(address string, ports ...int) bool {
	for _, port := range ports {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil || listener.Close() != nil {
			return false
		}
	}

	return true
}
