// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/maesh-dev/ichor/test/talossim"
)

// A real node takes the place of the simulated one for the claims that disturb nothing, if these name one. The
// talosconfig must be an administrator's, and the node a control-plane node of Talos 1.14.
const (
	realTalosconfig = "ICHOR_CONFORMANCE_TALOSCONFIG"
	realNode        = "ICHOR_CONFORMANCE_NODE"
)

// wait bounds every wait of these tests; it is never reached by a test that passes.
const wait = 30 * time.Second

// claim is something that a node does, with the source that says so.
type claim struct {
	// says is the claim, source where it comes from: Talos' documentation or source, or what was tried with its client.
	says   string
	source string

	// harmless claims are tried on a real node too.
	harmless bool

	// options make the node; the zero value is a control-plane node of the newest version that was bootstrapped.
	options subjectOptions

	check func(t *testing.T, s *subject)
}

// subjectOptions say what the claim is about.
type subjectOptions struct {
	image       string
	worker      bool
	maintenance bool
	blank       bool
	// bare leaves etcd without its Bootstrap.
	bare bool
	// controlPlanes is the number of control-plane nodes in the cluster, if not one.
	controlPlanes int
	contract      string
	faults        talossim.Faults
	disks         []talossim.Disk
}

// subject is the node that a claim is tried on.
type subject struct {
	*WithT

	ctx     context.Context
	cluster *talossim.Cluster
	world   *talossim.World
	nodes   []*talossim.Node
	node    *talossim.Node
	real    *clientconfig.Config
}

const (
	image112 = "ghcr.io/siderolabs/installer:v1.12.0"
	image113 = "ghcr.io/siderolabs/installer:v1.13.0"
	image114 = talossim.DefaultImage
	newer114 = "ghcr.io/siderolabs/installer:v1.14.2"
	newest   = "ghcr.io/siderolabs/installer:v1.14.3"
)

var clusters struct {
	sync.Mutex

	byContract map[string]*talossim.Cluster
}

// clusterOf makes the secrets of a contract once: the keys take most of the time of a test.
func clusterOf(t *testing.T, contract string) *talossim.Cluster {
	t.Helper()
	clusters.Lock()
	defer clusters.Unlock()
	if clusters.byContract == nil {
		clusters.byContract = map[string]*talossim.Cluster{}
	}
	if clusters.byContract[contract] == nil {
		cluster, err := talossim.NewCluster("sim", "https://127.0.0.1:6443", contract, "v1.35.0")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		clusters.byContract[contract] = cluster
	}
	return clusters.byContract[contract]
}

func newSubject(t *testing.T, options subjectOptions) *subject {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	t.Cleanup(cancel)
	s := &subject{WithT: NewWithT(t), ctx: ctx, world: talossim.ForTest(t, talossim.Options{
		Schematics:    map[string][]string{schematic: {"siderolabs/iscsi-tools"}},
		MissingImages: []string{"ghcr.io/siderolabs/installer:v1.14.9"},
	})}
	if options.image == "" {
		options.image = image114
	}
	if options.contract == "" {
		options.contract = "v1.14"
		for image, contract := range map[string]string{image112: "v1.12", image113: "v1.13"} {
			if options.image == image {
				options.contract = contract
			}
		}
	}
	s.cluster = clusterOf(t, options.contract)

	planes := max(1, options.controlPlanes)
	if options.maintenance {
		planes = 0
	}
	for i := range planes {
		n := s.start(talossim.NodeOptions{Name: "cp" + string(rune('1'+i)), Image: options.image, Disks: options.disks}, s.config(machinetype.TypeControlPlane))
		s.nodes = append(s.nodes, n)
		if i == 0 && !options.bare {
			s.Expect(s.client(n, role.Admin).Bootstrap(ctx, &machine.BootstrapRequest{})).To(Succeed())
		}
	}
	switch {
	case options.worker:
		s.node = s.start(talossim.NodeOptions{Name: "w1", Image: options.image}, s.config(machinetype.TypeWorker))
	case options.maintenance:
		s.node = s.start(talossim.NodeOptions{Name: "m1", Image: options.image, Blank: options.blank, Disks: options.disks}, nil)
	default:
		s.node = s.nodes[0]
	}
	if !options.bare {
		for _, n := range s.nodes {
			s.Eventually(func() bool { return s.voter(n) }, wait, "5ms").Should(BeTrue(), "etcd on %s", n.Name())
		}
	}
	s.node.SetFaults(options.faults)
	return s
}

