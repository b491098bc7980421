// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// definitionsTimeout bounds the wait for our definitions. They come with the manager, and take seconds to be served.
	// The Deployments' startup probes have more patience than that.
	definitionsTimeout  = time.Minute
	definitionsInterval = 250 * time.Millisecond
)

// waitForDefinitions waits until the API server serves the kind that the manager cannot be made without. An installation creates
// definitions and Deployment at once, so that the manager may be there first; without the wait it would end, and be started again
// after a pause. The hint says what has to be installed.
func waitForDefinitions(ctx context.Context, config *rest.Config, needed schema.GroupVersionKind, hint string) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("wait for our definitions: %w", err)
	}

	told := false

	err = wait.PollUntilContextTimeout(ctx, definitionsInterval, definitionsTimeout, true, func(context.Context) (bool, error) {
		served, err := client.ServerResourcesForGroupVersion(needed.GroupVersion().String())
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}

		if err == nil && slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == needed.Kind }) {
			return true, nil
		}

		if !told {
			klog.Background().Info("Waiting until the API server serves our definitions", "groupVersion", needed.GroupVersion().String())

			told = true
		}

		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for our definitions: %s of %s is not served; install %s: %w", needed.Kind, needed.GroupVersion(), hint, err)
	}

	return nil
}
