// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
)

const (
	durationForm = "a duration such as 30s, 5m or 1h30m"
	sizeForm     = "a size such as 10GiB or 500MB"
	quantityForm = "a quantity of Kubernetes, such as 100m or 2 for CPUs, 512Mi or 1Gi for memory"
)

// forms say in words what texts the patterns of the schema accept: a pattern helps nobody who writes YAML.
var forms = map[string]string{
	`^-?(0|([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)$`:                 durationForm,
	`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`:                       durationForm,
	`^(0|[1-9][0-9]*|([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)$`:       durationForm,
	`^[-._a-zA-Z0-9]+$`:                                            "the name of a key: letters, digits, and . _ - between them",
	`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`:                             "the name of an object: lower case letters, digits, and . - between them, such as my-secret",
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`:                              "lower case letters, digits, and - between them",
	`^[a-z0-9-]+$`:                                                 "lower case letters, digits and -",
	`^(0|[1-9][0-9]{0,19})$`:                                       "a whole number from 0",
	`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`:             `a number; a fraction in quotes, such as "0.5"`,
	`^[0-9a-fA-F:.]+/[0-9]{1,3}$`:                                  "an address and the length of its prefix, such as 10.0.0.0/24 or 2001:db8::/64",
	`^[0-9a-fA-F:.]+(%[0-9A-Za-z._-]+)?$`:                          "an IP address such as 10.0.0.1 or 2001:db8::1",
	`^([0-9.]+|\[[0-9a-fA-F:.]+(%[0-9A-Za-z._-]+)?\]):[0-9]{1,5}$`: "an IP address and a port, such as 10.0.0.1:51820 or [2001:db8::1]:51820",
	`^([0-9a-fA-F]{2}:)*[0-9a-fA-F]{2}$`:                           "a hardware address such as 02:00:5e:10:00:01",
	`^(unspec|default|main|local|[0-9]{1,10})$`:                    "the number of a routing table such as 123, or main, local or default",
	`^[0-9]{1,5}-[0-9]{1,5}$`:                                      "a range of ports such as 8000-8100; a single port is a number without quotes",
	`^[0-9]+(\.[0-9]+)? ?([kKMGTPE]i?)?B?$`:                        sizeForm,
	`^[0-9]+(\.[0-9]+)? ?(%|([kKMGTPE]i?)?B?)$`:                    sizeForm + ", or a share of the disk such as 50%",
	`^-?[0-9]+(\.[0-9]+)? ?(%|([kKMGTPE]i?)?B?)$`:                  sizeForm + ", or a share of the disk such as 50%",
	`^(>=|<=|>|<|==)? *[0-9]+(\.[0-9]+)? *([kKMGTPE]i?)?B?$`:       `a size such as 100GB, or a comparison such as ">= 100GB"`,
	quantity: quantityForm,
	`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`: quantityForm,
	`^v1\.[0-9]{1,3}$`: "a config contract such as v1.14",
	`^v1\.[0-9]{1,3}\.[0-9]{1,3}(-[0-9A-Za-z.-]+)?$`:                      "a Talos version such as v1.14.1",
	`^https?://[^@\s]+$`:                                                  "a URL such as https://example.com/path, without a user",
	`^(https|grpc)://[^@\s]+$`:                                            "a URL that begins with https:// or grpc://, without a user",
	`^[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._-]+)*$`:                   "a registry such as registry.example.com:5000/path, without https://",
	`^(\*|[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9a-fA-F:]+\](:[0-9]{1,5})?)$`: "a host such as registry.example.com:5000, without https://, or *",
	`^[0-9a-f]{64}$`:                                                      "the ID of a schematic, which has 64 hexadecimal digits",
	`^/dev/[A-Za-z0-9._/:+-]+$`:                                           "the path of a device such as /dev/nvme0n1",
	`^[A-Z][A-Za-z0-9]*$`:                                                 "the kind of a document such as KubeletConfig, or Config for the legacy document",
	`^(/([^/~]|~[01])+)+$`:                                                "a path that begins with /, such as /provisioning/minSize (a JSON Pointer)",
}

// quantity is the pattern of resource.Quantity.
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// formOf says in words what a message with a pattern wants. It is false for another message.
func formOf(message string) (string, bool) {
	pattern, ok := strings.CutPrefix(message, "should match '")
	if !ok {
		return "", false
	}

	if form, ok := forms[strings.TrimSuffix(pattern, "'")]; ok {
		return "must be " + form, true
	}

	return "does not have the form that this field wants", true
}
