// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	"github.com/maesh-dev/ichor/internal/suggest"
)

const (
	formAddress     = "an IP address such as 10.0.0.1 or 2001:db8::1"
	formAddressPort = "an IP address and a port, such as 10.0.0.1:51820 or [2001:db8::1]:51820"
	formPrefix      = "an address and the length of its prefix, such as 10.0.0.0/24 or 2001:db8::/64"
)

// forms say in words what types that read their own text take, each with an example. Types of a few words alone are not here: their
// words are told.
var forms = map[reflect.Type]string{
	reflect.TypeFor[netip.Addr]():                      formAddress,
	reflect.TypeFor[meta.Addr]():                       formAddress,
	reflect.TypeFor[netip.AddrPort]():                  formAddressPort,
	reflect.TypeFor[meta.AddrPort]():                   formAddressPort,
	reflect.TypeFor[netip.Prefix]():                    formPrefix,
	reflect.TypeFor[meta.Prefix]():                     formPrefix,
	reflect.TypeFor[nethelpers.HardwareAddr]():         "a hardware address, which is pairs of hexadecimal digits such as 02:00:5e:10:00:01",
	reflect.TypeFor[nethelpers.RoutingTable]():         "the number of a routing table such as 123, or main, local or default",
	reflect.TypeFor[network.PortRange]():               "a port such as 443, without quotes, or a range such as 8000-8100",
	reflect.TypeFor[block.ByteSize]():                  "a size such as 10GiB or 500MB",
	reflect.TypeFor[block.Size]():                      "a size such as 10GiB or 500MB, or a share of the disk between 0 and 100 percent such as 50%",
	reflect.TypeFor[v1alpha1.DiskSize]():               "a size such as 10GiB or 500MB",
	reflect.TypeFor[v1alpha1.InstallDiskSizeMatcher](): `a size such as 100GB, or a comparison such as ">= 100GB"`,
	reflect.TypeFor[meta.ArgValue]():                   "text or a list of texts",
}

// wrongValue says what a type takes instead of the text of a node.
func wrongValue(t reflect.Type, text string, err error) error {
	words := wordsOf(t)

	switch {
	case len(words) > 0 && strings.HasSuffix(text, "(0)"): // a number without a word, as the encoder writes what is not set
		return fmt.Errorf("a word that is missing: want %s", choice(words))
	case len(words) > 0:
		return fmt.Errorf("wrong value %q: want %s%s", text, choice(words), meant(words, text))
	case t == reflect.TypeFor[network.PortRange]() && isNumber(text):
		return fmt.Errorf("wrong value %q: a single port is a number: write %s without quotes", text, text)
	case forms[t] == formPrefix && isAddress(text):
		return fmt.Errorf("wrong value %q: the length of the prefix is missing: want %s", text, formPrefix)
	case forms[t] != "":
		return fmt.Errorf("wrong value %q: want %s", text, forms[t])
	case t == reflect.TypeFor[cel.Expression]():
		return fmt.Errorf("is no CEL expression that Talos takes here: %w", err)
	default:
		return fmt.Errorf("wrong value %q: %w", text, err)
	}
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 32)

	return err == nil
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)

	return err == nil
}

// maxWords is above what any enumeration has: a type with more words is none.
const maxWords = 32

// enumerations keeps the words of each type that was asked for.
var enumerations sync.Map

// wordsOf gives the words that an enumeration takes, and nothing for another type. Machinery has a list for each of its enumerations
// and no way to get it from the type, so the type is asked which numbers it can read back from their words.
func wordsOf(t reflect.Type) []string {
	if known, ok := enumerations.Load(t); ok {
		return known.([]string) //nolint:forcetypeassert // only words are stored
	}

	var words []string

	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 && t != reflect.TypeFor[nethelpers.RoutingTable]() {
		words = askWords(t)
	}

	enumerations.Store(t, words)

	return words
}

// largest is the largest number of an enumeration: VLAN protocols are numbers of Ethernet.
const largest = 1 << 16

func askWords(t reflect.Type) []string {
	var words []string

	for number := range int64(largest) {
		value, again := reflect.New(t), reflect.New(t)

		if t.Kind() <= reflect.Int64 {
			value.Elem().SetInt(number)
		} else if value.Elem().OverflowUint(uint64(number)) {
			break
		} else {
			value.Elem().SetUint(uint64(number))
		}

		named, ok := reflect.TypeAssert[fmt.Stringer](value)
		reader, reads := reflect.TypeAssert[encoding.TextUnmarshaler](again)

		if !ok || !reads {
			return nil
		}

		// Numbers without a word are shown as "Type(7)".
		word := named.String()
		if strings.ContainsRune(word, '(') {
			continue
		}

		if reader.UnmarshalText([]byte(word)) != nil || again.Elem().Interface() != value.Elem().Interface() || isNumber(word) {
			continue
		}

		if words = append(words, word); len(words) > maxWords {
			return nil
		}
	}

	return words
}

// choice lists words. Those that YAML takes for true or false are in quotes, as they have to be written.
func choice(words []string) string {
	shown := make([]string, len(words))
	for i, word := range words {
		if shown[i] = word; isBoolean(word) {
			shown[i] = strconv.Quote(word)
		}
	}

	if len(shown) == 1 {
		return shown[0]
	}

	return "one of " + strings.Join(shown, ", ")
}

// isBoolean says whether YAML as Kubernetes reads it takes a word without quotes for true or false.
func isBoolean(word string) bool {
	return slices.Contains([]string{"on", "off", "yes", "no", "y", "n", "true", "false"}, strings.ToLower(word))
}

// meant adds which of the words may have been meant.
func meant(words []string, text string) string {
	switch near := suggest.Nearest(text, words); {
	case slices.ContainsFunc(words, isBoolean) && (text == "true" || text == "false"):
		return " (in quotes, which keep a word from being read as true or false)"
	case near != "" && len(words) > 1:
		return fmt.Sprintf("; did you mean %s?", choice([]string{near}))
	default:
		return ""
	}
}

// errSecretForm is for fields whose values are not shown.
var errSecretForm = errors.New("the value does not have the form that this field wants")
