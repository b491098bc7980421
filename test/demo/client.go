// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/stage"
)

func newClient(kubeconfig string) (client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}

	return client.NewWithWatch(config, client.Options{Scheme: stage.NewScheme()})
}
