// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	netutils "k8s.io/utils/net"
	"sigs.k8s.io/yaml"

	"github.com/maesh-dev/ichor/test/process"
	"github.com/maesh-dev/ichor/test/tools"
)

// controlPlane is the Kubernetes of one control-plane node. At full fidelity that is an API server, and on one node of the cluster a
// controller manager; else an API server in memory. It is made of the machine configuration alone. The scheduler, and the controller
// managers that do not lead, are pods on paper.
type controlPlane struct {
	node   *Node
	config *nodeConfig
	dir    string

	// changed tells that there may be something to do, leads that this node is to run the controller manager.
	changed signal
	leads   atomic.Bool

	// processes are what runs, and prints what each was started with.
	processes map[string]running
	prints    map[string]string
}

// running is a component that runs: a process, or a server in memory.
type running interface {
	Stop() error
	Kill() error
	Ended() bool
}

func newControlPlane(b *boot) *controlPlane {
	return &controlPlane{
		node: b.node, dir: b.node.dir(), changed: newSignal(),
		processes: map[string]running{}, prints: map[string]string{},
	}
}

// claimManager waits until this node is to run the cluster's controller manager.
func (b *boot) claimManager() {
	if b.node.world.claimManager(b.ctx, b.node.etcdKey, b) {
		b.control.leads.Store(true)
		b.control.changed.send()
	}
}

// podRestart is how soon a component that ended by itself, or did not start, is started again, as a kubelet does.
const podRestart = time.Second

// runKubernetes keeps the static pods as the configuration has them. It lives as long as the boot.
func (b *boot) runKubernetes() {
	ticker := time.NewTicker(podRestart)
	defer ticker.Stop()
	for {
		b.syncPods()
		select {
		case <-b.control.changed:
		case <-ticker.C:
		case <-b.ctx.Done():
			return
		}
	}
}

// syncPods starts what is to run, again if its configuration changed or it ended by itself, and ends the rest. A component that does not start
// is in the node's directory, with its log.
func (b *boot) syncPods() {
	p := b.control
	p.config = b.config()
	wanted := b.wantedPods(p.config)
	for id := range p.prints {
		if !slices.ContainsFunc(wanted, func(one component) bool { return one.id == id }) {
			p.end(id)
			b.dropPod(id)
		}
	}
	for _, one := range wanted {
		fingerprint := p.print(one)
		proc := p.processes[one.id]
		if b.ctx.Err() != nil || p.prints[one.id] == fingerprint && (proc == nil || !proc.Ended()) {
			continue
		}
		if p.prints[one.id] != "" {
			b.setPod(pod{component: one})
			p.end(one.id)
		}
		err := p.begin(b.ctx, one.id)
		b.node.fail(err)
		if err != nil {
			b.setPod(pod{component: one})
			continue // until the next time
		}
		p.prints[one.id] = fingerprint
		b.setPod(pod{component: one, ready: true})
		b.kubeletChanged.send()
	}
}

// print tells one start of a component from another: by the version of its configuration and what else it is made of.
func (p *controlPlane) print(one component) string {
	parts := []string{one.version}
	switch one.id {
	case k8s.APIServerID:
		c := p.config
		parts = append(parts, c.hostname(p.node), strings.Join(c.K8sAPIServerConfig().CertSANs(), ","))
		if ca := c.K8sAPIServerCAConfig(); ca != nil {
			parts = append(parts, string(joinPEM(ca.AcceptedCAs())))
		}
		if encryption := c.K8sEtcdEncryptionConfig(); encryption != nil {
			parts = append(parts, fmt.Sprint(encryption.EtcdEncryptionConfig()))
		}
	case k8s.ControllerManagerID:
		parts = append(parts, strconv.FormatBool(p.leads.Load()))
	}
	return fingerprint([]byte(strings.Join(parts, "\x00")))
}

func (p *controlPlane) begin(ctx context.Context, id string) error {
	switch {
	case p.node.world.memory != nil && id == k8s.APIServerID:
		return p.startMemoryServer(ctx)
	case p.node.world.memory != nil:
		return nil
	case id == k8s.APIServerID:
		return p.startAPIServer(ctx)
	case id == k8s.ControllerManagerID && p.leads.Load():
		return p.startControllerManager(ctx)
	default:
		return nil
	}
}

func (p *controlPlane) end(id string) {
	if proc := p.processes[id]; proc != nil {
		// One that had ended by itself is being replaced anyway.
		_ = proc.Stop()
	}
	delete(p.processes, id)
	delete(p.prints, id)
}

// serverAddress is where a control-plane node's API server listens.
func (c *nodeConfig) serverAddress(address string) string {
	port := 6443
	if server := c.K8sAPIServerConfig(); server != nil && server.APIPort() != 0 {
		port = server.APIPort()
	}
	return net.JoinHostPort(address, strconv.Itoa(port))
}

