// SPDX-License-Identifier: Apache-2.0

// Package pausing keeps the Paused condition of Ichor's objects, as Cluster API's contract wants it. The reconcilers of the bootstrap provider
// import it. It is not pure: it writes status.
package pausing

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/paused"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ensure keeps the Paused condition of an object, whose Cluster may be nil, and says whether to stop here: because of a pause, or because the
// condition was written and the changed object comes back from the cache. The version is that of the object after the last write, empty
// without one.
//
// The generation is observed while the object is paused, too: nobody else notes it then, and tools that wait for a change to be seen, such as
// those that go by kstatus, would wait until the pause ends.
func Ensure(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, object paused.ConditionSetter, observed *int64,
) (stop bool, version string, err error) {
	noting := &notingClient{Client: c}

	isPaused, changed, err := paused.EnsurePausedCondition(ctx, noting, cluster, object)
	if err != nil && noting.fault != nil {
		// Cluster API's error is an aggregate, through which nobody sees what the API server has answered.
		err = fmt.Errorf("set the condition %s: %w", clusterv1.PausedCondition, noting.fault)
	}

	if err != nil || !isPaused || *observed == object.GetGeneration() {
		return isPaused || changed, noting.version, err
	}

	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return true, noting.version, fmt.Errorf("%T is no object", object)
	}

	*observed = object.GetGeneration()

	if err := noting.Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return true, noting.version, fmt.Errorf("observe the generation of a paused object: %w", err)
	}

	return true, noting.version, nil
}

// notingClient notes the resource version that a patch of the status has led to. Cluster API's function patches a copy of the object, and
// does not tell.
type notingClient struct {
	client.Client

	version string

	// fault is the last answer that was none.
	fault error
}

// Status is the writer that notes.
func (c *notingClient) Status() client.SubResourceWriter {
	return notingWriter{c.Client.Status(), c}
}

type notingWriter struct {
	client.SubResourceWriter

	client *notingClient
}

// Patch patches and notes.
func (w notingWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	err := w.SubResourceWriter.Patch(ctx, object, patch, options...)
	if w.client.fault = err; err == nil {
		w.client.version = object.GetResourceVersion()
	}

	return err
}
