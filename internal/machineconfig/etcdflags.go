// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/config"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/suggest"
)

// etcdValue says what a flag of etcd takes, and whether a value is of that sort.
type etcdValue struct {
	words string
	fits  func(string) bool
}

var (
	etcdText     = etcdValue{"text", func(string) bool { return true }}
	etcdBoolean  = etcdValue{"true or false", func(value string) bool { _, err := strconv.ParseBool(value); return err == nil }}
	etcdDuration = etcdValue{"a duration such as 10s or 1h30m", func(value string) bool { _, err := time.ParseDuration(value); return err == nil }}

	// Less than nothing turns the quota off. No other flag is known to mean anything by it.
	etcdSigned    = etcdValue{wholeWithoutUnit, func(value string) bool { _, err := strconv.ParseInt(value, 0, 64); return err == nil }}
	etcdNumber    = etcdValue{wholeWithoutUnit, func(value string) bool { _, err := strconv.ParseUint(value, 0, 63); return err == nil }}
	etcdListen    = etcdValue{"URLs with an IP address and a port, such as http://0.0.0.0:2381", listensOn}
	etcdOrigins   = etcdValue{"* alone, or URLs with a port and no path, such as https://ui.example.com:443", areOrigins}
	etcdLevels    = etcdValue{"one of " + strings.Join(etcdLogLevels, ", "), isLevel}
	etcdTLS       = etcdOneOf("TLS1.2", "TLS1.3")
	etcdRetention = etcdValue{"a number of hours or revisions, or with the mode periodic a duration such as 1h", isRetention}
	etcdCiphers   = etcdValue{"names of cipher suites, such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", isCiphers}
	etcdFeatures  = etcdValue{"the names of its feature gates with true or false, such as InitialCorruptCheck=true; they are " + strings.Join(etcdGates, ", "), isGates}
)

const wholeWithoutUnit = "a whole number without unit"

// etcdOneOf is for flags that take one of a few words.
func etcdOneOf(words ...string) etcdValue {
	return etcdValue{"one of " + strings.Join(words, ", "), func(value string) bool { return slices.Contains(words, value) }}
}

// areOrigins tells a list of origins of requests, or the star that stands for all. etcd reads them as it reads addresses, port and all.
func areOrigins(value string) bool {
	return value == "*" || !slices.ContainsFunc(strings.Split(value, ","), isNoOrigin)
}

func isNoOrigin(origin string) bool {
	parsed, err := url.Parse(strings.TrimSpace(origin))
	if err != nil {
		return true
	}

	switch parsed.Scheme {
	case "unix", "unixs":
		return false
	case "http", "https":
		_, _, err = net.SplitHostPort(parsed.Host)

		return err != nil || parsed.Path != ""
	default:
		return true
	}
}

var etcdLogLevels = []string{"debug", "info", "warn", "error", "panic", "fatal"}

func isLevel(value string) bool { return slices.Contains(etcdLogLevels, strings.ToLower(value)) }

// listensOn tells a list of URLs that etcd can listen on: it takes no names.
func listensOn(value string) bool {
	for each := range strings.SplitSeq(value, ",") {
		parsed, err := url.Parse(strings.TrimSpace(each))
		if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Path != "" || parsed.Port() == "" {
			return false
		}

		if host := parsed.Hostname(); host != "localhost" && net.ParseIP(host) == nil {
			return false
		}
	}

	return true
}

func isRetention(value string) bool { return etcdNumber.fits(value) || etcdDuration.fits(value) }

func isNoNumber(value string) bool { return !etcdNumber.fits(value) }

func isCiphers(value string) bool {
	for each := range strings.SplitSeq(value, ",") {
		if !isCipher(each) {
			return false
		}
	}

	return true
}

// etcdGates are the feature gates of etcd 3.6. Those of etcd 3.7 are for Talos alone to set.
var etcdGates = []string{
	"CompactHashCheck", "InitialCorruptCheck", "LeaseCheckpoint", "LeaseCheckpointPersist", "SetMemberLocalAddr", "StopGRPCServiceOnDefrag",
	"TxnModeWriteWithSharedBuffer",
}

func isGates(value string) bool {
	known := slices.Concat(etcdGates, []string{"AllAlpha", "AllBeta"})

	for each := range strings.SplitSeq(value, ",") {
		name, on, _ := strings.Cut(strings.TrimSpace(each), "=")
		if _, err := strconv.ParseBool(on); err != nil || !slices.Contains(known, name) {
			return false
		}
	}

	return true
}

