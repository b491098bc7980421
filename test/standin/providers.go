// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/test/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/harness"
)

// period is how often the providers look at everything. They look into a cache.
const period = 50 * time.Millisecond

// The kinds that the providers reconcile.
var (
	ClusterKind      = builder.InfrastructureGroupVersion.WithKind(builder.GenericInfrastructureClusterKind)
	MachineKind      = builder.InfrastructureGroupVersion.WithKind(builder.GenericInfrastructureMachineKind)
	MachinePoolKind  = builder.InfrastructureGroupVersion.WithKind(builder.GenericInfrastructureMachinePoolKind)
	ControlPlaneKind = builder.ControlPlaneGroupVersion.WithKind(builder.GenericControlPlaneKind)
)

// CRDs are the definitions of both providers, those of templates included.
func CRDs() []*apiextensionsv1.CustomResourceDefinition {
	return append(harness.InfrastructureCRDs(),
		builder.GenericInfrastructureMachinePoolCRD.DeepCopy(),
		builder.GenericInfrastructureMachinePoolTemplateCRD.DeepCopy(),
		builder.GenericControlPlaneCRD.DeepCopy(),
		builder.GenericControlPlaneTemplateCRD.DeepCopy(),
	)
}

// Providers are an infrastructure provider and a control-plane provider of one management cluster.
type Providers struct {
	reader   cache.Cache
	writer   client.Client
	workload client.Client
}

// Start starts the providers, which run until ctx is done. Machines become Nodes of the workload cluster, which may be the
// management cluster itself. The function that is returned waits for their end and says whether they have failed before.
func Start(ctx context.Context, management *rest.Config, workload client.Client) (func() error, error) {
	scheme := harness.NewScheme()

	reader, err := cache.New(management, cache.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cache of the stand-in providers: %w", err)
	}

	writer, err := client.New(management, client.Options{
		Scheme: scheme, Cache: &client.CacheOptions{Reader: reader, Unstructured: true},
	})
	if err != nil {
		return nil, fmt.Errorf("client of the stand-in providers: %w", err)
	}

	p := &Providers{reader: reader, writer: writer, workload: workload}
	ended := make(chan error, 2)

	go func() { ended <- reader.Start(ctx) }()
	go func() { ended <- p.run(ctx) }()

	return func() error { return errors.Join(<-ended, <-ended) }, nil
}

func (p *Providers) run(ctx context.Context) error {
	// Until it is started, the cache refuses to be read.
	if !p.reader.WaitForCacheSync(ctx) {
		return nil
	}

	err := wait.PollUntilContextCancel(ctx, period, true, func(ctx context.Context) (bool, error) {
		return false, p.reconcileAll(ctx)
	})
	if ctx.Err() == nil {
		return fmt.Errorf("stand-in providers: %w", err)
	}

	// Told to end; what a request has to say about that does not matter.
	return nil
}

// reconcileAll looks at every object once.
func (p *Providers) reconcileAll(ctx context.Context) error {
	for kind, reconcile := range map[schema.GroupVersionKind]func(context.Context, *unstructured.Unstructured) error{
		ClusterKind:      p.reconcileCluster,
		MachineKind:      p.reconcileMachine,
		MachinePoolKind:  p.reconcileMachinePool,
		ControlPlaneKind: p.reconcileControlPlane,
	} {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(kind)

		if err := p.writer.List(ctx, objects); err != nil {
			return fmt.Errorf("list %s: %w", kind.Kind, err)
		}

		for i := range objects.Items {
			object := &objects.Items[i]

			active, err := p.active(ctx, object)
			if err == nil && active {
				err = reconcile(ctx, object)
			}

			// What has changed or gone in the meantime is looked at again.
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return fmt.Errorf("%s %s: %w", kind.Kind, client.ObjectKeyFromObject(object), err)
			}
		}
	}

	return nil
}

// active says whether something may be done for the object: Cluster API has taken it over, and its Cluster is not paused.
func (p *Providers) active(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	name := object.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" || object.GetDeletionTimestamp() != nil {
		return false, nil
	}

	cluster := &clusterv1.Cluster{}
	if err := p.writer.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, cluster); err != nil {
		return false, client.IgnoreNotFound(err)
	}

	return !annotations.IsPaused(cluster, object), nil
}

// reconcileCluster gives the cluster an endpoint, unless it has one, and says that its infrastructure is there.
func (p *Providers) reconcileCluster(ctx context.Context, object *unstructured.Unstructured) error {
	if host, _, err := unstructured.NestedString(object.Object, "spec", "controlPlaneEndpoint", "host"); err != nil || host == "" {
		return errors.Join(err, p.patch(ctx, object, map[string]any{
			"controlPlaneEndpoint": map[string]any{"host": object.GetName() + ".example.com", "port": int64(6443)},
		}, nil))
	}

	return p.patch(ctx, object, nil, provisioned(nil))
}

// provisioned is the status of infrastructure that is there.
func provisioned(more map[string]any) map[string]any {
	status := map[string]any{"initialization": map[string]any{"provisioned": true}}
	maps.Copy(status, more)

	return status
}

// patch sets fields of spec and status that have other values.
func (p *Providers) patch(ctx context.Context, object *unstructured.Unstructured, spec, status map[string]any) error {
	if changed, err := withFields(object, "spec", spec); err != nil {
		return err
	} else if changed != nil {
		return p.writer.Patch(ctx, changed, client.MergeFrom(object))
	}

	changed, err := withFields(object, "status", status)
	if err != nil || changed == nil {
		return err
	}

	return p.writer.Status().Patch(ctx, changed, client.MergeFrom(object))
}

// hasData says whether Cluster API has handed bootstrap data over, and there is some.
func (p *Providers) hasData(ctx context.Context, namespace string, bootstrap clusterv1.Bootstrap) (bool, error) {
	if bootstrap.DataSecretName == nil {
		return false, nil
	}

	secret := &corev1.Secret{}
	if err := p.writer.Get(ctx, client.ObjectKey{Namespace: namespace, Name: *bootstrap.DataSecretName}, secret); err != nil {
		return false, err
	}

	return len(secret.Data["value"]) > 0, nil
}
