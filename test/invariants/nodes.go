// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// ownAgent begins the user agents of Ichor's managers.
const ownAgent = "ichor-"

// checkNodes reads what the API servers of the cluster have noted: a Node is deleted by Cluster API, after its machine is gone.
func (w *Watch) checkNodes() error {
	if w.options.AuditLogs == nil {
		return nil
	}

	logs, err := w.options.AuditLogs()
	if err != nil {
		return fmt.Errorf("audit logs: %w", err)
	}

	for _, log := range logs {
		content, err := os.ReadFile(log)
		if os.IsNotExist(err) {
			continue // the cluster has just gone
		}

		if err != nil {
			return fmt.Errorf("audit log: %w", err)
		}

		if err := w.readDeletions(content); err != nil {
			return fmt.Errorf("audit log %s: %w", log, err)
		}
	}

	return nil
}

// nodesDeleted is in each line about a Node that was deleted, and in few others.
var nodesDeleted = []byte(`"verb":"delete`)

// readDeletions reads an audit log. What follows the last newline is still being written.
func (w *Watch) readDeletions(content []byte) error {
	for line := range bytes.Lines(content[:bytes.LastIndexByte(content, '\n')+1]) {
		if !bytes.Contains(line, nodesDeleted) || !bytes.Contains(line, []byte(`"resource":"nodes"`)) {
			continue
		}

		event := auditv1.Event{}
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}

		w.mu.Lock()

		if strings.HasPrefix(event.UserAgent, ownAgent) {
			w.fault(Nodes, "%s deletes the Node %s", event.UserAgent, event.ObjectRef.Name)
		} else {
			w.deleted[event.ObjectRef.Name] = event.UserAgent
		}

		w.mu.Unlock()
	}

	return nil
}

// NodeDeletedBy is the user agent of who has deleted a Node, as far as the last Check has seen; empty if nobody has.
func (w *Watch) NodeDeletedBy(node string) string {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.deleted[node]
}