// etcdFlags are the flags of etcd that a user may set, with what each takes. With another flag, or another value, etcd does not start: on one
// member after the other. Those that every Talos sets are elsewhere, and so are those that nobody must set. etcd 3.6 and 3.7 have all of them.
var etcdFlags = map[string]etcdValue{
	"auth-token": etcdText, "auth-token-ttl": etcdNumber,
	"auto-compaction-mode": etcdOneOf("periodic", "revision"), "auto-compaction-retention": etcdRetention,
	"backend-batch-interval": etcdDuration, "backend-batch-limit": etcdNumber, "backend-bbolt-freelist-type": etcdOneOf("array", "map"),
	"bcrypt-cost": etcdNumber, "bootstrap-defrag-threshold-megabytes": etcdNumber,
	"cipher-suites": etcdCiphers, "client-cert-allowed-hostname": etcdText, "client-crl-file": etcdText,
	"compact-hash-check-time": etcdDuration, "compaction-batch-limit": etcdNumber, "compaction-sleep-interval": etcdDuration,
	"corrupt-check-time": etcdDuration, "cors": etcdOrigins,
	"distributed-tracing-address": etcdText, "distributed-tracing-instance-id": etcdText, "distributed-tracing-sampling-rate": etcdNumber,
	"distributed-tracing-service-name": etcdText, "downgrade-check-time": etcdDuration,
	"election-timeout": etcdNumber, "enable-distributed-tracing": etcdBoolean, "enable-grpc-gateway": etcdBoolean,
	"enable-log-rotation": etcdBoolean, "enable-pprof": etcdBoolean,
	"feature-gates":           etcdFeatures,
	"grpc-keepalive-interval": etcdDuration, "grpc-keepalive-min-time": etcdDuration, "grpc-keepalive-timeout": etcdDuration,
	"heartbeat-interval": etcdNumber, "host-whitelist": etcdText,
	"initial-election-tick-advance": etcdBoolean,
	"listen-client-http-urls":       etcdListen, "listen-metrics-urls": etcdListen,
	"log-format": etcdOneOf("json", "console"), "log-level": etcdLevels, "log-outputs": etcdText,
	"log-rotation-config-json": etcdText, "logger": etcdOneOf("zap"),
	"max-concurrent-streams": etcdNumber, "max-learners": etcdNumber, "max-request-bytes": etcdNumber, "max-snapshots": etcdNumber,
	"max-txn-ops": etcdNumber, "max-wals": etcdNumber, "memory-mlock": etcdBoolean, "metrics": etcdOneOf("basic", "extensive"),
	"peer-cert-allowed-cn": etcdText, "peer-cert-allowed-hostname": etcdText, "peer-crl-file": etcdText,
	"peer-skip-client-san-verification": etcdBoolean, "pre-vote": etcdBoolean,
	"quota-backend-bytes": etcdSigned,
	"raft-read-timeout":   etcdDuration, "raft-write-timeout": etcdDuration,
	"self-signed-cert-validity": etcdNumber, "snapshot-catchup-entries": etcdNumber, "snapshot-count": etcdNumber,
	"socket-reuse-address": etcdBoolean, "socket-reuse-port": etcdBoolean, "strict-reconfig-check": etcdBoolean,
	"tls-max-version": etcdOneOf("", "TLS1.2", "TLS1.3"), "tls-min-version": etcdTLS,
	"unsafe-no-fsync":        etcdBoolean,
	"v2-deprecation":         etcdOneOf("write-only", "write-only-skip-check", "write-only-drop-data", "gone"),
	"warning-apply-duration": etcdDuration, "warning-unary-request-duration": etcdDuration, "watch-progress-notify-interval": etcdDuration,
}

// experimental begins the names of flags that etcd 3.6 still has, and etcd 3.7 no longer.
const experimental = "experimental-"

// etcdGateOf are the flags of etcd 3.6 in whose place there is a feature gate. The others lost the word before their names.
var etcdGateOf = map[string]string{
	"experimental-compact-hash-check-enabled":        "CompactHashCheck",
	"experimental-enable-lease-checkpoint":           "LeaseCheckpoint",
	"experimental-enable-lease-checkpoint-persist":   "LeaseCheckpointPersist",
	"experimental-initial-corrupt-check":             "InitialCorruptCheck",
	"experimental-stop-grpc-service-on-defrag":       "StopGRPCServiceOnDefrag",
	"experimental-txn-mode-write-with-shared-buffer": "TxnModeWriteWithSharedBuffer",
}