// startAPIServer runs a kube-apiserver with what the configuration says, beside the node's own etcd member.
func (p *controlPlane) startAPIServer(ctx context.Context) error {
	path, err := toolPath(ctx, tools.KubeAPIServer)
	if err != nil {
		return err
	}
	args, err := p.apiServerArgs()
	if err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	pair, err := clientPair(p.config.K8sAPIServerCAConfig().IssuingCA(), "readiness", "system:masters")
	if err != nil {
		return err
	}
	return p.run(ctx, process.Program{
		Name: "kube-apiserver", Path: path, Grace: componentGrace,
		Args:  flags(args, p.config.K8sAPIServerConfig().ExtraArgs()),
		Ready: ready("https://"+p.config.serverAddress(p.node.address)+"/readyz", p.config.K8sAPIServerCAConfig().IssuingCA().Crt, pair),
	})
}

func (p *controlPlane) run(ctx context.Context, program process.Program) error {
	proc, err := process.Start(ctx, p.dir, program)
	if err != nil {
		return err
	}
	p.processes[program.Name] = proc
	return nil
}

func (p *controlPlane) apiServerArgs() (map[string][]string, error) {
	c := p.config
	serviceRange := c.K8sNetworkConfig().ServiceCIDRs()
	if len(serviceRange) == 0 {
		return nil, errors.New("no service subnets")
	}
	if err := p.writeAPIServerFiles(serviceRange[0].String()); err != nil {
		return nil, err
	}
	var ranges []string
	for _, prefix := range serviceRange {
		ranges = append(ranges, prefix.String())
	}
	_, port, err := net.SplitHostPort(c.serverAddress(p.node.address))
	if err != nil {
		return nil, err
	}
	args := map[string][]string{
		"bind-address": {p.node.address}, "advertise-address": {p.node.address}, "secure-port": {port},
		"etcd-servers": {clientURL(p.node.address)}, "etcd-cafile": {p.file("etcd-ca.crt")},
		"etcd-certfile": {p.file("etcd-client.crt")}, "etcd-keyfile": {p.file("etcd-client.key")},
		"client-ca-file": {p.file("ca.crt")}, "tls-cert-file": {p.file("apiserver.crt")}, "tls-private-key-file": {p.file("apiserver.key")},
		"service-account-key-file":         {p.file("service-account.pub")},
		"service-account-signing-key-file": {p.file("service-account.key")},
		"service-account-issuer":           {c.K8sServiceAccountConfig().IssuerURL()},
		"service-cluster-ip-range":         {strings.Join(ranges, ",")},
		"requestheader-client-ca-file":     {p.file("aggregator-ca.crt")},
		"requestheader-allowed-names":      {"front-proxy-client"},
		"proxy-client-cert-file":           {p.file("front-proxy-client.crt")}, "proxy-client-key-file": {p.file("front-proxy-client.key")},
		"requestheader-extra-headers-prefix": {"X-Remote-Extra-"}, "requestheader-group-headers": {"X-Remote-Group"},
		"requestheader-username-headers": {"X-Remote-User"},
		"authorization-mode":             {"Node,RBAC"}, "enable-admission-plugins": {"NodeRestriction"},
		"enable-bootstrap-token-auth": {"true"}, "allow-privileged": {"true"}, "profiling": {"false"},
		// A loopback address is no endpoint for the kubernetes Service, and no pod runs that would use it.
		"endpoint-reconciler-type": {"none"},
		"audit-policy-file":        {p.file("audit-policy.yaml")}, "audit-log-path": {p.node.world.auditLog(p.node)},
		"audit-log-maxage": {"30"}, "audit-log-maxbackup": {"10"}, "audit-log-maxsize": {"100"},
	}
	if err := p.writeAuditPolicy(); err != nil {
		return nil, err
	}
	if encryption := c.K8sEtcdEncryptionConfig(); encryption != nil {
		if err := p.writeEncryption(encryption.EtcdEncryptionConfig()); err != nil {
			return nil, err
		}
		args["encryption-provider-config"] = []string{p.file("encryption.yaml")}
	}
	return args, nil
}

func (p *controlPlane) file(name string) string { return filepath.Join(p.dir, name) }

// writeAuditPolicy writes what the configuration says; Talos' own says that of every request it is noted who made it.
func (p *controlPlane) writeAuditPolicy() error {
	content, err := yaml.Marshal(p.config.K8sAuditPolicyConfig().Configuration())
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(p.node.world.auditDir(), 0o700), os.WriteFile(p.file("audit-policy.yaml"), content, 0o600))
}

func (p *controlPlane) writeEncryption(object map[string]any) error {
	file := maps.Clone(object)
	file["apiVersion"], file["kind"] = "apiserver.config.k8s.io/v1", "EncryptionConfiguration"
	content, err := yaml.Marshal(file)
	if err != nil {
		return err
	}
	return os.WriteFile(p.file("encryption.yaml"), content, 0o600)
}

