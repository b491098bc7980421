// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/maesh-dev/ichor/internal/talos"
)

// answers is a node that answers Bootstrap.
type answers struct {
	nodes
	err error
}

func (a answers) Bootstrap(context.Context, string) error { return a.err }

// TestBootstrapIsRemembered has the observer remember each call that a node may have begun to follow, and no other: who remembers too little stops
// the etcd that the call before started, who remembers too much waits for nothing.
func TestBootstrapIsRemembered(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

	cases := map[string]struct {
		err        error
		remembered bool
		fails      bool
	}{
		"it says that it has begun":  {nil, true, false},
		"it has data already":        {talos.ErrAlreadyExists, true, false},
		"the connection is cut":      {talos.ErrUnreachable, true, true},
		"no answer in time":          {talos.ErrSlow, true, true},
		"we are stopped meanwhile":   {talos.ErrStopped, true, true},
		"it fails, nobody knows how": {talos.ErrFailed, true, true},
		"another error":              {errors.New("some day's new error"), true, true},
		"it is not ready":            {talos.ErrNotReady, false, true},
		"it has no config yet":       {talos.ErrMaintenance, false, true},
		"it does not know us":        {talos.ErrRefused, false, true},
		"it is another machine's":    {talos.ErrAnotherNode, false, true},
		"it has no address":          {talos.ErrNoAddress, false, true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := tc.err
			if err != nil {
				err = fmt.Errorf("machine cp-1: %w", err)
			}

			object := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "cp-1", UID: "u1"}}
			plane := newMemory().of(types.NamespacedName{Name: "demo"}, "u0")
			seen := &observation{plane: plane, nodes: answers{err: err}, machines: []*machine{{object: object}}}
			r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(now)}

			if got := r.callBootstrap(t.Context(), seen, "cp-1"); (got != nil) != tc.fails {
				t.Errorf("the call gives %v", got)
			}

			want := time.Time{}
			if tc.remembered {
				want = now
			}

			if got := plane.bootstraps["u1"]; !got.Equal(want) {
				t.Errorf("remembered is %s, want %s", got, want)
			}

			if plane.keep(map[types.UID]bool{}); len(plane.bootstraps) != 0 {
				t.Error("a Machine that is gone is remembered")
			}
		})
	}
}
