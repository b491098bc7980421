// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/version"
)

const (
	etcd36 = "3.6"
	etcd37 = "3.7"
)

// Flags that only some releases of Talos give to etcd. Where Talos sets one, it starts no etcd when the config sets it too, be it to the same
// value.
var (
	// ownOfOldTalos are those of Talos 1.12 and 1.13. Talos 1.14 sets what took their place, and its etcd has them no longer.
	ownOfOldTalos = []string{
		"experimental-compact-hash-check-enabled", "experimental-initial-corrupt-check", "experimental-watch-progress-notify-interval",
	}

	// ownOfNewTalos are those of Talos from 1.14 on.
	ownOfNewTalos = []string{"feature-gates", "listen-client-http-urls", "watch-progress-notify-interval"}
)

var errOwnEtcdFlag = errors.New("set by Talos itself, and etcd would not start with it in the config: remove it")

// ownEtcdFlags are the flags that the machine's Talos sets, of those that not every Talos does. The old ones are refused to all.
func (r *render) ownEtcdFlags() []string {
	talos, err := r.talos()
	if err != nil || version.EtcdOf(talos) != etcd37 {
		return nil
	}

	return ownOfNewTalos
}

// gateTwice finds a feature gate that a flag of etcd 3.6 sets as well: etcd then does not start. It looks for the name of the gate anywhere
// in the value. Talos before 1.14 sets two gates with such flags.
func gateTwice(args map[string][]string) error {
	gates := strings.Join(args["feature-gates"], ",")

	for _, flag := range slices.Sorted(maps.Keys(etcdGateOf)) {
		gate := etcdGateOf[flag]
		if !strings.Contains(gates, gate) {
			continue
		}

		if slices.Contains(ownOfOldTalos, flag) {
			return fmt.Errorf("names %s, which Talos sets itself with the flag %s, and etcd does not start with both: remove %s", gate, flag, gate)
		}

		if _, set := args[flag]; set {
			return fmt.Errorf("names %s, which the flag %s sets as well, and etcd does not start with both: remove that flag", gate, flag)
		}
	}

	return nil
}

var etcdTag = regexp.MustCompile(`^v?3\.([0-9]{1,3})\.`)

// etcdMinor is the minor version that the tag of an image of etcd says it has.
func etcdMinor(image string) (minor int, ok bool) {
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")

	match := etcdTag.FindStringSubmatch(tag)
	if match == nil {
		return 0, false
	}

	minor, err := strconv.Atoi(match[1])

	return minor, err == nil
}

// etcdVersion is the minor version of etcd that the machine runs, "" when it cannot be told: Talos' own, or that of an image of the user's.
func (r *render) etcdVersion(image string) string {
	if image == "" {
		talos, err := r.talos()
		if err != nil {
			return ""
		}

		return version.EtcdOf(talos)
	}

	switch minor, _ := etcdMinor(image); minor {
	case 6:
		return etcd36
	case 7:
		return etcd37
	default:
		return ""
	}
}

// strangeEtcd tells an image with an etcd that does not start with the flags that the machine's Talos gives it.
func (r *render) strangeEtcd(image string) error {
	minor, known := etcdMinor(image)

	talos, err := r.talos()
	if !known || err != nil {
		return nil //nolint:nilerr // the machine's own version is checked before
	}

	return version.CheckEtcd(talos, minor)
}

// etcdNotices finds flags that the machine's etcd has, and with which there is none after an upgrade of Talos.
func (r *render) etcdNotices(documents []config.Document) []string {
	_, cluster := legacyOf(documents)
	if cluster.EtcdConfig == nil || r.etcdVersion(cluster.EtcdConfig.ContainerImage) != etcd36 {
		return nil
	}

	var notices []string

	for _, found := range goneFlags(documents) {
		notices = append(notices, found.document.String()+": "+found.field+": "+found.err.Error())
	}

	return notices
}

// goneFlags finds flags of etcd 3.6 with which the etcd of Talos 1.14 does not start.
func goneFlags(documents []config.Document) []finding {
	_, cluster := legacyOf(documents)
	if cluster.EtcdConfig == nil {
		return nil
	}

	var findings []finding

	for _, flag := range slices.Sorted(maps.Keys(cluster.EtcdConfig.EtcdExtraArgs.ToMap())) {
		advice, _, gone := laterEtcdFlag(flag)

		switch {
		case gone:
			advice = "is no flag of etcd 3.7, which Talos 1.14 runs and which does not start with it: " + advice
		case slices.Contains(ownOfNewTalos, flag):
			advice = "set by Talos itself from 1.14 on, and etcd will not start with it in the config: remove it before the upgrade"
		default:
			continue
		}

		findings = append(findings, finding{document: merge.ID{Kind: merge.LegacyKind}, field: etcdProgram.legacyPointer + flag, err: errors.New(advice)})
	}

	return findings
}

// GoneFlags says with which settings of the patch the etcd of Talos 1.14 does not start, although that of Talos before does: one sentence for
// each, which names object, document and field and says what to write instead. A document with an image of etcd of its own is not looked at.
func (p *Patch) GoneFlags() []string {
	read, _ := p.withStandIns()

	return read.goneFlags()
}

func (p *Patch) goneFlags() []string {
	if p.object.Spec.Role == bootstrapv1.MachineRoleWorker {
		return nil
	}

	var sentences []string

	for i := range p.documents {
		for _, found := range p.look(i, goneFlagsOf) {
			sentences = append(sentences, fmt.Sprintf("%s: %s: %s: %s", p.source(documentPath(i)), found.document, found.field, found.err))
		}
	}

	return sentences
}

func goneFlagsOf(document config.Document) []finding {
	documents := []config.Document{document}
	if _, cluster := legacyOf(documents); cluster.EtcdConfig == nil || cluster.EtcdConfig.ContainerImage != "" {
		return nil
	}

	return goneFlags(documents)
}
