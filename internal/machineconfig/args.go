// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// component is a program that Talos runs, with the flags of it that are not for users. Machinery lets a config set them; Talos then
// refuses to start the program, or the flags put other certificates, keys and data in the place of the cluster's own, or they go
// around a field that Talos refuses in the program's configuration file.
type component struct {
	flags []string

	// usual are the values that Talos sets some of them to: written out, they change nothing.
	usual map[string]string

	// legacyFlags are more of them, which machinery itself refuses in a document of their own.
	legacyFlags []string

	// cluster are the flags whose values come from the Cluster, with the field there.
	cluster map[string]string

	// known are all flags of a program of Kubernetes.
	known string

	// open says what is wrong with the values of a legacy flag that may be set, but not so that it lets everybody in, or endangers data.
	open func(flag string, values []string) error

	// legacy and modern give the extra arguments, from the legacy document and from one of their own.
	legacy        func(*v1alpha1.MachineConfig, *v1alpha1.ClusterConfig) meta.Args
	legacyPointer string
	modern        func(config.Document) (meta.Args, bool)
}

// Where the Cluster says what the flags of several programs must agree on.
const (
	podNetworks     = "spec.clusterNetwork.pods"
	serviceNetworks = "spec.clusterNetwork.services"
	serviceDomain   = "spec.clusterNetwork.serviceDomain"
)

// kernelDefaultsFlag is what Talos sets but in a container, where it cannot set the kernel's parameters that the kubelet then asks for.
const kernelDefaultsFlag = "protect-kernel-defaults"

var errOwnFlag = errors.New("set by Talos itself, and another value would cut the machine off or open it: remove it")

// arguments are the extra arguments of one component in one document, with the flags that are not for users there.
type arguments struct {
	document merge.ID
	pointer  string
	args     meta.Args
	own      []string
	usual    map[string]string
	cluster  map[string]string
	known    string
	open     func(flag string, values []string) error
}

func (a arguments) finding(flag string, err error) finding {
	return finding{document: a.document, field: a.pointer + merge.EscapePointer(flag), err: err}
}

// isUsual tells a flag of Talos' own with the value that Talos gives it.
func (a arguments) isUsual(flag string) bool {
	usual, ok := a.usual[flag]

	return ok && slices.Equal(a.args.ToMap()[flag], []string{usual})
}

// argumentsOf are the extra arguments in both layouts.
func argumentsOf(documents []config.Document) []arguments {
	var all []arguments

	machine, cluster := legacyOf(documents)

	for _, each := range components {
		all = append(all, arguments{
			document: merge.ID{Kind: merge.LegacyKind}, pointer: each.legacyPointer,
			args: each.legacy(machine, cluster), own: slices.Concat(each.flags, each.legacyFlags), usual: each.usual, cluster: each.cluster, known: each.known, open: each.open,
		})

		for _, document := range documents {
			if args, ok := each.modern(document); ok {
				all = append(all, arguments{
					document: merge.IDOf(document), pointer: "/extraArgs/",
					args: args, own: each.flags, usual: each.usual, cluster: each.cluster, known: each.known,
				})
			}
		}
	}

	return all
}

// ownArgs finds flags that Talos sets itself, and flags that no check would find since they are spelt in another way.
func ownArgs(merged *merge.Config, inContainer bool) []finding {
	var findings []finding

	for _, each := range argumentsOf(merged.Documents()) {
		for _, flag := range slices.Sorted(maps.Keys(each.args)) {
			err := misspeltFlag(flag)

			switch {
			case err != nil:
			case each.isUsual(flag) && (flag != kernelDefaultsFlag || !inContainer):
			case slices.Contains(each.own, flag):
				err = errOwnFlag
			case each.cluster[flag] != "":
				err = fromClusterError(each.cluster[flag])
			case each.open != nil:
				err = each.open(flag, each.args.ToMap()[flag])
			}

			if err != nil {
				findings = append(findings, each.finding(flag, err))
			}
		}
	}

	return findings
}

func isLoopback(text string) bool {
	address, err := netip.ParseAddr(text)

	return err == nil && address.IsLoopback()
}

