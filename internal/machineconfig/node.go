// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/storage"
)

// criCustomization is the one file outside /var that Talos lets machine.files create.
const criCustomization = "/etc/cri/conf.d/20-customization.part"

// longhornAnnotations are the annotations that Longhorn ignores as a whole, without a word, when anything in them is wrong.
var longhornAnnotations = map[string]func(string) error{
	storage.LonghornDisksConfigAnnotation: storage.CheckDisksConfig,
	storage.LonghornNodeTagsAnnotation:    storage.CheckNodeTags,
}

// nodeSettings are what the config says of the Node object, in whichever document.
type nodeSettings struct {
	id                          merge.ID
	labels, annotations, taints map[string]string
	base                        string
}

func nodeSettingsOf(merged *merge.Config) []nodeSettings {
	machine, _ := legacyOf(merged.Documents())
	settings := []nodeSettings{{
		id:     merge.ID{Kind: merge.LegacyKind},
		labels: machine.MachineNodeLabels, annotations: machine.MachineNodeAnnotations, taints: machine.MachineNodeTaints,
		base: "/machine/node",
	}}

	if document, ok := documentOf[*k8s.KubeNodeConfigV1Alpha1](merged.Documents()); ok {
		settings = append(settings, nodeSettings{
			id:     merge.IDOf(document),
			labels: document.LabelsConfig, annotations: document.AnnotationsConfig, taints: document.TaintsConfig,
			base: "/",
		})
	}

	return settings
}

// pointer is where the settings of one sort stand: "/machine/nodeLabels" in the legacy document, "/labels" in the modern one.
func (n nodeSettings) pointer(sort, key string) string {
	if n.id.Kind == merge.LegacyKind {
		sort = strings.ToUpper(sort[:1]) + sort[1:]
	}

	return n.base + sort + "/" + merge.EscapePointer(key)
}

// cannotRun finds configs that machinery accepts and that a node then cannot run. Each is known from a public report.
func (r *render) cannotRun(merged *merge.Config) []finding {
	var findings []finding

	for _, settings := range nodeSettingsOf(merged) {
		findings = append(findings, r.forbiddenLabels(settings)...)

		findings = append(findings, longhornFindings(settings)...)
	}

	findings = append(findings, badHostname(merged)...)
	findings = append(findings, badFiles(merged)...)
	findings = append(findings, ownArgs(merged, r.mode().InContainer())...)

	documents := merged.Documents()
	findings = append(findings, labelFlags(documents)...)
	findings = append(findings, ownMounts(documents)...)
	findings = append(findings, illFormed(documents, !r.mode().InContainer())...)
	findings = append(findings, doubleManifests(documents)...)
	findings = append(findings, inTwoForms(documents)...)
	findings = append(findings, hiddenVolumes(documents)...)
	findings = append(findings, badHardwareAddresses(documents)...)
	findings = append(findings, badLinks(documents)...)
	findings = append(findings, bondChecks(documents)...)
	findings = append(findings, missingVolumes(documents)...)
	findings = append(findings, badResources(documents)...)
	findings = append(findings, r.portUses(documents)...)
	findings = append(findings, r.fromCluster(documents)...)
	findings = append(findings, foreignPods(documents)...)
	findings = append(findings, etcdTimes(documents)...)
	findings = append(findings, r.etcdArgs(documents)...)
	findings = append(findings, emptyChoices(documents)...)
	findings = append(findings, tinyVolumes(documents)...)
	findings = append(findings, deadSelectors(documents)...)
	findings = append(findings, r.wrongEmbedded(documents)...)

	return append(findings, r.missingVital(merged)...)
}

var errForbiddenLabel = errors.New("a worker's kubelet may not set this label, and Talos then sets none: put it on the Machine if Cluster API syncs it (node-role.kubernetes.io, node-restriction.kubernetes.io), or use another prefix")

