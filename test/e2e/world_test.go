// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2/textlogger"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/maesh-dev/ichor/test/builder"
	"github.com/maesh-dev/ichor/test/clusterctl"
	"github.com/maesh-dev/ichor/test/stage"
)

// infraVariable names the infrastructure provider that a MachineDeployment scales on. Without it, it is CAPD.
const infraVariable = "E2E_INFRA"

// sim is the infrastructure provider of simulated Talos nodes.
const sim = "sim"

// infrastructure is a provider that a MachineDeployment scales on.
type infrastructure struct {
	// provider is the name by which clusterctl installs it.
	provider string

	options clusterctl.Options

	// machine is the kind of its machines.
	machine string

	// cluster are the objects of a Cluster c with one control-plane machine and a MachineDeployment "workers" of none.
	cluster func(*world) []builder.Builder
}

var infrastructures = map[string]infrastructure{
	"capd": {provider: "docker", options: clusterctl.Options{CAPD: true}, machine: "DevMachine", cluster: capdCluster},
	sim:    {provider: sim, machine: "SimMachine", cluster: simCluster},
}

// infra is the one of this run.
var infra infrastructure

// patience bounds every wait, on a machine that does other things too.
const patience = 8 * time.Minute

var machines = flag.Int("machines", 50, "number of Machines that a MachineDeployment scales up to, at least 10")

// home is the management cluster of this package.
var home *clusterctl.World

func TestMain(m *testing.M) {
	flag.Parse()

	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}

	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	ctrllog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr))))

	var known bool

	name := cmp.Or(os.Getenv(infraVariable), "capd")
	if infra, known = infrastructures[name]; !known {
		return 1, fmt.Errorf("%s=%s: the infrastructure provider must be one of %s", infraVariable, name, slices.Sorted(maps.Keys(infrastructures)))
	}

	if *machines < 10 {
		return 1, fmt.Errorf("-machines %d: at least 10", *machines)
	}

	// What provider sim keeps of its machines.
	dir, err := os.MkdirTemp("", "ichor-e2e-")
	if err != nil {
		return 1, err
	}

	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	if err := os.Setenv("SIM_DATA_DIR", dir); err != nil {
		return 1, err
	}

	if home, err = clusterctl.Start(ctx, infra.options); err != nil {
		return 1, err
	}

	defer func() { err = errors.Join(err, home.Stop()) }()

	installed := []string{sim}
	if infra.provider != sim {
		installed = append(installed, infra.provider)
	}

	if err := home.Init(ctx, installed...); err != nil {
		return 1, err
	}

	return m.Run(), nil
}

// world is one namespace of the management cluster.
type world struct {
	*WithT
	*clusterctl.World
	t         *testing.T
	admin     client.Client
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()

	w := &world{WithT: NewWithT(t), World: home, t: t}
	w.SetDefaultEventuallyTimeout(patience)
	w.SetDefaultEventuallyPollingInterval(500 * time.Millisecond)

	var err error
	w.admin, err = client.New(home.ManagementCluster.Config(), client.Options{Scheme: stage.NewScheme()})
	w.Expect(err).NotTo(HaveOccurred())

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	w.Expect(w.Client().Create(t.Context(), namespace)).To(Succeed())
	w.namespace = namespace.Name

	t.Cleanup(func() {
		if t.Failed() {
			w.Expect(w.ShowLogs(os.Stderr)).To(Succeed())
		}
	})

	return w
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

// create creates the objects of builders in the world's namespace.
func (w *world) create(builders ...builder.Builder) {
	w.t.Helper()

	for _, object := range builder.Objects(builders...) {
		object.SetNamespace(w.namespace)
		w.Expect(w.admin.Create(w.t.Context(), object)).To(Succeed(), "%T %s", object, object.GetName())
	}
}

// scale sets the replicas of the MachineDeployment.
func (w *world) scale(replicas int) {
	w.t.Helper()

	deployment := &clusterv1.MachineDeployment{}
	deployment.Namespace, deployment.Name = w.namespace, "workers"
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	w.Expect(w.Client().Patch(w.t.Context(), deployment, patch)).To(Succeed())
}
