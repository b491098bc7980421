// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	"github.com/maesh-dev/ichor/internal/version"
	"github.com/maesh-dev/ichor/test/tools"
)

// nodeConfig is a machine configuration that the node accepted.
type nodeConfig struct {
	config.Provider

	raw []byte
}

func (c *nodeConfig) controlPlane() bool { return c.Machine().Type().IsControlPlane() }

func (c *nodeConfig) etcdCA() *x509.PEMEncodedCertificateAndKey {
	if c.Cluster() == nil || c.Cluster().Etcd() == nil {
		return nil
	}
	return c.Cluster().Etcd().CA()
}

// hostname is the configured one, else the platform's. A bare machine has no platform that would name it: Talos makes a
// name of the machine's identity if it is told to.
func (c *nodeConfig) hostname(n *Node) string {
	if fault := n.Faults().Hostname; fault != "" {
		return fault
	}
	host := c.NetworkHostnameConfig()
	if host != nil && host.Hostname() != "" {
		return host.Hostname()
	}
	if host != nil && n.options.Metal && host.AutoHostname() == nethelpers.AutoHostnameKindStable {
		id := strings.ReplaceAll(n.uuid, "-", "")
		return "talos-" + id[:3] + "-" + id[3:6]
	}
	return n.options.Name
}

// nodename is the name of the Kubernetes Node.
func (c *nodeConfig) nodename(n *Node) string {
	name := strings.ToLower(c.hostname(n))
	if node := c.K8sNodeConfig(); node != nil && node.RegisterWithFQDN() {
		return name
	}
	short, _, _ := strings.Cut(name, ".")
	return short
}

func (c *nodeConfig) installImage() string {
	if unattended := c.UnattendedInstallConfig(); unattended != nil {
		return unattended.InstallerImage()
	}
	if install := c.Machine().Install(); install != nil {
		return install.Image()
	}
	return ""
}

// runtimeMode is what the platform makes of a configuration's rules.
type runtimeMode bool

const (
	metal runtimeMode = true
	cloud runtimeMode = false
)

func (m runtimeMode) String() string {
	if m == metal {
		return "metal"
	}
	return "cloud"
}

func (m runtimeMode) RequiresInstall() bool { return m == metal }
func (runtimeMode) InContainer() bool       { return false }

// load does what a node of that version does with a configuration before it uses it: strict decoding, validation, and
// the check that this Talos runs that Kubernetes. Older versions do it with their own machinery.
func (w *World) load(ctx context.Context, image osImage, onMetal bool, raw []byte) (*nodeConfig, []string, error) {
	var warnings []string
	var err error
	mode := runtimeMode(onMetal)
	if image.version.Contract().Less(version.Newest()) {
		if warnings, err = judgeByOlder(ctx, image.version, mode, raw); err != nil {
			return nil, warnings, err
		}
	}
	provider, err := configloader.NewFromBytes(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to parse config: %w", err)
	}
	if provider.RawV1Alpha1() == nil {
		return nil, nil, errors.New("the applied machine configuration doesn't contain v1alpha1 config")
	}
	if !image.version.Contract().Less(version.Newest()) {
		// Local leaves out the checks of the machine that the test runs on.
		if warnings, err = provider.ValidateAsClient(mode, validation.WithLocal()); err != nil {
			return nil, warnings, fmt.Errorf("configuration validation failed: %w", err)
		}
	}
	loaded := &nodeConfig{Provider: provider, raw: bytes.Clone(raw)}
	return loaded, warnings, checkKubernetes(image.version, loaded)
}

func checkKubernetes(talos version.Talos, c *nodeConfig) error {
	tag := c.kubernetesVersion()
	if tag == "" {
		return nil
	}
	kubernetes, err := version.ParseKubernetes(tag)
	if err != nil {
		return fmt.Errorf("kubelet image: %w", err)
	}
	return version.CheckKubernetes(talos, kubernetes)
}

// kubernetesVersion is the tag of the kubelet's image, without what its flavour adds.
func (c *nodeConfig) kubernetesVersion() string {
	kubelet := c.K8sKubeletConfig()
	if kubelet == nil {
		return ""
	}
	name, _, _ := strings.Cut(kubelet.Image(), "@")
	tag := name[strings.LastIndex(name, ":")+1:]
	return strings.TrimSuffix(strings.TrimSuffix(tag, "-fat"), "-slim")
}

// judgeByOlder has the machinery of an older Talos judge a configuration.
func judgeByOlder(ctx context.Context, talos version.Talos, mode runtimeMode, raw []byte) ([]string, error) {
	name := map[string]string{"v1.12": tools.MachineryValidate112, "v1.13": tools.MachineryValidate113}[talos.Contract().String()]
	if name == "" {
		return nil, fmt.Errorf("talos %s: no machinery of its own to judge a configuration with", talos)
	}
	builder, err := tools.NewBuilder(io.Discard)
	if err != nil {
		return nil, err
	}
	path, err := builder.Path(ctx, name)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, "-mode", mode.String())
	cmd.Stdin = bytes.NewReader(raw)
	output, err := cmd.Output()
	var verdict struct {
		OK       bool     `json:"ok"`
		Error    string   `json:"error"`
		Warnings []string `json:"warnings"`
	}
	if jsonErr := json.Unmarshal(output, &verdict); jsonErr != nil {
		return nil, fmt.Errorf("%s: %w", name, errors.Join(err, jsonErr))
	}
	if !verdict.OK {
		return verdict.Warnings, errors.New(verdict.Error)
	}
	return verdict.Warnings, nil
}

// parseStored reads the configuration of the disk, which was accepted before it was stored.
func parseStored(raw []byte) (config.Provider, error) {
	if raw == nil {
		return nil, errNoConfig
	}
	return configloader.NewFromBytes(raw)
}
