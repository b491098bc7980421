// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/talossim"
)

// DefaultPort is that of control-plane endpoints.
const DefaultPort = 6443

// Options are what all machines of a provider have in common.
type Options struct {
	// Full gives control-plane machines a real etcd member and a real API server, and all machines a Node: see
	// talossim.Options. Without it there is no Kubernetes on the machines. A Cluster may differ.
	Full bool

	// Kubernetes gives the clusters of light machines a Kubernetes API in memory: see talossim.Options. A Cluster may differ.
	Kubernetes bool

	// Dir holds what the programs of machines of full fidelity write, logs too: NAMESPACE/CLUSTER/MACHINE. What an earlier
	// run has left there of a cluster is removed when its first machine is made. Default: temporary directories that are
	// removed with their clusters.
	Dir string

	// Keep has the machines of full fidelity outlive the process: another one with the same Dir finds them by Restore, and what an
	// earlier run has left is not removed.
	Keep bool

	// Schematics and MissingImages are those of talossim.Options.
	Schematics    map[string][]string
	MissingImages []string
}

// Farm holds machines. Its methods may be called from several goroutines.
type Farm struct {
	options Options

	mu       sync.Mutex
	clusters map[client.ObjectKey]*cluster
	machines map[string]*Machine // by provider ID
}

// Cluster names a Cluster.
type Cluster struct {
	client.ObjectKey

	// Full says whether its machines are of full fidelity; nil leaves it to the farm's options. It counts when the farm first
	// hears of the Cluster.
	Full *bool

	// Kubernetes says whether its light machines have a Kubernetes API in memory; nil leaves it to the farm's options.
	Kubernetes *bool
}

// cluster is a network that the machines of a Cluster share.
type cluster struct {
	world    *talossim.World
	endpoint *talossim.Endpoint
	dir      string
}

// New makes a farm without machines. Close it.
func New(options Options) *Farm {
	return &Farm{options: options, clusters: map[client.ObjectKey]*cluster{}, machines: map[string]*Machine{}}
}

// Close cuts the power of all machines and ends all load balancers.
func (f *Farm) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()

	var errs []error
	for key := range f.clusters {
		errs = append(errs, f.closeCluster(key))
	}

	return errors.Join(errs...)
}

// CloseCluster ends a cluster's load balancer, and what is left of its machines.
func (f *Farm) CloseCluster(key client.ObjectKey) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	err := f.closeCluster(key)
	if f.options.Dir != "" {
		// Machines that were kept and never came back have their files there too.
		err = errors.Join(err, os.RemoveAll(f.dir(key)))
	}

	return err
}

func (f *Farm) closeCluster(key client.ObjectKey) error {
	c := f.clusters[key]
	if c == nil {
		return nil
	}

	delete(f.clusters, key)

	for id, machine := range f.machines {
		if machine.cluster == c {
			delete(f.machines, id)
		}
	}

	var err error
	if c.endpoint != nil {
		err = c.endpoint.Close()
	}

	return errors.Join(err, c.world.Close())
}

// dir is a cluster's directory.
func (f *Farm) dir(key client.ObjectKey) string {
	return filepath.Join(f.options.Dir, key.Namespace, key.Name)
}

// cluster is the network of a Cluster, which is made when it is first asked for. The caller holds the lock.
func (f *Farm) cluster(of Cluster) (*cluster, error) {
	key := of.ObjectKey
	if c := f.clusters[key]; c != nil {
		return c, nil
	}

	full := ptr.Deref(of.Full, f.options.Full)

	c := &cluster{}
	if full && f.options.Dir != "" {
		c.dir = f.dir(key)

		var err error
		if !f.options.Keep {
			err = os.RemoveAll(c.dir)
		}

		if err = errors.Join(err, os.MkdirAll(c.dir, 0o700)); err != nil {
			return nil, fmt.Errorf("directory of the machines: %w", err)
		}
	}

	var err error

	c.world, err = talossim.New(talossim.Options{
		Full: full, Kubernetes: ptr.Deref(of.Kubernetes, f.options.Kubernetes), Dir: c.dir, Keep: c.dir != "" && f.options.Keep,
		Schematics: f.options.Schematics, MissingImages: f.options.MissingImages,
	})
	if err != nil {
		return nil, err
	}

	f.clusters[key] = c

	return c, nil
}

