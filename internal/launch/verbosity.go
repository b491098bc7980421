// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"net/http"
	"strconv"

	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/component-base/logs"
)

// maxVerbosity is the highest log level: from the next one on, the Kubernetes client logs the bodies of its requests and
// responses, and with them the values of Secrets.
const maxVerbosity = 7

// verbosityPath is where the diagnostics endpoint takes a new log level.
const verbosityPath = "/debug/flags/v"

// checkVerbosity says what is wrong with the log level of a flag.
func checkVerbosity(flag string, level uint64) error {
	if level <= maxVerbosity {
		return nil
	}

	return fmt.Errorf("%s is %d: set at most %d, since from %d on the log has the requests to the API server as a whole, "+
		"and in them the values of Secrets", flag, level, maxVerbosity, maxVerbosity+1)
}

// checkVerbosities checks the log level of the process and those of single files.
func checkVerbosities(options *logs.Options) []error {
	faults := []error{checkVerbosity("--v", uint64(options.Verbosity))}

	for _, item := range options.VModule {
		faults = append(faults, checkVerbosity("--vmodule="+item.FilePattern, uint64(item.Verbosity)))
	}

	return faults
}

// verbosityHandler sets the log level while the manager runs, within the limit that the flag has, too.
func verbosityHandler() http.Handler {
	return routes.StringFlagPutHandler(func(value string) (string, error) {
		level, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return "", err
		}

		if err := checkVerbosity("the log level", level); err != nil {
			return "", err
		}

		return logs.GlogSetter(value)
	})
}
