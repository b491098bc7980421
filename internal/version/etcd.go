// SPDX-License-Identifier: Apache-2.0

package version

// EtcdOf is the minor version of etcd that a Talos runs when its config names no image: "3.6", or "3.7" from Talos 1.14 on. It is empty for
// the zero value.
func EtcdOf(talos Talos) string {
	switch {
	case talos.IsZero():
		return ""
	case talos.Contract().Less(Contract{major: talosMajor, minor: 14}):
		return "3.6"
	default:
		return "3.7"
	}
}