// Balance starts the load balancer of a cluster's API servers, unless it runs already, and returns where it listens. An empty host
// is any free loopback address, port zero is DefaultPort.
func (f *Farm) Balance(of Cluster, host string, port int32) (string, int32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	c, err := f.cluster(of)
	if err != nil {
		return "", 0, err
	}

	if port == 0 {
		port = DefaultPort
	}

	if c.endpoint == nil {
		text := strconv.Itoa(int(port))
		if host == "" {
			c.endpoint, err = c.world.NewEndpoint(text)
		} else {
			c.endpoint, err = c.world.NewEndpointAt(host, text)
		}

		if err != nil {
			return "", 0, err
		}
	}

	at, text := c.endpoint.Address()
	if host != "" && host != at || text != strconv.Itoa(int(port)) {
		return "", 0, fmt.Errorf("the load balancer listens at %s:%s already", at, text)
	}

	return at, port, nil
}

// World is the network that a cluster's machines share, or nil before there is one. It may be looked at after its end.
func (f *Farm) World(key client.ObjectKey) *talossim.World {
	f.mu.Lock()
	defer f.mu.Unlock()

	if c := f.clusters[key]; c != nil {
		return c.world
	}

	return nil
}

// Machine is the machine of that provider ID, or nil.
func (f *Farm) Machine(providerID string) *Machine {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.machines[providerID]
}

// Below are the machines whose provider IDs begin so, by provider ID.
func (f *Farm) Below(prefix string) map[string]*Machine {
	f.mu.Lock()
	defer f.mu.Unlock()

	found := map[string]*Machine{}

	for id, machine := range f.machines {
		if strings.HasPrefix(id, prefix) {
			found[id] = machine
		}
	}

	return found
}

// Machines are all machines of a cluster.
func (f *Farm) Machines(key client.ObjectKey) []*Machine {
	f.mu.Lock()
	defer f.mu.Unlock()

	var machines []*Machine

	for _, machine := range f.machines {
		if machine.cluster == f.clusters[key] {
			machines = append(machines, machine)
		}
	}

	return machines
}

// Make makes a machine of a cluster, and leaves it off. The options must have a provider ID.
func (f *Farm) Make(of Cluster, options talossim.NodeOptions) (*Machine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if options.ProviderID == "" || f.machines[options.ProviderID] != nil {
		return nil, fmt.Errorf("machine %s: has no provider ID, or is there already: %q", options.Name, options.ProviderID)
	}

	c, err := f.cluster(of)
	if err != nil {
		return nil, err
	}

	node, err := c.world.NewNode(options)
	if err != nil {
		return nil, err
	}

	machine := &Machine{Node: node, cluster: c}
	f.machines[options.ProviderID] = machine

	return machine, nil
}

// Restore brings back a machine that an earlier process has kept, as after a power failure: what is on its disk is there, and it boots. It
// is nil if there is no machine of that name and provider ID.
func (f *Farm) Restore(ctx context.Context, of Cluster, name, providerID string) (*Machine, error) {
	if !f.options.Keep {
		return nil, nil //nolint:nilnil // there is none
	}

	f.mu.Lock()
	c, err := f.cluster(of)
	f.mu.Unlock()

	if err != nil || c.dir == "" {
		return nil, err
	}

	node, err := c.world.Restore(ctx, name, providerID)
	if node == nil {
		return nil, err
	}

	machine := &Machine{Node: node, cluster: c, provisioned: node.Configured()}

	f.mu.Lock()
	defer f.mu.Unlock()
	f.machines[providerID] = machine

	return machine, err
}

// Destroy cuts a machine's power and removes it with its disk. One that is not there is gone.
func (f *Farm) Destroy(providerID string) error {
	machine := f.Machine(providerID)
	if machine == nil {
		return nil
	}

	err := machine.Node.Destroy()

	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.machines, providerID)

	return err
}

// Start keeps the farm until ctx is done, and then closes it: it makes the farm a part of a manager.
func (f *Farm) Start(ctx context.Context) error {
	<-ctx.Done()

	return f.Close()
}
