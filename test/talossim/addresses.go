// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// addressTries bounds the search: there are millions of addresses, and a few thousand are taken at most.
const addressTries = 200

// addressReservations are loopback addresses that no other world on this machine, in any process, hands out while they
// are held. The kernel frees them when the process ends.
type addressReservations struct {
	locks map[string]*os.File // by address
}

// reserve finds an address on which the Talos port is free.
func (r *addressReservations) reserve() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("ichor-test-addresses-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("reserve an address: %w", err)
	}
	for range addressTries {
		// 127.0.y.z is left to everybody else.
		address := net.IPv4(127, byte(1+rand.IntN(254)), byte(rand.IntN(256)), byte(1+rand.IntN(254))).String()
		held, err := r.hold(dir, address)
		if err != nil {
			return "", fmt.Errorf("reserve an address: %w", err)
		}
		if held && canListen(address) {
			return address, nil
		}
		if held {
			if err := r.free(address); err != nil {
				return "", fmt.Errorf("reserve an address: %w", err)
			}
		}
	}
	return "", fmt.Errorf("reserve an address: none of %d tried in 127.0.0.0/8 is free", addressTries)
}

// hold locks an address; false means that another world has it.
func (r *addressReservations) hold(dir, address string) (bool, error) {
	lock, err := os.OpenFile(filepath.Join(dir, address), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return false, err
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false, lock.Close()
	}
	if r.locks == nil {
		r.locks = map[string]*os.File{}
	}
	r.locks[address] = lock
	return true, nil
}

// free gives one address back. One that is not held is left alone.
func (r *addressReservations) free(address string) error {
	lock := r.locks[address]
	if lock == nil {
		return nil
	}
	delete(r.locks, address)
	// The next one who opens the file while it is removed holds a file that nobody else sees: harmless, since each
	// address is tried before it is used.
	return errors.Join(os.Remove(lock.Name()), lock.Close())
}

func (r *addressReservations) release() error {
	var errs []error
	for address := range r.locks {
		errs = append(errs, r.free(address))
	}
	return errors.Join(errs...)
}

func canListen(address string) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(constants.ApidPort)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
