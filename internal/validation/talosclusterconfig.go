// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

const maxPort = 65535

// TalosClusterConfig looks at a TalosClusterConfig. Secrets that it refers to are not looked at.
func TalosClusterConfig(object *bootstrapv1.TalosClusterConfig) Report {
	report := &Report{}
	spec := &object.Spec

	report.clusterTargets(spec.ClusterTargeting)
	report.talosSpec(&spec.Talos)

	warnings, err := machineconfig.CheckClusterConfig(object)
	report.addConfigErrors(err)
	report.Rendered = warnings

	path := field.NewPath("spec")
	report.registryHosts(path.Child("registries"), spec.Registries)
	report.secretReference(path.Child("acceptedCAsSecretRef"), spec.AcceptedCAsSecretRef)
	report.secretReference(path.Child("secretsRef"), spec.SecretsRef)

	for i, name := range spec.CertSANs {
		if !machineconfig.IsHost(name) {
			report.fail(path.Child("certSANs").Index(i), `must be an address or a DNS name, for example "talos.example.com"`)
		}
	}

	report.talosAPI(path.Child("talosAPI"), &spec.TalosAPI)

	return report.done()
}

// talosSpec checks that versions are known and go together. A config in an older format can be read by a newer Talos, and not the other
// way round.
func (r *Report) talosSpec(spec *bootstrapv1.TalosSpec) {
	path := field.NewPath("spec", "talos")
	talos := r.talos(path.Child("version"), spec.Version)
	contract := r.contract(path.Child("configContract"), spec.ConfigContract)

	if !talos.IsZero() && !contract.IsZero() {
		if err := version.CheckContract(contract, talos); err != nil {
			r.fail(path.Child("configContract"), err.Error())
		}
	}

	r.imageRegistry(path.Child("installer"), spec.Installer)

	for i := range spec.Pools {
		r.pool(path.Child("pools").Key(spec.Pools[i].Name), &spec.Pools[i], talos, contract)
	}
}

func (r *Report) pool(path *field.Path, pool *bootstrapv1.TalosPool, clusterTalos version.Talos, contract version.Contract) {
	r.selector(path.Child("machineSelector"), pool.MachineSelector)
	r.imageRegistry(path.Child("installer"), pool.Installer)

	talos := r.talos(path.Child("version"), pool.Version)
	if talos.IsZero() {
		return
	}

	if !contract.IsZero() {
		if err := version.CheckContract(contract, talos); err != nil {
			r.fail(path.Child("version"), err.Error())
		}

		return
	}

	if clusterTalos.IsZero() || !talos.Contract().Less(clusterTalos.Contract()) {
		return
	}

	r.warn(path.Child("version"), fmt.Sprintf(
		"Talos %s cannot read config contract %s, which a cluster gets at its first render from spec.talos.version: unless its contract is older already, set spec.talos.configContract to %s",
		talos, clusterTalos.Contract(), talos.Contract()))
}

func (r *Report) imageRegistry(path *field.Path, installer bootstrapv1.InstallerSpec) {
	host, _, _ := strings.Cut(installer.Registry, "/")
	if host != "" && !isHostPort(host) {
		r.fail(path.Child("registry"), fmt.Sprintf("must begin with a host name or host:port, with a port of at most %d", maxPort))
	}
}

func (r *Report) registryHosts(path *field.Path, registries []bootstrapv1.Registry) {
	for i := range registries {
		registry := &registries[i]
		at := path.Key(registry.Host)

		if registry.Host != "*" && !isHostPort(registry.Host) {
			r.fail(at.Child("host"), fmt.Sprintf("must be a host name or host:port, with a port of at most %d", maxPort))
		}

		r.secretReference(at.Child("authSecretRef"), registry.AuthSecretRef)
		r.secretReference(at.Child("tls", "caSecretRef"), registry.TLS.CASecretRef)
		r.secretReference(at.Child("tls", "clientCertificateSecretRef"), registry.TLS.ClientCertificateSecretRef)

		if registry.TLS.InsecureSkipVerify != nil && *registry.TLS.InsecureSkipVerify {
			r.warn(at.Child("tls", "insecureSkipVerify"), "whoever is between a node and this registry can give it any image: use tls.caSecretRef if the host has an authority of its own")
		}
	}
}

func (r *Report) secretReference(path *field.Path, ref *corev1.LocalObjectReference) {
	if ref != nil {
		r.objectName(path.Child("name"), "Secret", ref.Name)
	}
}

func (r *Report) talosAPI(path *field.Path, spec *bootstrapv1.TalosAPISpec) {
	for i, endpoint := range spec.Endpoints {
		if !machineconfig.IsHost(endpoint) && !isHostPort(endpoint) {
			r.fail(path.Child("endpoints").Index(i), `must be a host or host:port, for example "lb.example.com:50000"`)
		}
	}

	for i, cidr := range spec.CIDRs {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			r.fail(path.Child("cidrs").Index(i), `must be a network, for example "10.0.0.0/8" or "fd00::/8"`)
		}
	}
}

// isHostPort takes a host with or without a port; an IPv6 address stands in brackets.
func isHostPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), "443"
	}

	number, err := strconv.ParseUint(port, 10, 16)

	return err == nil && number > 0 && machineconfig.IsHost(host)
}

// NotCreatable says what of a TalosClusterConfig that exists would be refused if it were created anew; it is empty when nothing is. Rules of its
// schema leave alone what was there before them.
func NotCreatable(object *bootstrapv1.TalosClusterConfig) string {
	if object.Spec.SecretsRef == nil || object.Spec.ClusterName != "" {
		return ""
	}

	return "spec.secretsRef: needs spec.clusterName instead of spec.clusterSelector, which was not so when the object was created: it is kept as it is, " +
		"but `clusterctl move` and the restore of a backup fail at it: set clusterName, or take secretsRef out, since the bundle is copied once"
}
