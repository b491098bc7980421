// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/maesh-dev/ichor/test/certmanager"
	"github.com/maesh-dev/ichor/test/loopback"
	"github.com/maesh-dev/ichor/test/pods"
)

// shownLines is how much of a log ShowLogs shows.
const shownLines = 50

// startPods begins to issue certificates and to run Pods.
func (mc *ManagementCluster) startPods(ctx context.Context) error {
	objects, err := decodeYAML(certmanager.CRDs)
	if err != nil {
		return err
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, len(objects))
	for i, object := range objects {
		crds[i] = &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crds[i]); err != nil {
			return err
		}
	}
	if err := mc.InstallCRDs(ctx, crds...); err != nil {
		return err
	}
	stop, err := certmanager.Start(ctx, mc.Config())
	if err != nil {
		return err
	}
	mc.parts = append(mc.parts, stop)

	runner, err := pods.Start(ctx, pods.Options{
		Config: mc.Config(), Images: mc.options.Images,
		Dir: filepath.Join(mc.dir, "pods"), LogDir: mc.logDir,
		ReservePort: mc.ports.Port, ReserveExclusive: loopback.WaitForPort,
	})
	if err != nil {
		return err
	}
	mc.parts = append(mc.parts, runner.Stop)
	mc.pods = runner
	endpoint := resolver(runner.Endpoint)
	mc.egress.resolve.Store(&endpoint)
	return nil
}

// KillPod ends the process of a Pod at once, as when it crashes. It is started again as a kubelet would do it.
func (mc *ManagementCluster) KillPod(ctx context.Context, name types.NamespacedName) error {
	if mc.pods == nil {
		return errors.New("the management cluster runs no Pods: name their images in its Options")
	}
	return mc.pods.Kill(ctx, name)
}

// ShowLogs writes the end of every log, of components and of Pods.
func (mc *ManagementCluster) ShowLogs(to io.Writer) error {
	logs, err := filepath.Glob(filepath.Join(mc.logDir, "*.log"))
	if err != nil {
		return err
	}
	for _, log := range logs {
		content, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
		_, err = fmt.Fprintf(to, "end of %s:\n%s\n", filepath.Base(log), strings.Join(lines[max(0, len(lines)-shownLines):], "\n"))
		if err != nil {
			return err
		}
	}
	return nil
}

// PodLog is what the process of a Pod has written, since it was last started.
func (mc *ManagementCluster) PodLog(name types.NamespacedName) (string, error) {
	content, err := os.ReadFile(filepath.Join(mc.logDir, name.Namespace+"_"+name.Name+".log"))
	return string(content), err
}
