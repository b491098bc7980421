// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

// processAttributes put a component in a process group of its own, so that an interrupt at the terminal reaches us
// alone and we stop the components in order, and have the kernel end it when we are killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
