// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/siderolabs/talos/pkg/machinery/gendata"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	ichorversion "github.com/maesh-dev/ichor/internal/version"
)

// VersionResult is what `version` writes.
type VersionResult struct {
	// Version of this program.
	Version string `json:"version"`

	// Machinery is the version of the Talos machinery in it, which configs are made and checked with.
	Machinery string `json:"machinery"`

	// ConfigContracts are the config formats that new clusters may have, oldest first.
	ConfigContracts []string `json:"configContracts"`

	// ClusterAPIContract is the version of Cluster API's objects that is read.
	ClusterAPIContract string `json:"clusterAPIContract"`

	// Go is the version of Go that the program was built with.
	Go string `json:"go"`

	// Platform that it was built for.
	Platform string `json:"platform"`
}

type versionOptions struct {
	genericiooptions.IOStreams
	output  outputFlag
	version string
}

func newVersionCommand(version string, streams genericiooptions.IOStreams) *cobra.Command {
	o := &versionOptions{IOStreams: streams, version: version}

	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program, of Talos machinery, and of the formats that it knows",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			o.complete()

			if err := o.output.validate(); err != nil {
				return err
			}

			return o.run()
		},
	}
	o.output.addTo(command)

	return command
}

// complete takes the module's version where the build did not set one.
func (o *versionOptions) complete() {
	if o.version != "" {
		return
	}

	o.version = "unknown"

	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		o.version = info.Main.Version
	}
}

func (o *versionOptions) run() error {
	result := VersionResult{
		Version:            o.version,
		Machinery:          gendata.VersionTag,
		ClusterAPIContract: clusterv1.GroupVersion.Version,
		Go:                 runtime.Version(),
		Platform:           runtime.GOOS + "/" + runtime.GOARCH,
	}

	for _, contract := range ichorversion.Supported() {
		result.ConfigContracts = append(result.ConfigContracts, contract.String())
	}

	return o.output.write(o.Out, result, result.text)
}

func (r VersionResult) text(out io.Writer) error {
	_, err := fmt.Fprintf(out, "clusterctl-ichor %s\nTalos machinery %s\nconfig contracts %s to %s\nCluster API contract %s\n%s %s\n",
		r.Version, r.Machinery, r.ConfigContracts[0], r.ConfigContracts[len(r.ConfigContracts)-1], r.ClusterAPIContract, r.Go, r.Platform)

	return err
}
