// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"net"
	"strconv"
)

func loopbackAddress(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