// openServer refuses what lets everybody who has logged in, or everybody at all, do anything with the cluster, or nobody in.
func openServer(flag string, values []string) error {
	if flag == "bind-address" && slices.ContainsFunc(values, isLoopback) {
		return errors.New("leaves the API server to its own machine: no kubelet, no other machine and no load balancer would reach it: remove it")
	}

	if flag != "authorization-mode" {
		return nil
	}

	for _, value := range values {
		for mode := range strings.SplitSeq(value, ",") {
			if mode = strings.TrimSpace(mode); strings.HasPrefix(mode, "Always") {
				return fmt.Errorf("has the mode %s, which asks nobody: use Node, RBAC and Webhook", mode)
			}
		}
	}

	return nil
}

// anonymousRequests finds an API server of the legacy document that takes requests without a login. Up to config contract v1.13 a health
// check from outside has no other way; who they are may do what RBAC says. Machinery refuses the flag in a document of its own.
func anonymousRequests(patch *merge.Patch) []string {
	const flag = "anonymous-auth"

	var notices []string

	for _, part := range patch.Documents() {
		legacy, ok := part.Document.(*v1alpha1.Config)
		if !ok || legacy.ClusterConfig == nil || legacy.ClusterConfig.APIServerConfig == nil {
			continue
		}

		values := legacy.ClusterConfig.APIServerConfig.ExtraArgsConfig.ToMap()[flag]
		if slices.ContainsFunc(values, func(value string) bool { return value != "false" }) {
			notices = append(notices, fmt.Sprintf("%s: /cluster/apiServer/extraArgs/%s: lets requests without a login in, which may then do what RBAC "+
				"gives system:anonymous and system:unauthenticated: set it to false unless a health check needs it; from config contract v1.14 on, a "+
				"KubeAuthenticationConfig opens single paths, such as /livez", part.ID, flag))
		}
	}

	return notices
}

// flagName is how Talos, and the checks here, know a flag. Kubernetes' programs read client_ca_file as client-ca-file, and the name and
// the first value of a flag may stand in one word: with either, a flag would pass that is not for users.
var flagName = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)

// misspeltFlag says how a flag must be spelt.
func misspeltFlag(flag string) error {
	if flagName.MatchString(flag) {
		return nil
	}

	name, _, hasValue := strings.Cut(flag, "=")
	if hasValue {
		return errors.New("has the value in the name of the flag: write the name as the key and the value as its value")
	}

	right := strings.ReplaceAll(strings.ToLower(strings.TrimLeft(name, "-")), "_", "-")
	if !flagName.MatchString(right) {
		return errors.New("is no name of a flag: write it in lower case letters, digits and dashes, without dashes before it")
	}

	return fmt.Errorf("is not how the flag is spelt: write %s, in lower case, with dashes between its words and none before it", right)
}

// labelFlag is the kubelet's flag for labels of its own Node.
const labelFlag = "node-labels"

// labelFlags finds labels that the kubelet refuses to start with. Labels that are written as such are refused to a worker alone.
func labelFlags(documents []config.Document) []finding {
	var findings []finding

	look := func(document merge.ID, pointer string, args meta.Args) {
		for _, value := range args.ToMap()[labelFlag] {
			for label := range strings.SplitSeq(value, ",") {
				key, _, _ := strings.Cut(label, "=")
				if !forbiddenToKubelet(key) {
					continue
				}

				findings = append(findings, finding{
					document: document, field: pointer + labelFlag,
					err: fmt.Errorf("the kubelet does not start with the label %s: put it on the Machine if Cluster API syncs it "+
						"(node-role.kubernetes.io, node-restriction.kubernetes.io), or use another prefix", key),
				})
			}
		}
	}

	machine, cluster := legacyOf(documents)
	look(merge.ID{Kind: merge.LegacyKind}, kubeletProgram.legacyPointer, kubeletProgram.legacy(machine, cluster))

	for _, document := range documents {
		if args, ok := kubeletProgram.modern(document); ok {
			look(merge.IDOf(document), "/extraArgs/", args)
		}
	}

	return findings
}