// etcdExperimental are the others.
var etcdExperimental = []string{
	"bootstrap-defrag-threshold-megabytes", "compact-hash-check-time", "compaction-batch-limit", "compaction-sleep-interval", "corrupt-check-time",
	"distributed-tracing-address", "distributed-tracing-instance-id", "distributed-tracing-sampling-rate", "distributed-tracing-service-name",
	"downgrade-check-time", "enable-distributed-tracing", "memory-mlock", "peer-skip-client-san-verification", "snapshot-catchup-entries",
	"warning-apply-duration", "warning-unary-request-duration",
}

// laterEtcdFlag says what to do about an experimental flag of etcd 3.6, which etcd 3.7 has no longer, and what it takes.
func laterEtcdFlag(flag string) (advice string, takes etcdValue, known bool) {
	if _, gate := etcdGateOf[flag]; gate {
		return "remove it, since from Talos 1.14 on the feature gates of etcd are for Talos alone to set", etcdBoolean, true
	}

	if name, cut := strings.CutPrefix(flag, experimental); cut && slices.Contains(etcdExperimental, name) {
		return "write " + name + ", which etcd 3.6 and 3.7 both know", etcdFlags[name], true
	}

	return "", etcdValue{}, false
}

// etcdArgs finds flags that etcd does not have, and values that it does not take.
func (r *render) etcdArgs(documents []config.Document) []finding {
	_, cluster := legacyOf(documents)
	if cluster.EtcdConfig == nil {
		return nil
	}

	id, image := merge.ID{Kind: merge.LegacyKind}, cluster.EtcdConfig.ContainerImage
	if err := r.strangeEtcd(image); err != nil {
		return []finding{{document: id, field: "/cluster/etcd/image", err: err}}
	}

	running, own := r.etcdVersion(image), r.ownEtcdFlags()
	args := cluster.EtcdConfig.EtcdExtraArgs.ToMap()

	var findings []finding

	for _, flag := range slices.Sorted(maps.Keys(args)) {
		// Those are told of already.
		if !flagName.MatchString(flag) || slices.Contains(etcdProgram.flags, flag) || endangersEtcd(flag, args[flag]) != nil {
			continue
		}

		err := etcdFault(flag, args[flag], running)

		switch {
		case slices.Contains(own, flag):
			err = errOwnEtcdFlag
		case flag == "feature-gates" && err == nil:
			err = gateTwice(args)
		// The mode says how the other flag is read.
		case flag == "auto-compaction-retention" && slices.Contains(args["auto-compaction-mode"], "revision") && slices.ContainsFunc(args[flag], isNoNumber):
			err = errors.New("is no number, and with the mode revision etcd takes a number of revisions there, or does not start")
		}

		if err != nil {
			findings = append(findings, finding{document: id, field: etcdProgram.legacyPointer + flag, err: err})
		}
	}

	return findings
}

// etcdFault says why etcd does not start with the flag. Of an etcd that is not known, only the values of flags that are known are.
func etcdFault(flag string, values []string, running string) error {
	takes, known := etcdFlags[flag]

	if !known {
		var advice string

		advice, takes, known = laterEtcdFlag(flag)

		switch {
		case running == "":
			return nil
		case !known:
			return unknownEtcdFlag(flag, running)
		case running != etcd36:
			return fmt.Errorf("is no flag of etcd %s any more, which would not start: %s", running, advice)
		}
	}

	for _, value := range values {
		if !takes.fits(value) {
			return fmt.Errorf("is %q, and etcd takes %s there, or does not start", value, takes.words)
		}
	}

	return nil
}

func unknownEtcdFlag(flag, running string) error {
	names := slices.Sorted(maps.Keys(etcdFlags))

	if near := suggest.Nearest(flag, names); near != "" {
		return fmt.Errorf("etcd %s has no such flag, and would not start: did you mean %s?", running, near)
	}

	return fmt.Errorf("etcd %s has no such flag, and would not start: remove it", running)
}

// EtcdFlags are all flags of etcd 3.6 that are known: those that users may set, and those that they must not.
func EtcdFlags() []string {
	names := slices.Concat(slices.Collect(maps.Keys(etcdFlags)), etcdProgram.flags, slices.Collect(maps.Keys(etcdGateOf)), ownOfOldTalos)

	for _, name := range slices.Concat(etcdExperimental, []string{"initial-advertise-peer-urls", "advertise-client-urls"}) {
		if _, there := etcdFlags[name]; there {
			name = experimental + name
		}

		names = append(names, name)
	}

	slices.Sort(names)

	return names
}

// EtcdRefuses tells for each flag that users may set whether a value of it is refused.
func EtcdRefuses(value string) map[string]bool {
	refuses := map[string]bool{}
	for flag, takes := range etcdFlags {
		refuses[flag] = !takes.fits(value)
	}

	return refuses
}
