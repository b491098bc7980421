// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"unicode"
)

// initialisms are the words that Go writes in capitals. The list only shapes Go names, never the wire.
var initialisms = map[string]bool{
	"api": true, "arp": true, "bgp": true, "ca": true, "cel": true, "cidr": true, "cni": true, "cpu": true, "cri": true,
	"dhcp": true, "dns": true, "gid": true, "http": true, "https": true, "id": true, "ip": true, "ipv4": true, "ipv6": true,
	"kms": true, "mtu": true, "ntp": true, "pci": true, "ptp": true, "rbac": true, "stp": true, "tcp": true, "tls": true,
	"tpm": true, "uid": true, "uri": true, "url": true, "uuid": true, "vip": true, "vlan": true, "vrf": true, "wwid": true,
	"xfs": true,
}

// goName makes an exported Go name from a wire name: tlsServerName becomes TLSServerName.
func goName(wire string) string {
	var out strings.Builder

	for _, word := range words(wire) {
		if initialisms[strings.ToLower(word)] {
			out.WriteString(strings.ToUpper(word))
		} else {
			out.WriteString(upperFirst(word))
		}
	}

	return out.String()
}

// memberName makes the JSON name of a union member from a kind: HostnameConfig becomes hostnameConfig, LVMVolumeGroupConfig
// becomes lvmVolumeGroupConfig.
func memberName(kind string) string {
	runes := []rune(kind)

	end := 0
	for end < len(runes) && (unicode.IsUpper(runes[end]) || unicode.IsDigit(runes[end])) {
		end++
	}

	// The last capital of a run begins the next word, unless the run is the whole name.
	if end > 1 && end < len(runes) {
		end--
	}

	return strings.ToLower(string(runes[:end])) + string(runes[end:])
}

// words splits at every step from a lower-case letter or digit to an upper-case letter, and at characters that no Go name has.
func words(name string) []string {
	var (
		out  []string
		word []rune
		prev rune
	)

	flush := func() {
		if len(word) > 0 {
			out = append(out, string(word))
		}

		word = nil
	}

	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
		case unicode.IsUpper(r) && !unicode.IsUpper(prev):
			flush()

			word = append(word, r)
		default:
			word = append(word, r)
		}

		prev = r
	}

	flush()

	return out
}

func upperFirst(word string) string {
	runes := []rune(word)
	runes[0] = unicode.ToUpper(runes[0])

	return string(runes)
}