func (s *subject) start(options talossim.NodeOptions, config []byte) *talossim.Node {
	n, err := s.world.Start(s.ctx, options, config)
	s.Expect(err).NotTo(HaveOccurred())
	return n
}

func (s *subject) config(machineType machinetype.Type, patches ...string) []byte {
	config, err := s.cluster.Config(machineType, patches...)
	s.Expect(err).NotTo(HaveOccurred())
	return config
}

// client is Talos' own client for a node.
func (s *subject) client(n *talossim.Node, roles ...role.Role) *client.Client {
	if s.real != nil {
		return s.realClient(roles...)
	}
	c, err := s.cluster.Client(s.ctx, n, roles...)
	s.Expect(err).NotTo(HaveOccurred())
	context.AfterFunc(s.ctx, func() { _ = c.Close() })
	return c
}

// as is a client for the subject itself.
func (s *subject) as(roles ...role.Role) *client.Client { return s.client(s.node, roles...) }

func (s *subject) maintenanceClient(n *talossim.Node) *client.Client {
	c, err := talossim.MaintenanceClient(s.ctx, n)
	s.Expect(err).NotTo(HaveOccurred())
	context.AfterFunc(s.ctx, func() { _ = c.Close() })
	return c
}

// realClient has the roles that are asked for, which the administrator's credentials are used to make.
func (s *subject) realClient(roles ...role.Role) *client.Client {
	config := s.real
	if len(roles) != 1 || roles[0] != role.Admin {
		admin, err := client.New(s.ctx, client.WithConfig(s.real), client.WithEndpoints(os.Getenv(realNode)))
		s.Expect(err).NotTo(HaveOccurred())
		response, err := admin.GenerateClientConfiguration(s.ctx, &machine.GenerateClientConfigurationRequest{
			Roles: role.MakeSet(roles...).Strings(), CrtTtl: durationpb.New(time.Hour),
		})
		s.Expect(err).NotTo(HaveOccurred())
		config, err = clientconfig.FromBytes(response.GetMessages()[0].GetTalosconfig())
		s.Expect(err).NotTo(HaveOccurred())
	}
	c, err := client.New(s.ctx, client.WithConfig(config), client.WithEndpoints(os.Getenv(realNode)))
	s.Expect(err).NotTo(HaveOccurred())
	context.AfterFunc(s.ctx, func() { _ = c.Close() })
	return c
}

// voter tells whether the node's etcd member runs and votes.
func (s *subject) voter(n *talossim.Node) bool {
	response, err := s.client(n, role.Reader).EtcdStatus(s.ctx)
	if err != nil {
		return false
	}
	return !response.GetMessages()[0].GetMemberStatus().GetIsLearner()
}

func TestConformance(t *testing.T) {
	for call, claims := range conformance {
		for _, c := range claims {
			t.Run(call+"/"+strings.ReplaceAll(c.says, " ", "_"), func(t *testing.T) {
				t.Parallel()
				if c.source == "" {
					t.Fatal("a claim without a source")
				}
				c.check(t, newSubject(t, c.options))
			})
		}
	}
}

// TestRealNode tries the harmless claims on a node that the environment names. Without one there is nothing to test.
func TestRealNode(t *testing.T) {
	if os.Getenv(realTalosconfig) == "" || os.Getenv(realNode) == "" {
		t.Logf("%s and %s name no real node", realTalosconfig, realNode)
		return
	}
	talosconfig, err := clientconfig.Open(os.Getenv(realTalosconfig))
	if err != nil {
		t.Fatal(err)
	}
	for call, claims := range conformance {
		for _, c := range claims {
			if !c.harmless {
				continue
			}
			t.Run(call+"/"+strings.ReplaceAll(c.says, " ", "_"), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				t.Cleanup(cancel)
				c.check(t, &subject{WithT: NewWithT(t), ctx: ctx, real: talosconfig})
			})
		}
	}
}
