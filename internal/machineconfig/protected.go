// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

var (
	errClusterSecret   = errors.New("belongs to the cluster's secrets bundle: no patch may change it")
	errClusterIdentity = errors.New("comes from the Cluster and the Machine: no patch may change it")
	errForeignManager  = errors.New("hands the machine over to another manager: no patch may set it")
)

// ownerErrors are what patches are told that touch what has an owner.
var ownerErrors = map[machineconfigv1alpha1.Owner]error{
	machineconfigv1alpha1.OwnerSecretsBundle:  errClusterSecret,
	machineconfigv1alpha1.OwnerCluster:        errClusterIdentity,
	machineconfigv1alpha1.OwnerAnotherManager: errForeignManager,
}

// protectedLeaf is a value of the legacy document that only the base may set. The schema refuses it too; this holds even
// where the schema has a hole. A merged `machine.token` would validate, and the node would join with it.
type protectedLeaf struct {
	pointer string
	err     error

	// index leads to the field in Talos' own type.
	index []int
}

// protectedLeaves are the fields that the API says have an owner.
var protectedLeaves = leavesOf(machineconfigv1alpha1.OwnedFields())

// protectedKinds are documents that are as the base has them, or not there at all: those that the API says no patch may hold.
var protectedKinds = errorsOf(machineconfigv1alpha1.DeniedKinds())

// leavesOf finds the fields in Talos' type. It panics on one that is not there: the tables were made for another machinery, and to leave
// the field unprotected would be worse.
func leavesOf(fields []machineconfigv1alpha1.OwnedField) []protectedLeaf {
	leaves := make([]protectedLeaf, 0, len(fields))

	for _, field := range fields {
		index, ok := indexOf(reflect.TypeFor[v1alpha1.Config](), strings.Split(field.Pointer, "/")[1:])
		if field.Kind != machineconfigv1alpha1.KindConfig || !ok || ownerErrors[field.Owner] == nil {
			panic(fmt.Sprintf("%s %s of %s cannot be protected", field.Kind, field.Pointer, field.Owner))
		}

		leaves = append(leaves, protectedLeaf{field.Pointer, ownerErrors[field.Owner], index})
	}

	return leaves
}

func errorsOf(kinds []string) map[string]error {
	found := make(map[string]error, len(kinds))

	for _, kind := range kinds {
		denied, _ := machineconfigv1alpha1.Denied(kind)

		if found[kind] = ownerErrors[denied.Owner]; found[kind] == nil {
			panic(fmt.Sprintf("%s of %s cannot be protected", kind, denied.Owner))
		}
	}

	return found
}

// indexOf is the way to a field by its names in YAML, through structs alone.
func indexOf(t reflect.Type, names []string) ([]int, bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	if len(names) == 0 {
		return nil, true
	}

	if t.Kind() != reflect.Struct {
		return nil, false
	}

	for field := range t.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); name == names[0] {
			below, ok := indexOf(field.Type, names[1:])

			return append(slices.Clone(field.Index), below...), ok
		}
	}

	return nil, false
}

// value is the leaf's value in the legacy document, which may be nil. What stands below something that is not set is not set either.
func (l protectedLeaf) value(document *v1alpha1.Config) any {
	v, t := reflect.ValueOf(document), reflect.TypeFor[v1alpha1.Config]()

	for _, i := range l.index {
		for v.IsValid() && v.Kind() == reflect.Pointer {
			v = v.Elem()
		}

		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}

		if t = t.Field(i).Type; v.IsValid() {
			v = v.Field(i)
		}
	}

	if !v.IsValid() {
		v = reflect.Zero(t)
	}

	return v.Interface()
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
	legacyBase, _ := documentOf[*v1alpha1.Config](base)
	legacyNow, _ := documentOf[*v1alpha1.Config](now)

	for _, leaf := range protectedLeaves {
		if !reflect.DeepEqual(leaf.value(legacyBase), leaf.value(legacyNow)) {
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
