// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"slices"
	"strings"

	"github.com/maesh-dev/ichor/test/harness"
)

// writing are the verbs that change something.
var writing = []string{"create", "update", "patch", "delete", "deletecollection"}

// tally counts the requests of a manager in a namespace, as the API server has noted them.
type tally struct {
	namespace string

	// machines are the writes for each machine: of its TalosConfig and of its data Secret, which have its name.
	machines map[string][]string

	// secrets is how many data Secrets were created.
	secrets int

	// others are the writes that are no machine's, and events those of events.
	others, events int

	// refused are writes that the API server has refused: they change nothing, and are not among the others.
	refused int

	// live are the reads of single objects.
	live []string
}

func newTally(namespace string) tally {
	return tally{namespace: namespace, machines: map[string][]string{}}
}

// add counts a request and says whether it is a write that the API server took, events aside.
func (t *tally) add(request harness.Request) bool {
	switch {
	case request.Namespace != t.namespace:
		return false
	case request.Verb == "get":
		t.live = append(t.live, request.URI)

		return false
	case !slices.Contains(writing, request.Verb):
		return false
	case request.Resource == "events":
		t.events++

		return false
	case request.Code >= http.StatusBadRequest:
		t.refused++

		return false
	}

	t.count(request)

	return true
}

func (t *tally) count(request harness.Request) {
	data := request.Resource == "secrets" && strings.HasPrefix(request.Name, "m-")

	if !data && request.Resource != "talosconfigs" {
		t.others++

		return
	}

	if data && request.Verb == "create" {
		t.secrets++
	}

	t.machines[request.Name] = append(t.machines[request.Name], request.Verb+" "+request.Resource)
}

// writes are all that were taken.
func (t *tally) writes() int {
	sum := t.others + t.events

	for _, writes := range t.machines {
		sum += len(writes)
	}

	return sum
}

// mostOfMachine are the writes for the machine for which there were the most.
func (t *tally) mostOfMachine() []string {
	var most []string

	for _, writes := range t.machines {
		if len(writes) > len(most) {
			most = writes
		}
	}

	return most
}
