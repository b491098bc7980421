// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/internal/memory"
)

// Program is a manager as the command line starts it.
type Program struct {
	// Name of the manager, in its user agent.
	Name string

	// Needs is a kind that the manager cannot be made without, and Definitions where its definition is, for who has not installed it.
	Needs       schema.GroupVersionKind
	Definitions string

	// Options are those that every manager has. They must be among what AddFlags and Validate see to.
	Options *Options

	// AddFlags adds a flag for each setting, and Validate says which of them make no sense.
	AddFlags func(set *pflag.FlagSet)
	Validate func() error

	// NewManager returns the manager, ready to be started.
	NewManager func(ctx context.Context, config *rest.Config) (ctrl.Manager, error)
}

// Run runs the program with command-line arguments until ctx is done. Help goes to out.
func (p Program) Run(ctx context.Context, version string, args []string, out io.Writer) error {
	set := pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	set.SetOutput(out)
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	set.AddGoFlagSet(flag.CommandLine) // --kubeconfig
	p.AddFlags(set)

	if err := set.Set("v", "2"); err != nil {
		return fmt.Errorf("default log level: %w", err)
	}

	if err := set.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}

		return err
	}

	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: every setting is a flag", set.Arg(0))
	}

	if err := p.Validate(); err != nil {
		return err
	}

	if err := logsv1.ValidateAndApply(p.Options.logs, nil); err != nil {
		return fmt.Errorf("logging flags: %w", err)
	}

	ctrl.SetLogger(klog.Background())

	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("configuration of the management cluster: %w", err)
	}

	restConfig.UserAgent = fmt.Sprintf("%s/%s", p.Name, version)

	if err := waitForDefinitions(ctx, restConfig, p.Needs, p.Definitions); err != nil {
		return err
	}

	mgr, err := p.NewManager(ctx, restConfig)
	if err != nil {
		return err
	}

	if err := mgr.Add(memory.NewKeeper()); err != nil {
		return fmt.Errorf("memory: %w", err)
	}

	mgr.GetLogger().WithName("setup").Info("Starting manager", "version", version)

	return mgr.Start(ctx)
}
