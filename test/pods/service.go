// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Endpoint is the host and port of a process behind a port of a Service with a cluster IP, as kube-proxy would choose it: of a
// ready Pod. The error says what the Service lacks.
func (r *Runner) Endpoint(ctx context.Context, clusterIP string, port int) (string, error) {
	services := &corev1.ServiceList{}
	if err := r.List(ctx, services); err != nil {
		return "", fmt.Errorf("services: %w", err)
	}

	for i := range services.Items {
		if services.Items[i].Spec.ClusterIP == clusterIP {
			return r.behind(ctx, &services.Items[i], port)
		}
	}

	return "", fmt.Errorf("no Service has the address %s", clusterIP)
}

func (r *Runner) behind(ctx context.Context, service *corev1.Service, port int) (string, error) {
	name := client.ObjectKeyFromObject(service)

	if len(service.Spec.Selector) == 0 {
		return "", fmt.Errorf("service %s selects no Pods", name)
	}

	var wanted *corev1.ServicePort

	for i := range service.Spec.Ports {
		if int(service.Spec.Ports[i].Port) == port {
			wanted = &service.Spec.Ports[i]
		}
	}

	if wanted == nil {
		return "", fmt.Errorf("service %s has no port %d", name, port)
	}

	selected := &corev1.PodList{}
	if err := r.List(ctx, selected, client.InNamespace(service.Namespace), client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(service.Spec.Selector)}); err != nil {
		return "", fmt.Errorf("service %s: %w", name, err)
	}

	for i := range selected.Items {
		object := &selected.Items[i]

		r.mu.Lock()
		p, ok := r.pods[object.UID]
		r.mu.Unlock()

		if !ok || !ready(object) {
			continue
		}

		local, err := p.port(&object.Spec.Containers[0], wanted.TargetPort)
		if err != nil {
			return "", fmt.Errorf("service %s: %w", name, err)
		}

		return net.JoinHostPort(p.ip, strconv.Itoa(local)), nil
	}

	return "", fmt.Errorf("service %s has no endpoint: none of %d Pods is ready", name, len(selected.Items))
}

func ready(object *corev1.Pod) bool {
	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue && object.DeletionTimestamp == nil
		}
	}

	return false
}
