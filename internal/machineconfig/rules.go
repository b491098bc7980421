// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// talosRule knows words of Talos' validation, which name no field as a config has it, and do not say what to do.
type talosRule struct {
	// words of Talos, as a pattern.
	words *regexp.Regexp

	// fields are pointers that the rule may be about, in which $1 is the first group of the pattern; the first that the kind has counts.
	fields []string

	// advice is added to the words of Talos. Empty: they say it all.
	advice string
}

func rule(words, advice string, fields ...string) talosRule {
	return talosRule{regexp.MustCompile("^" + words), fields, advice}
}

// wireguardKey is what Talos' words about keys leave out.
const wireguardKey = "a key has 32 bytes, which are 44 characters of base64, as wg genkey and wg pubkey print it"

// talosRules are tried in their order; the first that fits counts. Above all, rules about what is missing are here, which cannot be found
// by taking values out. Those whose words begin with the field itself need no row but for advice.
var talosRules = []talosRule{
	rule(`min size or max size is required`, "set /provisioning/minSize or /provisioning/maxSize, such as 10GiB", "/provisioning"),
	rule(`min size is greater than max size`, "", "/provisioning/minSize"),
	rule(`min size cannot be negative`, "", "/provisioning/minSize"),
	rule(`disk selector is required`, "say which disk, such as match: disk.transport == 'nvme'", "/provisioning/diskSelector"),
	rule(`disk selector is invalid`, "", "/provisioning/diskSelector/match"),
	rule(`volume selector is required`, "say which volume, such as match: volume.partition_label == 'data'", "/discovery/volumeSelector", "/provisioning/volumeSelector"),
	rule(`volume selector is invalid`, "", "/discovery/volumeSelector/match", "/provisioning/volumeSelector/match"),
	rule(`provisioning\.maxSize is required`, "such as 10GiB, or 100% for what is left", "/provisioning/maxSize"),
	rule(`link selector is (?:required|invalid)`, "", "/selector/match"),
	rule(`encryption keys are required`, "such as keys: [{slot: 0, nodeID: {}}]", "/encryption/keys"),
	rule(`at least one encryption key type must be specified`, "such as nodeID: {}", "/encryption/keys"),
	rule(`unsupported encryption provider`, "use luks2", "/encryption/provider"),
	rule(`(?:unsupported|invalid) filesystem type`, "", "/filesystem/type", "/filesystemType"),

	rule(`at least one link must be specified`, "name the links, such as links: [eth0, eth1]", "/links"),
	rule(`bond mode must be specified`, "such as bondMode: 802.3ad or active-backup", "/bondMode"),
	rule(`vlanID must be`, "", "/vlanID"),
	rule(`parent must be specified`, "name the link that carries the VLAN, such as parent: eth0", "/parent"),
	rule(`link must be specified`, "", "/link"),
	rule(`route (\d+) destination must be`, "for the default route leave destination out; another is an address and a prefix length, such as 10.0.0.0/8", "/routes/$1/destination"),
	rule(`route (\d+) gateway must be`, "without a prefix length, such as 10.0.0.1", "/routes/$1/gateway"),
	rule(`route (\d+) source must be`, "without a prefix length, such as 10.0.0.5", "/routes/$1/source"),
	rule(`address (\d+) must be`, "such as 10.0.0.5/24", "/addresses/$1/address"),
	rule(`nameserver address must be a valid IP: entry (\d+)`, "", "/nameservers/$1/address"),
	rule(`tlsServerName must be .*entry (\d+)`, "", "/nameservers/$1/tlsServerName"),
	rule(`portSelector\.ports is required`, "such as ports: [443]", "/portSelector/ports"),
	rule(`wireguard private key must be`, "", "/privateKey"),
	rule(`wireguard private key is invalid`, wireguardKey, "/privateKey"),
	rule(`private key is invalid`, wireguardKey),
	rule(`public key invalid`, wireguardKey),
	rule(`wireguard peer public key .*peer index (\d+)`, wireguardKey, "/peers/$1/publicKey"),
	rule(`wireguard peer preshared key .*peer index (\d+)`, wireguardKey, "/peers/$1/presharedKey"),
	rule(`wireguard listen port`, "", "/listenPort"),

	rule(`watchdog timeout`, "", "/timeout"),
	rule(`watchdog device`, "such as /dev/watchdog0", "/device"),
	rule(`endpoints\[(\d+)\]\.url has unsupported scheme`, "write the URL with its scheme, https:// or http://", "/endpoints/$1/url"),
	rule(`only one of (?:auth, )?username/password or identityToken`, "remove one of them", ""),
	rule(`static pod spec is required`, "", "/pod"),
	rule(`manifest URL`, "", "/url"),
	rule(`url (?:is|scheme|port|path)`, "", "/url"),
	rule(`either 'auto' or 'hostname' must be set`, "", ""),
	rule(`'auto' and 'hostname' cannot be set`, "remove one of them; to keep a hostname that a patch sets, auto is \"off\"", ""),

	rule(`unknown logging format`, "json_lines is the one that there is", ""),
}

