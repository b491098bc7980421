// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

const (
	// definitionsTimeout bounds the wait for our definitions. They come with the manager, and take seconds to be served.
	definitionsTimeout  = time.Minute
	definitionsInterval = 250 * time.Millisecond
)

// waitForDefinitions waits until the API server serves the kind that the manager cannot be made without. An installation creates
// definitions and Deployment at once, so that the manager may be there first; without the wait it would end, and be started again
// after a pause.
func waitForDefinitions(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("wait for our definitions: %w", err)
	}

	told := false

	err = wait.PollUntilContextTimeout(ctx, definitionsInterval, definitionsTimeout, true, func(context.Context) (bool, error) {
		served, err := client.ServerResourcesForGroupVersion(bootstrapv1.GroupVersion.String())
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}

		if err == nil && slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == "TalosConfigPatch" }) {
			return true, nil
		}

		if !told {
			klog.Background().Info("Waiting until the API server serves our definitions", "groupVersion", bootstrapv1.GroupVersion.String())

			told = true
		}

		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for our definitions: TalosConfigPatch of %s is not served; install config/bootstrap/crd: %w", bootstrapv1.GroupVersion, err)
	}

	return nil
}
