// SPDX-License-Identifier: Apache-2.0

// Package moving sees to it that `clusterctl move` takes along what users refer to by name. It is not pure; the reconcilers of kinds with
// references import it.
package moving

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// Label gives those of the Secrets and ConfigMaps that exist the label that a move goes by. Nothing else of them is changed or read, and
// nothing is written for one that has the label, as the metadata cache has it.
func Label(ctx context.Context, writer client.Writer, reader *inputs.Reader, namespace string, keys ...machineconfig.ObjectKey) error {
	for _, key := range keys {
		object, err := reader.Metadata(ctx, namespace, key)
		if err != nil {
			return err
		}

		if object == nil {
			continue
		}

		if _, labelled := object.Labels[clusterctlv1.ClusterctlMoveLabel]; labelled {
			continue
		}

		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+clusterctlv1.ClusterctlMoveLabel+`":""}}}`))
		if err := writer.Patch(ctx, object.DeepCopy(), patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("%s %s: set the label %s: %w", key.Kind, key.Name, clusterctlv1.ClusterctlMoveLabel, secrets.WithoutWords(err))
		}
	}

	return nil
}
