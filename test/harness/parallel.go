// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"flag"
	"strconv"
)

// Parallel has so many parallel tests of a package run at once, unless -parallel says otherwise. Call it in TestMain. The default is one
// for each processor, which is far too few for tests that wait for a cluster most of the time, each for its own objects.
func Parallel(tests int) error {
	const name = "test.parallel"

	flag.Parse()

	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == name })

	if said {
		return nil
	}

	return flag.Set(name, strconv.Itoa(tests))
}
