// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/siderolabs/talos/pkg/machinery/textdiff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tryTimeout is how long a configuration is tried if the caller does not say.
const tryTimeout = time.Minute

// ApplyConfiguration takes a whole machine configuration.
func (s *machineService) ApplyConfiguration(ctx context.Context, request *machine.ApplyConfigurationRequest) (*machine.ApplyConfigurationResponse, error) {
	b, n := s.boot, s.boot.node
	if !b.changing.TryLock() {
		return nil, status.Error(codes.FailedPrecondition, "another apply configuration is already in progress")
	}
	defer b.changing.Unlock()

	remark(ctx).say("mode=%s", request.GetMode())
	if request.GetDryRun() {
		remark(ctx).say("dry")
		remark(ctx).reads = true
	}
	maintenance := b.config() == nil
	if !maintenance && !rolesOf(ctx).Includes(role.Admin) {
		return nil, status.Error(codes.PermissionDenied, "not authorized: a reader applies configurations in maintenance mode only")
	}
	if request.GetMode() != machine.ApplyConfigurationRequest_TRY {
		b.settle() // whatever comes of this call
	}
	config, warnings, err := n.world.load(ctx, b.image, n.options.Metal, request.GetData())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	answer := &machine.ApplyConfiguration{Warnings: warnings, Mode: request.GetMode()}
	if maintenance {
		err = b.applyInMaintenance(request, config, answer)
	} else {
		remark(ctx).say("changes=[%s]", strings.Join(changedPaths(b.config().raw, config.raw), " "))
		err = b.apply(request, config, answer)
	}
	if err != nil {
		return nil, err
	}
	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{answer}}, nil
}

// applyInMaintenance makes the node go on with its boot, or install and reboot, with the configuration.
func (b *boot) applyInMaintenance(request *machine.ApplyConfigurationRequest, config *nodeConfig, answer *machine.ApplyConfiguration) error {
	modes := []machine.ApplyConfigurationRequest_Mode{machine.ApplyConfigurationRequest_AUTO, machine.ApplyConfigurationRequest_REBOOT}
	if b.image.version.Contract().AtLeast(14) {
		modes = append(modes, machine.ApplyConfigurationRequest_NO_REBOOT)
	}
	if !slices.Contains(modes, request.GetMode()) {
		return status.Errorf(codes.Unimplemented, "apply configuration in mode %s: not possible in maintenance mode", request.GetMode())
	}
	if request.GetDryRun() {
		answer.ModeDetails = "Dry run summary:\nThe node is running in maintenance mode and does not have a config yet."
		return nil
	}
	n := b.node
	n.keep(config.raw)
	b.leave(installSequence, runtimeres.MachineStageInstalling, nil, func(ctx context.Context) error { return n.run(ctx, b.image, b.id) })
	return nil
}

// apply changes the configuration of a node that has one.
func (b *boot) apply(request *machine.ApplyConfigurationRequest, config *nodeConfig, answer *machine.ApplyConfiguration) error {
	current := b.config()
	mode, err := b.resolveMode(request.GetMode(), current, config)
	if err != nil {
		return err
	}
	answer.Mode, answer.ModeDetails = mode, modeWords[mode]
	if request.GetDryRun() {
		if answer.ModeDetails, err = dryRun(mode, current, config); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
		return nil
	}
	n := b.node
	switch mode {
	case machine.ApplyConfigurationRequest_STAGED:
		n.keep(config.raw)
		b.publish()
	case machine.ApplyConfigurationRequest_REBOOT:
		n.keep(config.raw)
		b.leave(rebootSequence, runtimeres.MachineStageRebooting, nil, n.start)
	case machine.ApplyConfigurationRequest_TRY:
		timeout := tryTimeout
		if request.GetTryModeTimeout() != nil {
			timeout = request.GetTryModeTimeout().AsDuration()
		}
		answer.ModeDetails += "\nThe config is applied in 'try' mode and will be automatically reverted back in " + timeout.String()
		b.tryOut(current, config, timeout)
	case machine.ApplyConfigurationRequest_NO_REBOOT, machine.ApplyConfigurationRequest_AUTO:
		n.keep(config.raw)
		b.use(config)
	}
	return nil
}

// resolveMode says what the node does for a mode, which depends on its version and, before 1.14, on what changes.
func (b *boot) resolveMode(mode machine.ApplyConfigurationRequest_Mode, current, next *nodeConfig) (machine.ApplyConfigurationRequest_Mode, error) {
	if modeWords[mode] == "" {
		return mode, status.Errorf(codes.InvalidArgument, "incorrect mode '%s' specified for the apply config call", mode)
	}
	if b.image.version.Contract().AtLeast(14) {
		switch mode {
		case machine.ApplyConfigurationRequest_REBOOT:
			return mode, status.Error(codes.Unimplemented, "apply configuration in mode REBOOT: not supported, apply and reboot")
		case machine.ApplyConfigurationRequest_AUTO:
			return machine.ApplyConfigurationRequest_NO_REBOOT, nil
		default:
			return mode, nil
		}
	}
	switch mode {
	case machine.ApplyConfigurationRequest_AUTO, machine.ApplyConfigurationRequest_NO_REBOOT, machine.ApplyConfigurationRequest_TRY:
		if needsReboot(current, next) {
			if mode == machine.ApplyConfigurationRequest_AUTO {
				return machine.ApplyConfigurationRequest_REBOOT, nil
			}
			return mode, status.Error(codes.InvalidArgument, "this config change can't be applied in immediate mode")
		}
		if mode == machine.ApplyConfigurationRequest_AUTO {
			return machine.ApplyConfigurationRequest_NO_REBOOT, nil
		}
	default:
	}
	return mode, nil
}

