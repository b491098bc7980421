// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/harness"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/infrastructure/inprocess"
	"github.com/maesh-dev/ichor/test/infrastructure/machines"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/tools"
)

// Options say what a stage has. The zero value is right for most scenarios: each SimCluster says how real its machines are.
type Options struct {
	// Machines are the settings of the infrastructure provider.
	Machines machines.Options

	// Farm has machines of another stage, from which clusters are moved here. That stage closes it. Nil: the stage has its own.
	Farm *machines.Farm

	// CAPIFeatureGates are set on Cluster API's core manager.
	CAPIFeatureGates map[string]bool

	// Audit has the API server note every request, for UnfitRights and for the invariant that nothing is written in vain.
	Audit bool

	// ControlPlaneProgram is the control-plane manager, as harness.BuildProvider has built it: it runs as a process of its own, with these
	// arguments. Empty: it runs in this process.
	ControlPlaneProgram string
	ControlPlaneArgs    []string
}

// Stage is a management cluster in which everything runs. Stop it.
type Stage struct {
	*harness.ManagementCluster

	// Client is an administrator's, for the kinds of Cluster API, Ichor and sim.
	Client client.Client

	// Farm has the simulated machines of all clusters. They outlive the infrastructure provider, as a platform's do.
	Farm *machines.Farm

	// ControlPlane is the process of the control-plane manager, nil if it runs in this one.
	ControlPlane *harness.Provider

	options          Options
	controlPlane     installation.Components
	stopControlPlane func() error
	infrastructure   installation.Components
	provider         *inprocess.Provider
	stops            []func() error
}

// NewScheme returns a scheme with the kinds of Kubernetes, Cluster API, Ichor and sim.
func NewScheme() *runtime.Scheme {
	scheme := harness.NewScheme()

	utilruntime.Must(bootstrapv1.AddToScheme(scheme))
	utilruntime.Must(controlplanev1.AddToScheme(scheme))
	utilruntime.Must(infrav1.AddToScheme(scheme))

	return scheme
}

// Start starts a stage, which lives until Stop.
func Start(ctx context.Context, options Options) (_ *Stage, err error) {
	s := &Stage{Farm: options.Farm, options: options}
	if s.Farm == nil {
		s.Farm = machines.New(options.Machines)
	}

	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()

	root, err := tools.RepositoryRoot()
	if err != nil {
		return nil, err
	}

	bootstrap, err := installation.Bootstrap.Read(ctx, root)
	if err != nil {
		return nil, err
	}

	if s.controlPlane, err = installation.ControlPlane.Read(ctx, root); err != nil {
		return nil, err
	}

	if s.infrastructure, err = inprocess.Read(ctx, root); err != nil {
		return nil, err
	}

	s.ManagementCluster, err = harness.StartManagementCluster(ctx, harness.Options{
		CAPICore:         true,
		CAPIFeatureGates: options.CAPIFeatureGates,
		Audit:            options.Audit,
		CRDs:             slices.Concat(bootstrap.CRDs, s.controlPlane.CRDs, s.infrastructure.CRDs),
		Manifests:        []string{bootstrap.AggregatedRole, s.controlPlane.AggregatedRole, s.infrastructure.AggregatedRole},
	})
	if err != nil {
		return nil, err
	}

	s.stops = append(s.stops, s.ManagementCluster.Stop)

	if s.Client, err = client.New(s.Config(), client.Options{Scheme: NewScheme()}); err != nil {
		return nil, err
	}

	stop, err := bootstrap.Start(ctx, s.ManagementCluster, nil)
	if err != nil {
		return nil, err
	}

	s.stops = append(s.stops, stop)
	if err = s.StartControlPlane(ctx, nil); err != nil {
		return nil, err
	}

	return s, s.startProvider(ctx)
}

// StartControlPlane starts the manager of the control-plane provider as the stage's options have it, where StopControlPlane has ended one.
// Every request of a manager in this process goes through wrap, if there is one.
func (s *Stage) StartControlPlane(ctx context.Context, wrap func(http.RoundTripper) http.RoundTripper) (err error) {
	if s.options.ControlPlaneProgram == "" {
		s.stopControlPlane, err = s.controlPlane.Start(ctx, s.ManagementCluster, wrap)

		return err
	}

	if wrap != nil {
		return errors.New("the requests of a control-plane manager that is a process of its own cannot be wrapped")
	}

	s.ControlPlane, err = s.controlPlane.StartProcess(ctx, s.ManagementCluster, s.options.ControlPlaneProgram, s.options.ControlPlaneArgs...)
	if err == nil {
		s.stopControlPlane = s.ControlPlane.Stop
	}

	return err
}

// StopControlPlane ends that manager, if there is one.
func (s *Stage) StopControlPlane() error {
	stop := s.stopControlPlane
	s.stopControlPlane, s.ControlPlane = nil, nil

	if stop == nil {
		return nil
	}

	return stop()
}

func (s *Stage) startProvider(ctx context.Context) (err error) {
	s.provider, err = inprocess.StartWith(ctx, s.infrastructure, s.ManagementCluster, s.Farm)

	return err
}

// RestartInfrastructure ends the infrastructure provider and starts it again. Its machines go on meanwhile. After an error there is
// none, and the function may be called again.
func (s *Stage) RestartInfrastructure(ctx context.Context) error {
	if provider := s.provider; provider != nil {
		s.provider = nil

		if err := provider.Stop(); err != nil {
			return fmt.Errorf("stop the infrastructure provider: %w", err)
		}
	}

	return s.startProvider(ctx)
}

// Stop ends everything, the last first.
func (s *Stage) Stop() error {
	var errs []error
	if s.provider != nil {
		errs = append(errs, s.provider.Stop())
	}

	errs = append(errs, s.StopControlPlane())

	for _, stop := range slices.Backward(s.stops) {
		errs = append(errs, stop())
	}

	s.provider, s.stops = nil, nil

	if s.options.Farm == nil {
		errs = append(errs, s.Farm.Close())
	}

	return errors.Join(errs...)
}

// Machine is the simulated machine of a SimMachine.
func (s *Stage) Machine(ctx context.Context, key client.ObjectKey) (*machines.Machine, error) {
	object := &infrav1.SimMachine{}
	if err := s.Client.Get(ctx, key, object); err != nil {
		return nil, err
	}

	machine := s.Farm.Machine(object.Spec.ProviderID)
	if machine == nil {
		return nil, fmt.Errorf("SimMachine %s: there is no machine with the provider ID %q", key, object.Spec.ProviderID)
	}

	return machine, nil
}

// Machines are the simulated machines of a Cluster.
func (s *Stage) Machines(cluster client.ObjectKey) []*machines.Machine {
	return s.Farm.Machines(cluster)
}
