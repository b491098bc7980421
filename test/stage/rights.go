// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"slices"

	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/rights"
)

// infrastructureRights are those on infrastructure kinds that docs/control-plane.md asks a provider to give.
var infrastructureRights = map[string][]string{
	"simmachines":         {"create", "delete", "get", "list", "patch", "watch"},
	"simmachinetemplates": {"get", "list", "patch", "watch"},
}

// UnfitRights are the rights that the control-plane manager has lacked on a stage with Audit, and those that it has had no use for. What it
// needs to elect a leader, and to know who reads its metrics, is not among them: it does neither here.
func (s *Stage) UnfitRights() ([]string, error) {
	requests, err := s.Requests(installation.ControlPlane.User())
	if err != nil {
		return nil, err
	}

	granted, faults := rights.Granted(s.controlPlane.Others, installation.ControlPlane.Account)
	granted = slices.DeleteFunc(granted, func(r rights.Right) bool {
		return r.Namespace != "" || r.Group == "authentication.k8s.io" || r.Group == "authorization.k8s.io"
	})

	for resource, verbs := range infrastructureRights {
		for _, verb := range verbs {
			granted = append(granted, rights.Right{Group: "infrastructure.ichor.maesh.dev", Resource: resource, Verb: verb})
		}
	}

	return append(faults, rights.Compare(granted, requests)...), nil
}
