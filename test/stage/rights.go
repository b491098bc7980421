// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"slices"
	"strings"

	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/rights"
)

// infrastructureRights are those on infrastructure kinds that docs/control-plane.md asks a provider to give.
var infrastructureRights = map[string][]string{
	"simmachines":         {"create", "delete", "list", "patch", "watch"},
	"simmachinetemplates": {"get", "list", "patch", "watch"},
}

// UnfitRights are the rights that the control-plane manager has lacked on a stage with Audit, and those that it has had no use for. What it
// needs to elect a leader, and to know who reads its metrics, is not among them: it does neither here. Nor is the update of finalizers, which
// nobody asks for by itself: API servers that enforce permissions of owner references want it of who makes an owner that blocks.
func (s *Stage) UnfitRights() ([]string, error) {
	requests, err := s.Requests(installation.ControlPlane.User())
	if err != nil {
		return nil, err
	}

	granted, faults := rights.Granted(s.controlPlane.Others, installation.ControlPlane.Account)
	granted = slices.DeleteFunc(granted, func(r rights.Right) bool {
		return r.Namespace != "" || r.Group == "authentication.k8s.io" || r.Group == "authorization.k8s.io" || strings.HasSuffix(r.Resource, "/finalizers")
	})

	for resource, verbs := range infrastructureRights {
		for _, verb := range verbs {
			granted = append(granted, rights.Right{Group: "infrastructure.ichor.maesh.dev", Resource: resource, Verb: verb})
		}
	}

	return append(faults, rights.Compare(granted, requests)...), nil
}