// writeAPIServerFiles writes certificates and keys.
func (p *controlPlane) writeAPIServerFiles(serviceRange string) error {
	c := p.config
	_, subnet, err := net.ParseCIDR(serviceRange)
	if err != nil {
		return err
	}
	serviceIP, err := netutils.GetIndexedIP(subnet, 1)
	if err != nil {
		return err
	}
	ca, aggregator, account := c.K8sAPIServerCAConfig(), c.K8sAggregatorCAConfig(), c.K8sServiceAccountConfig()
	if ca == nil || ca.IssuingCA() == nil || aggregator == nil || aggregator.IssuingCA() == nil || account == nil || account.IssuingKey() == nil {
		return errors.New("the configuration lacks a certificate authority or the service accounts' key")
	}
	key, err := account.IssuingKey().GetKey()
	if err != nil {
		return fmt.Errorf("service accounts' key: %w", err)
	}
	names, addresses := p.serverNames(serviceIP)

	server := []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}
	client := []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}
	return errors.Join(
		os.WriteFile(p.file("ca.crt"), joinPEM(ca.AcceptedCAs()), 0o600),
		os.WriteFile(p.file("aggregator-ca.crt"), joinPEM(aggregator.AcceptedCAs()), 0o600),
		os.WriteFile(p.file("service-account.key"), key.GetPrivateKeyPEM(), 0o600),
		os.WriteFile(p.file("service-account.pub"), key.GetPublicKeyPEM(), 0o600),
		writePair(ca.IssuingCA(), p.dir, "apiserver", "kube-apiserver", withoutIPs(names), addresses, server),
		writePair(c.etcdCA(), p.dir, "etcd-client", "kube-apiserver-etcd-client", nil, nil, client),
		writePair(aggregator.IssuingCA(), p.dir, "front-proxy-client", "front-proxy-client", nil, nil, client),
	)
}

// serverNames are the names and addresses that the API server's certificate is for.
func (p *controlPlane) serverNames(service net.IP) (names, addresses []string) {
	c := p.config
	names = []string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", c.hostname(p.node),
		"kubernetes.default.svc." + c.K8sNetworkConfig().DNSDomain(), c.K8sClusterConfig().ClusterEndpoint().Hostname(),
	}
	names = append(names, c.K8sAPIServerConfig().CertSANs()...)
	addresses = append([]string{p.node.address, "127.0.0.1", service.String()}, names...)
	return names, addresses
}

func joinPEM(certificates []*x509.PEMEncodedCertificate) []byte {
	var all []byte
	for _, certificate := range certificates {
		all = append(append(all, certificate.Crt...), '\n')
	}
	return all
}

func withoutIPs(names []string) []string {
	var rest []string
	for _, name := range names {
		if net.ParseIP(name) == nil {
			rest = append(rest, name)
		}
	}
	return rest
}

// startControllerManager runs the cluster's kube-controller-manager against this node's API server.
func (p *controlPlane) startControllerManager(ctx context.Context) error {
	path, err := toolPath(ctx, tools.KubeControllerManager)
	if err != nil {
		return err
	}
	ca := p.config.K8sAPIServerCAConfig().IssuingCA()
	pair, err := clientPair(ca, "system:kube-controller-manager")
	if err != nil {
		return err
	}
	access, err := kubeconfig("local", "https://"+p.config.serverAddress(p.node.address), "controller-manager", ca.Crt, pair)
	if err != nil {
		return err
	}
	server := []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}
	if err := errors.Join(
		os.WriteFile(p.file("controller-manager.kubeconfig"), access, 0o600),
		os.WriteFile(p.file("ca.key"), ca.Key, 0o600),
		os.WriteFile(p.file("ca-issuing.crt"), ca.Crt, 0o600),
		writePair(ca, p.dir, "controller-manager", "kube-controller-manager", nil, []string{p.node.address}, server),
	); err != nil {
		return err
	}
	const port = "10257"
	args := map[string][]string{
		"kubeconfig": {p.file("controller-manager.kubeconfig")}, "bind-address": {p.node.address}, "secure-port": {port},
		"tls-cert-file": {p.file("controller-manager.crt")}, "tls-private-key-file": {p.file("controller-manager.key")},
		"leader-elect": {"false"}, "use-service-account-credentials": {"true"},
		"service-account-private-key-file": {p.file("service-account.key")}, "root-ca-file": {p.file("ca-issuing.crt")},
		"cluster-signing-cert-file": {p.file("ca-issuing.crt")}, "cluster-signing-key-file": {p.file("ca.key")},
		"controllers": {"*,tokencleaner"}, "allocate-node-cidrs": {"true"},
		"cluster-cidr": {p.config.K8sNetworkConfig().PodCIDRs()[0].String()}, "configure-cloud-routes": {"false"},
	}
	return p.run(ctx, process.Program{
		Name: "kube-controller-manager", Path: path, Grace: componentGrace,
		Args:  flags(args, p.config.K8sControllerManagerConfig().ExtraArgs()),
		Ready: ready("https://"+net.JoinHostPort(p.node.address, port)+"/healthz", ca.Crt, nil),
	})
}

func (p *controlPlane) stop() {
	for _, proc := range p.processes {
		// The power is off: how a component takes it is no news.
		_ = proc.Kill()
	}
	p.processes = map[string]running{}
}

// ready returns a check that a URL answers with success.
func ready(url string, ca []byte, pair *x509.KeyPair) func(context.Context) error {
	roots := stdx509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if pair != nil {
		config.Certificates = []tls.Certificate{*pair.Certificate}
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close() //nolint:errcheck // The body is not read.
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}