// use makes a configuration the one that runs: what changed takes effect at once, but for what etcd is started with,
// which counts from the next boot on. Source: Talos, internal/app/machined/pkg/system/services/etcd.go, which nothing
// restarts.
func (b *boot) use(config *nodeConfig) {
	b.mu.Lock()
	before := b.active
	b.active = config
	b.mu.Unlock()
	b.settle()
	if kubeletPrint(before, b.node) != kubeletPrint(config, b.node) {
		b.restarted("kubelet")
	}
	b.publish()
	if b.control != nil {
		b.control.changed.send()
	}
	b.kubeletChanged.send()
}

// settle ends that a configuration is tried: the one that is used stays.
func (b *boot) settle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.try != nil {
		close(b.try)
		b.try = nil
	}
}

// kubeletPrint tells whether a kubelet has to be started again for another configuration.
func kubeletPrint(c *nodeConfig, n *Node) string {
	kubelet := c.K8sKubeletConfig()
	if kubelet == nil {
		return ""
	}
	return fmt.Sprint(c.nodename(n), kubelet.Image(), flags(kubelet.ExtraArgs(), nil), kubelet.ExtraConfig(), kubelet.ExtraMounts())
}

// tryOut uses a configuration that the disk does not get, and goes back to the one before unless another is applied.
func (b *boot) tryOut(current, config *nodeConfig, timeout time.Duration) {
	b.use(config)
	settled := make(chan struct{})
	b.mu.Lock()
	b.try = settled
	b.mu.Unlock()
	b.tasks.Go(func() {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		select {
		case <-settled:
		case <-b.ctx.Done():
		case <-timer.C:
			b.mu.Lock()
			mine := b.try == settled
			b.mu.Unlock()
			if mine {
				b.use(current)
			}
		}
	})
}

func dryRun(mode machine.ApplyConfigurationRequest_Mode, current, next *nodeConfig) (string, error) {
	oldText, err := current.RedactSecrets("<redacted>").EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return "", err
	}
	newText, err := next.RedactSecrets("<redacted>").EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return "", err
	}
	diff, err := textdiff.Diff(string(oldText), string(newText))
	if err != nil {
		return "", err
	}
	if diff == "" {
		diff = "No changes."
	}
	return fmt.Sprintf("Dry run summary:\n%s (skipped in dry-run).\nConfig diff:\n\n%s", modeWords[mode], diff), nil
}

var modeWords = map[machine.ApplyConfigurationRequest_Mode]string{
	machine.ApplyConfigurationRequest_REBOOT:    "Applied configuration with a reboot",
	machine.ApplyConfigurationRequest_NO_REBOOT: "Applied configuration without a reboot",
	machine.ApplyConfigurationRequest_AUTO:      "Applied configuration without a reboot",
	machine.ApplyConfigurationRequest_STAGED:    "Staged configuration to be applied after the next reboot",
	machine.ApplyConfigurationRequest_TRY:       "Applied configuration without a reboot",
}

// needsReboot tells whether a Talos before 1.14 can apply a change only by a reboot. Documents beside the first apply at
// once, and of the first what the Talos documentation lists (Editing machine configuration, "without a reboot").
func needsReboot(current, next *nodeConfig) bool {
	before, errBefore := rebootRelevant(current)
	after, errAfter := rebootRelevant(next)
	return errBefore != nil || errAfter != nil || !bytes.Equal(before, after)
}

func rebootRelevant(config *nodeConfig) ([]byte, error) {
	stripped, err := config.PatchV1Alpha1(func(c *v1alpha1.Config) error {
		c.ConfigDebug, c.ClusterConfig = nil, nil
		m := c.MachineConfig
		if m == nil {
			return nil
		}
		m.MachineTime, m.MachineCertSANs, m.MachineInstall, m.MachineNetwork = nil, nil, nil, nil
		m.MachineNodeLabels, m.MachineNodeAnnotations, m.MachineNodeTaints = nil, nil, nil
		m.MachineSysctls, m.MachineSysfs, m.MachineLogging, m.MachineControlPlane = nil, nil, nil, nil
		m.MachineKubelet, m.MachinePods, m.MachineKernel, m.MachineRegistries = nil, nil, nil, v1alpha1.RegistriesConfig{}
		if m.MachineFeatures != nil {
			m.MachineFeatures.KubernetesTalosAPIAccessConfig = nil
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	first := stripped.RawV1Alpha1()
	return encoder.NewEncoder(first, encoder.WithComments(encoder.CommentsDisabled)).Encode()
}