// ruleOf finds what is known of words of Talos' validation of a document: the field, empty when none is, and advice.
func ruleOf(document config.Document, words string) (field, advice string) {
	for _, row := range talosRules {
		match := row.words.FindStringSubmatchIndex(words)
		if match == nil {
			continue
		}

		for _, template := range row.fields {
			pointer := string(row.words.ExpandString(nil, template, words, match))
			if pointer != "" && merge.HasField(document, pointer) {
				return pointer, row.advice
			}
		}

		return "", row.advice
	}

	if pointer := leadingField(words); pointer != "" && merge.HasField(document, pointer) {
		return pointer, ""
	}

	return "", ""
}

var (
	fieldPath = regexp.MustCompile(`^\.?([a-zA-Z][a-zA-Z0-9]*(?:(?:\.[a-zA-Z][a-zA-Z0-9]*)|\[\d+\])*)(?:[ :]|$)`)
	listIndex = regexp.MustCompile(`\[(\d+)\]`)
)

// leadingField is the pointer of the field with which words begin, as in "endpoints[0].url must be specified".
func leadingField(words string) string {
	match := fieldPath.FindStringSubmatch(words)
	if match == nil {
		return ""
	}

	return "/" + strings.ReplaceAll(listIndex.ReplaceAllString(match[1], ".$1"), ".", "/")
}

// explained is a finding of Talos' own validation of a document, with its field and what to do where that is known.
func explained(document config.Document, err error) finding {
	field, advice := ruleOf(document, err.Error())
	found := finding{document: merge.IDOf(document), field: field, err: plainWords(err)}

	if advice != "" {
		found.err = fmt.Errorf("%w: %s", found.err, advice)
	}

	return found
}

// goWords are words of Go's parsers, which say nothing to those who write configs, and what they mean.
var goWords = []struct {
	words *regexp.Regexp
	plain string
}{
	{regexp.MustCompile(`(?:netip\.)?ParseAddr\("([^"]*)"\): .*$`), `"$1" is no IP address`},
	{regexp.MustCompile(`(?:netip\.)?ParsePrefix\("([^"]*)"\): .*$`), `"$1" is no address with the length of its prefix, such as 10.0.0.0/24`},
	{regexp.MustCompile(`strconv\.Parse\w+: parsing "([^"]*)": .*$`), `"$1" is no number`},
	{regexp.MustCompile(`illegal base64 data at input byte \d+`), `is no base64`},
}

// plainWords says in plain words what Go's parsers say.
func plainWords(err error) error {
	words := err.Error()

	for _, row := range goWords {
		if plain := row.words.ReplaceAllString(words, row.plain); plain != words {
			return plainError{words: plain, err: err}
		}
	}

	if match := signedBesideUnsigned.FindStringSubmatch(words); match != nil && match[1] != match[2] {
		return fmt.Errorf("%w (sizes are unsigned numbers, and are compared with such: write 100u * GB, or 100u)", err)
	}

	return err
}

// signedBesideUnsigned is how CEL refuses "disk.size > 100".
var signedBesideUnsigned = regexp.MustCompile(`\((u?int), (u?int)\)`)

// plainError is an error in other words.
type plainError struct {
	words string
	err   error
}

func (e plainError) Error() string { return e.words }
func (e plainError) Unwrap() error { return e.err }
