// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/maesh-dev/ichor/test/tools"
)

// Names that Cluster API's release gives to its core manager's objects.
const (
	capiNamespace      = "capi-system"
	capiServiceAccount = "capi-manager"
	capiAggregatedRole = "capi-aggregated-manager-role"
)

// capiComponents are the objects of the release manifest that mean something outside a Pod.
type capiComponents struct {
	crds    []*apiextensionsv1.CustomResourceDefinition
	objects []*unstructured.Unstructured
}

// capiCore is what is decided about the core manager before it starts.
type capiCore struct {
	components capiComponents
	webhooks   WebhookServer
}

// readCAPIComponents sorts the release manifest. Deployment, Service and what cert-manager would handle are left out:
// the manager is a process here, and its certificate comes from the cluster's authority.
func readCAPIComponents(path string) (capiComponents, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return capiComponents{}, err
	}
	objects, err := decodeYAML(content)
	if err != nil {
		return capiComponents{}, fmt.Errorf("%s: %w", path, err)
	}
	var components capiComponents
	for _, object := range objects {
		switch object.GetKind() {
		case "CustomResourceDefinition":
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
				return capiComponents{}, fmt.Errorf("%s: CRD %s: %w", path, object.GetName(), err)
			}
			// Tests use the storage version alone, which needs no conversion, so the definitions also serve a cluster
			// without the core manager.
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
			components.crds = append(components.crds, crd)
		case "Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
			"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			components.objects = append(components.objects, object)
		}
	}
	return components, nil
}

// CAPICRDs returns Cluster API's core definitions as its release ships them, but without conversion, for a cluster
// without the core manager. (With it, they are installed already.) They are built if they are not there.
func CAPICRDs(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	path, err := tools.Path(ctx, tools.CAPICoreComponents)
	if err != nil {
		return nil, err
	}
	components, err := readCAPIComponents(path)
	if err != nil {
		return nil, err
	}
	return components.crds, nil
}

func (mc *ManagementCluster) prepareCAPICore() (*capiCore, error) {
	components, err := readCAPIComponents(mc.paths[tools.CAPICoreComponents])
	if err != nil {
		return nil, err
	}
	webhooks, err := mc.NewWebhookServer(tools.CAPICore)
	if err != nil {
		return nil, err
	}
	return &capiCore{components: components, webhooks: webhooks}, nil
}

// applyCAPICore creates namespace, roles and webhooks. The webhooks are there before their server: nothing that comes in
// between creates an object that they would refuse.
func (mc *ManagementCluster) applyCAPICore(ctx context.Context, core *capiCore) error {
	if err := mc.PointWebhooks(core.webhooks, core.components.objects...); err != nil {
		return err
	}
	return mc.apply(ctx, core.components.objects...)
}

func (mc *ManagementCluster) startCAPICore(ctx context.Context, core *capiCore) error {
	// Without its rights, which the controller manager puts together, the core manager would begin with a series of
	// refusals and long waits.
	if err := mc.WaitForAggregatedRole(ctx, capiAggregatedRole); err != nil {
		return err
	}
	kubeconfig, err := mc.UserKubeconfig("system:serviceaccount:"+capiNamespace+":"+capiServiceAccount,
		"system:serviceaccounts", "system:serviceaccounts:"+capiNamespace)
	if err != nil {
		return err
	}
	healthPort, err := mc.ports.Port()
	if err != nil {
		return err
	}
	return mc.run(ctx, program{
		name: tools.CAPICore, path: mc.paths[tools.CAPICore], grace: componentGrace,
		args: []string{
			"--kubeconfig=" + kubeconfig,
			"--leader-elect=false",
			"--diagnostics-address=127.0.0.1:0",
			"--insecure-diagnostics=true",
			"--health-addr=" + loopbackAddress(healthPort),
			"--webhook-port=" + strconv.Itoa(core.webhooks.Port),
			"--webhook-cert-dir=" + core.webhooks.CertDir,
			"--feature-gates=" + featureGates(mc.options.CAPIFeatureGates),
		},
		env:   []string{"POD_NAMESPACE=" + capiNamespace, "POD_NAME=" + tools.CAPICore},
		ready: answers("http://"+loopbackAddress(healthPort)+"/readyz", nil),
	})
}

// WaitForAggregatedRole waits until a ClusterRole that gathers its rules from others has some. Without kube-controller-manager it never has,
// and is not waited for.
func (mc *ManagementCluster) WaitForAggregatedRole(ctx context.Context, name string) error {
	if !mc.options.ControllerManager {
		return nil
	}
	role := &rbacv1.ClusterRole{}
	err := wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		err := mc.client.Get(ctx, types.NamespacedName{Name: name}, role)
		return err == nil && len(role.Rules) > 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for the rules of ClusterRole %s: %w", name, err)
	}
	return nil
}

func featureGates(gates map[string]bool) string {
	settings := []string{}
	if _, set := gates["ReconcilerRateLimiting"]; !set {
		settings = append(settings, "ReconcilerRateLimiting=false")
	}
	for name, enabled := range gates {
		settings = append(settings, fmt.Sprintf("%s=%t", name, enabled))
	}
	slices.Sort(settings)
	return strings.Join(settings, ",")
}
