// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/invariants"
	"github.com/maesh-dev/ichor/test/stage"
)

// long has those scenarios played, too, that take longer.
var long = flag.Bool("long", false, "play the scenarios that take longer, too")

// OnlyLong skips a test that takes longer, unless it is asked for with -long.
func OnlyLong(t *testing.T) {
	t.Helper()

	if !*long {
		t.Skip("takes longer: -long")
	}
}

// Suite is the stage of all scenarios of a package.
type Suite struct {
	*stage.Stage

	// Managers are those that must not write when there is nothing to do: a name, and the user that each is.
	Managers map[string]string

	watching client.WithWatch
	search   *invariants.Search
	logs     string
}

// Main runs the tests of a package with a stage of their own, which they find in suite, and ends the process: call it in TestMain.
// What the managers log is kept in a file, which is named if a test fails. In the end, no secret may be anywhere but in Secrets, and
// no manager may have lacked a right.
func Main(m *testing.M, suite **Suite, options stage.Options) {
	code, err := run(m, suite, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		code = 1
	}

	os.Exit(code)
}

func run(m *testing.M, suite **Suite, options stage.Options) (code int, err error) {
	dir, err := os.MkdirTemp("", "ichor-scenario-")
	if err != nil {
		return 1, err
	}

	s := &Suite{logs: filepath.Join(dir, "managers.log"), Managers: map[string]string{
		"bootstrap manager": installation.Bootstrap.User(), "control-plane manager": installation.ControlPlane.User(),
	}}

	log, err := os.Create(s.logs)
	if err != nil {
		return 1, err
	}

	logger := harness.NewLogger(log)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	// For Steady.
	options.Audit = true

	if s.Stage, err = stage.Start(context.Background(), options); err != nil {
		return 1, err
	}

	defer func() {
		err = errors.Join(err, s.Stop())

		if code == 0 && err == nil {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintln(os.Stderr, "log of the managers:", s.logs)
		}
	}()

	if err := s.watch(); err != nil {
		return 1, err
	}

	*suite = s
	code = m.Run()

	return code, s.end()
}

func (s *Suite) watch() (err error) {
	if s.watching, err = client.NewWithWatch(s.Config(), client.Options{Scheme: stage.NewScheme()}); err != nil {
		return err
	}

	s.search, err = invariants.NewSearch(s.Config(), s.Client, s.logs, filepath.Join(s.LogDir(), "*"))

	return err
}

// end looks at what all scenarios have left.
func (s *Suite) end() error {
	leaks, err := s.search.Leaks(context.Background(), "")
	if err != nil {
		return err
	}

	var faults []error
	for _, leak := range leaks {
		faults = append(faults, &invariants.Fault{Invariant: invariants.Secrets, Text: leak})
	}

	content, err := os.ReadFile(s.logs)
	if err != nil {
		return err
	}

	if strings.Contains(string(content), "is forbidden: User ") {
		faults = append(faults, errors.New("the rights of an installation do not suffice: the log speaks of something that the user is forbidden"))
	}

	return errors.Join(faults...)
}
