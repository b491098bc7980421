// SPDX-License-Identifier: Apache-2.0

package talos

// Connections counts those that are kept.
func (c *Cluster) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.connections)
}

// ConnectionTo is the one to an address, or nil.
func (c *Cluster) ConnectionTo(address string) any {
	c.mu.Lock()
	defer c.mu.Unlock()

	if conn := c.connections[address]; conn != nil {
		return conn
	}

	return nil
}
