// SPDX-License-Identifier: Apache-2.0

package version

import "fmt"

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

// CheckEtcd says why an etcd 3.<minor> does not start with the flags that a Talos gives it: Talos 1.14 sets some that came with etcd 3.6, and
// the Talos before it some that etcd 3.7 has no longer.
func CheckEtcd(talos Talos, minor int) error {
	switch own := EtcdOf(talos); {
	case own == "3.7" && minor < 6:
		return fmt.Errorf("is etcd 3.%d, which does not start with flags that Talos %s gives it: leave image out, or use etcd 3.6 or 3.7", minor, talos)
	case own == "3.6" && minor > 6:
		return fmt.Errorf("is etcd 3.%d, which does not start with flags that Talos %s gives it: leave image out, or use etcd 3.6", minor, talos)
	default:
		return nil
	}
}