// forbiddenLabels finds labels that the API server's NodeRestriction plugin refuses to a worker's kubelet. Talos then applies none.
func (r *render) forbiddenLabels(settings nodeSettings) []finding {
	if r.in.Machine.ControlPlane {
		return nil
	}

	var findings []finding

	for _, key := range slices.Sorted(maps.Keys(settings.labels)) {
		if !forbiddenToKubelet(key) {
			continue
		}

		findings = append(findings, finding{
			document: settings.id, field: settings.pointer("labels", key),
			err: errForbiddenLabel,
		})
	}

	return findings
}

func forbiddenToKubelet(key string) bool {
	prefix, _, hasPrefix := strings.Cut(key, "/")
	if !hasPrefix {
		return false
	}

	within := func(domain string) bool { return prefix == domain || strings.HasSuffix(prefix, "."+domain) }

	return within("node-restriction.kubernetes.io") || (within("kubernetes.io") || within("k8s.io")) && !kubeletapis.IsKubeletLabel(key)
}

// badFiles finds entries of machine.files that fail at boot, after the config was accepted.
func badFiles(merged *merge.Config) []finding {
	machine, _ := legacyOf(merged.Documents())

	var findings []finding

	for i, file := range machine.MachineFiles {
		at := func(field string, err error) {
			findings = append(findings, finding{document: merge.ID{Kind: merge.LegacyKind}, field: fmt.Sprintf("/machine/files/%d/%s", i, field), err: err})
		}

		if !slices.Contains([]string{"create", "append", "overwrite"}, file.FileOp) {
			at("op", fmt.Errorf("is %q: set create, append or overwrite", file.FileOp))
		}

		if err := foreignFile(file.FilePath); err != nil {
			at("path", err)

			continue
		}

		inVar := strings.HasPrefix(path.Clean(file.FilePath), "/var/")
		if file.FileOp == "create" && !inVar && path.Clean(file.FilePath) != criCustomization {
			at("path", fmt.Errorf("%q is not under /var, and Talos' file system is read-only elsewhere", file.FilePath))
		}
	}

	return findings
}

// foreignFile refuses paths that are no user's: they would replace the machine's own config, its secrets, or etcd's data.
func foreignFile(name string) error {
	if !path.IsAbs(name) || path.Clean(name) != name {
		return fmt.Errorf("%q is not a whole path: write it from / on, without dots and double slashes", name)
	}

	if owned, ok := ownPath(name); ok {
		return fmt.Errorf("%q is Talos' own: no file can be written below %s", name, owned)
	}

	return nil
}

// vital are documents that a node cannot do without where its contract has them. Machinery lets them be removed; some it fills
// with defaults of its own, but those of authentication and authorization decide who may do what.
var vital = map[string]string{
	k8s.KubeAuthenticationConfig:    "the API server does not start without it",
	k8s.KubeAuthorizerConfig:        "the API server would no longer ask this authorizer",
	k8s.KubeAPIServerConfig:         "the machine would run no API server",
	k8s.KubeControllerManagerConfig: "the machine would run no controller manager",
	k8s.KubeSchedulerConfig:         "the machine would run no scheduler",
	k8s.KubeletConfig:               "the machine would run no kubelet",
	k8s.KubeNetworkConfig:           "the cluster's networks would not be known",
}

// ownAuthorizers are the KubeAuthorizerConfigs that a node cannot do without: those that machinery makes.
var ownAuthorizers = []string{"node", "rbac"}

// missingVital finds vital documents of the base that were removed.
func (r *render) missingVital(merged *merge.Config) []finding {
	present := map[merge.ID]bool{}
	for _, document := range merged.Documents() {
		present[merge.IDOf(document)] = true
	}

	var findings []finding

	for _, document := range r.provider.Documents() {
		id := merge.IDOf(document)
		if reason, ok := vital[id.Kind]; ok && !present[id] {
			findings = append(findings, finding{document: id, err: fmt.Errorf("%s: change it instead of removing it", reason)})
		}
	}

	return findings
}
