// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cluster"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/siderolink"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

var (
	errClusterSecret   = errors.New("belongs to the cluster's secrets bundle: no patch may change it")
	errClusterIdentity = errors.New("comes from the Cluster and the Machine: no patch may change it")
	errForeignManager  = errors.New("hands the machine over to another manager: no patch may set it")
)

// protectedLeaf is a value of the legacy document that only the base may set. The schema refuses it too; this holds even
// where the schema has a hole. A merged `machine.token` would validate, and the node would join with it.
type protectedLeaf struct {
	pointer string
	err     error
	value   func([]config.Document) any
}

var protectedLeaves = []protectedLeaf{
	{"/machine/type", errClusterIdentity, func(c []config.Document) any { m, _ := legacyOf(c); return m.MachineType }},
	{"/machine/token", errClusterSecret, func(c []config.Document) any { m, _ := legacyOf(c); return m.MachineToken }},
	{"/machine/ca", errClusterSecret, func(c []config.Document) any { m, _ := legacyOf(c); return m.MachineCA }},
	{"/machine/acceptedCAs", errClusterSecret, func(c []config.Document) any { m, _ := legacyOf(c); return m.MachineAcceptedCAs }},
	{"/cluster/id", errClusterSecret, func(c []config.Document) any { _, l := legacyOf(c); return l.ClusterID }},
	{"/cluster/secret", errClusterSecret, func(c []config.Document) any { _, l := legacyOf(c); return l.ClusterSecret }},
	{"/cluster/token", errClusterSecret, func(c []config.Document) any { _, l := legacyOf(c); return l.BootstrapToken }},
	{"/cluster/clusterName", errClusterIdentity, func(c []config.Document) any { _, l := legacyOf(c); return l.ClusterName }},
	{"/cluster/controlPlane/endpoint", errClusterIdentity, func(c []config.Document) any {
		_, l := legacyOf(c)
		if l.ControlPlane == nil || l.ControlPlane.Endpoint == nil {
			return ""
		}

		return l.ControlPlane.Endpoint.String()
	}},
	{"/cluster/aescbcEncryptionSecret", errClusterSecret, func(c []config.Document) any { _, l := legacyOf(c); return l.ClusterAESCBCEncryptionSecret }},
	{"/cluster/secretboxEncryptionSecret", errClusterSecret, func(c []config.Document) any { _, l := legacyOf(c); return l.ClusterSecretboxEncryptionSecret }},
	{"/cluster/ca", errClusterSecret, func(c []config.Document) any { _, l := legacyOf(c); return l.ClusterCA }},
	{"/cluster/acceptedCAs", errClusterSecret, func(c []config.Document) any { _, l := legacyOf(c); return l.ClusterAcceptedCAs }},
	{"/cluster/aggregatorCA", errClusterSecret, func(c []config.Document) any { _, l := legacyOf(c); return l.ClusterAggregatorCA }},
	{"/cluster/serviceAccount", errClusterSecret, func(c []config.Document) any { _, l := legacyOf(c); return l.ClusterServiceAccount }},
	{"/cluster/etcd/ca", errClusterSecret, func(c []config.Document) any {
		_, l := legacyOf(c)
		if l.EtcdConfig == nil {
			return (*x509.PEMEncodedCertificateAndKey)(nil)
		}

		return l.EtcdConfig.RootCA
	}},
}

// protectedKinds are documents that are as the base has them, or not there at all.
var protectedKinds = map[string]error{
	cluster.DiscoveryIdentityKind: errClusterSecret,
	k8s.KubeAPIServerCAConfig:     errClusterSecret,
	k8s.KubeAggregatorCAConfig:    errClusterSecret,
	k8s.KubeEtcdEncryptionConfig:  errClusterSecret,
	k8s.KubeServiceAccountConfig:  errClusterSecret,
	k8s.KubeClusterConfig:         errClusterIdentity,
	siderolink.Kind:               errForeignManager,
}

// everywhere are the protected leaves that the base has with every contract. What is above them cannot be deleted on any machine; above
// the others, a render looks at what the machine has.
var everywhere = []string{"/machine/type", "/machine/token", "/machine/ca"}

// forbiddenDeletion says why no patch may delete a document, or a field of one, whatever machine the patch is for.
func forbiddenDeletion(id merge.ID, pointer string) error {
	if err := protectedKinds[id.Kind]; err != nil {
		return err
	}

	if reason, ok := vital[id.Kind]; ok && pointer == "" && (id.Kind != k8s.KubeAuthorizerConfig || slices.Contains(ownAuthorizers, id.Name)) {
		return fmt.Errorf("%s: change it instead of removing it", reason)
	}

	if id.Kind != merge.LegacyKind {
		return nil
	}

	for _, leaf := range protectedLeaves {
		if isWithin(pointer, leaf.pointer) {
			return leaf.err
		}
	}

	for _, leaf := range everywhere {
		if strings.HasPrefix(leaf, pointer+"/") {
			return fmt.Errorf("has %s, which no patch may remove: delete the other fields one by one", leaf)
		}
	}

	return nil
}

// protected compares with the base what no layer above it may touch.
func (r *render) protected(merged *merge.Config) []finding {
	var findings []finding

	legacyID, base, now := merge.ID{Kind: merge.LegacyKind}, r.provider.Documents(), merged.Documents()

	for _, leaf := range protectedLeaves {
		if !reflect.DeepEqual(leaf.value(base), leaf.value(now)) {
			findings = append(findings, finding{document: legacyID, field: leaf.pointer, err: leaf.err})
		}
	}

	before, after := protectedDocuments(base), protectedDocuments(now)

	for id := range before {
		if _, ok := after[id]; !ok {
			findings = append(findings, finding{document: id, err: protectedKinds[id.Kind]})
		}
	}

	for id, document := range after {
		if !reflect.DeepEqual(before[id], document) {
			findings = append(findings, finding{document: id, err: protectedKinds[id.Kind]})
		}
	}

	sortFindings(findings)

	return findings
}

func protectedDocuments(documents []config.Document) map[merge.ID]config.Document {
	found := map[merge.ID]config.Document{}

	for _, document := range documents {
		if id := merge.IDOf(document); protectedKinds[id.Kind] != nil {
			found[id] = document
		}
	}

	return found
}
