// SPDX-License-Identifier: Apache-2.0

package reports_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/scale"
)

var (
	machines = flag.Int("machines", 30, "how many Machines the patches are reported on")
	clusters = flag.Int("clusters", 10, "how many Clusters one TalosClusterConfig targets")
)

// patches is how many TalosConfigPatches apply to every Machine.
const patches = 20

// patience bounds every wait on a busy machine.
const patience = 10 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(harness.NewLogger(io.Discard))
	os.Exit(m.Run())
}

// meter reads what the manager has done since the last time.
type meter struct {
	*WithT
	t        *testing.T
	world    *scale.World
	manager  *harness.Provider
	requests *harness.RequestReader
	before   cost
}

// cost is what reports have cost.
type cost struct {
	patchReconciles, configReconciles int

	// reads are live reads of Secrets and ConfigMaps, of anybody, and writes those of the status of what is reported on.
	reads, writes int

	processor, took time.Duration
}

func (c cost) String() string {
	return fmt.Sprintf("%d reconciles of patches, %d of cluster configs, %d live reads, %d status writes, %s of the processor, in %s",
		c.patchReconciles, c.configReconciles, c.reads, c.writes, c.processor.Round(10*time.Millisecond), c.took.Round(time.Second))
}

func (m *meter) total() cost {
	m.t.Helper()

	now := m.before

	reconciles, err := m.world.Reconciles(m.t.Context(), m.manager)
	m.Expect(err).NotTo(HaveOccurred())

	now.patchReconciles, now.configReconciles = reconciles["talosconfigpatch"], reconciles["talosclusterconfig"]

	requests, err := m.requests.Next()
	m.Expect(err).NotTo(HaveOccurred())

	for _, request := range requests {
		switch {
		case request.Verb == "get" && (request.Resource == "secrets" || request.Resource == "configmaps"):
			now.reads++
		case request.Verb == "patch" && (request.Resource == "talosconfigpatches" || request.Resource == "talosclusterconfigs"):
			now.writes++
		}
	}

	// The 14th and 15th field are what it used, in hundredths of a second; the second, in parentheses, may hold spaces.
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.manager.PID()))
	m.Expect(err).NotTo(HaveOccurred())

	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	now.processor = 0

	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		m.Expect(err).NotTo(HaveOccurred())

		now.processor += time.Duration(ticks) * 10 * time.Millisecond
	}

	return now
}

// settle is how long changes are gathered.
const settle = 5 * time.Second

// bounded checks that reports were made as often as changes are gathered, and not as often as something changed: for each object at most
// once in that time, and once more to wait for it.
func (m *meter) bounded(spent cost) {
	m.t.Helper()

	windows := int(spent.took/settle) + 2
	m.Expect(spent.patchReconciles).To(BeNumerically("<=", 2*patches*windows))
	m.Expect(spent.configReconciles).To(BeNumerically("<=", 2*windows))
}

// quiet is how long no report must have been made for a step to be over. Changes are gathered for 5 seconds.
const quiet = 8 * time.Second

// step does something, waits until it shows and all is quiet, and returns what that has cost.
func (m *meter) step(name string, do func(), shows func(g Gomega)) cost {
	m.t.Helper()

	began := time.Now()

	do()
	m.Eventually(shows, patience, time.Second).Should(Succeed())

	last := m.before
	now := m.total()
	deadline := time.Now().Add(patience)

	for since := time.Now(); time.Since(since) < quiet && time.Now().Before(deadline); {
		m.Expect(scale.Pause(m.t.Context(), time.Second)).To(Succeed())

		m.before = now
		if next := m.total(); next.patchReconciles != now.patchReconciles || next.configReconciles != now.configReconciles || next.reads != now.reads {
			since, now = time.Now(), next
		}
	}

	m.before = now
	spent := cost{
		now.patchReconciles - last.patchReconciles, now.configReconciles - last.configReconciles,
		now.reads - last.reads, now.writes - last.writes, now.processor - last.processor, time.Since(began),
	}
	m.t.Logf("%s: %s", name, spent)

	return spent
}

func start(t *testing.T) (*scale.World, *WithT) {
	t.Helper()

	g := NewWithT(t)
	world, err := scale.Start(t.Context(), scale.Options{Audit: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(world.Stop()).To(Succeed()) })

	return world, g
}

func newMeter(t *testing.T, world *scale.World, namespace string) *meter {
	t.Helper()

	m := &meter{WithT: NewWithT(t), t: t, world: world}

	var err error
	m.requests, err = world.FollowRequests(installation.Bootstrap.User())
	m.Expect(err).NotTo(HaveOccurred())
	m.manager, err = world.StartManager(t.Context(), namespace, "--namespace="+namespace)
	m.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { m.Expect(m.requests.Close()).To(Succeed()) })

	return m
}

// Machines by the hundred, each of them under twenty patches: a change is looked at once, for all patches together.
func TestPatches(t *testing.T) {
	world, g := start(t)
	ctx := t.Context()

	fleet, err := world.NewFleet(ctx, "patches")
	g.Expect(err).NotTo(HaveOccurred())

	for i := len(fleet.Patches); i < patches; i++ {
		patch := &bootstrapv1.TalosConfigPatch{}
		text := fmt.Sprintf("{metadata: {name: p%d, namespace: patches}, spec: {layer: Cluster, clusterName: c, documents: [{kind: SysctlConfig, "+
			"sysctlConfig: {params: {kernel.x%d: '1'}}}]}}", i, i)
		g.Expect(yaml.UnmarshalStrict([]byte(text), patch)).To(Succeed())
		g.Expect(world.Admin.Create(ctx, patch)).To(Succeed())
	}

	m := newMeter(t, world, "patches")
	counted := func(selected, applied int) func(g Gomega) {
		return func(g Gomega) {
			list := &bootstrapv1.TalosConfigPatchList{}
			g.Expect(world.Admin.List(ctx, list, client.InNamespace("patches"))).To(Succeed())
			g.Expect(list.Items).To(HaveLen(patches))

			for i := range list.Items {
				status := list.Items[i].Status
				g.Expect(status.ObservedGeneration).To(Equal(list.Items[i].Generation))
				g.Expect(int(ptr.Deref(status.Machines.Selected, -1))).To(Equal(selected))
				g.Expect(int(ptr.Deref(status.Machines.Applied, -1))).To(Equal(applied))
			}
		}
	}

	m.step("start", func() {}, counted(0, 0))

	m.bounded(m.step("all Machines are created", func() { g.Expect(world.AddMachines(ctx, fleet, *machines)).To(Succeed()) }, counted(*machines, 0)))

	m.bounded(m.step("all Machines run it", func() {
		var running []string
		for i := range patches {
			running = append(running, fmt.Sprintf(`{"kind":"TalosConfigPatch","name":"p%d","generation":1,"layer":"Cluster"}`, i))
		}

		g.Expect(scale.Each(ctx, *machines, scale.Workers, func(ctx context.Context, i int) error {
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "patches", Name: scale.MachineName(i)}}
			before := machine.DeepCopy()
			metav1.SetMetaDataAnnotation(&machine.ObjectMeta, bootstrapv1.RunningInputsAnnotation, "["+strings.Join(running, ",")+"]")

			return world.Admin.Patch(ctx, machine, client.MergeFrom(before))
		})).To(Succeed())
	}, counted(*machines, *machines)))

	changed := m.step("one patch is changed", func() {
		patch := &bootstrapv1.TalosConfigPatch{}
		g.Expect(world.Admin.Get(ctx, client.ObjectKey{Namespace: "patches", Name: "p19"}, patch)).To(Succeed())
		patch.Spec.Documents[0].SysctlConfig.Params["kernel.x19"] = "2"
		g.Expect(world.Admin.Update(ctx, patch)).To(Succeed())
	}, func(g Gomega) {
		patch := &bootstrapv1.TalosConfigPatch{}
		g.Expect(world.Admin.Get(ctx, client.ObjectKey{Namespace: "patches", Name: "p19"}, patch)).To(Succeed())
		g.Expect(patch.Status.ObservedGeneration).To(Equal(patch.Generation))
		g.Expect(int(ptr.Deref(patch.Status.Machines.Applied, -1))).To(Equal(0))
	})

	m.bounded(changed)
	m.Expect(changed.writes).To(Equal(1), "what is said of the others stays")
}

// One TalosClusterConfig for many Clusters: a Secret that changes has the cluster that it belongs to judged, and no other.
func TestClusterConfigs(t *testing.T) {
	world, g := start(t)
	ctx := t.Context()
	namespace := "configs"

	g.Expect(world.Admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())

	fleet, err := world.NewFleet(ctx, "other") // For its bundle.
	g.Expect(err).NotTo(HaveOccurred())

	for i := range *clusters {
		cluster, err := world.NewCluster(ctx, namespace, fmt.Sprintf("c-%d", i))
		g.Expect(err).NotTo(HaveOccurred())

		secret, err := secrets.BundleSecret(cluster, fleet.Bundle, version.Newest())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(world.Admin.Create(ctx, secret)).To(Succeed())
	}

	config := scale.ClusterConfig(namespace, "")
	config.Name, config.Spec.ClusterSelector = "all", &metav1.LabelSelector{}
	g.Expect(world.Admin.Create(ctx, config)).To(Succeed())

	m := newMeter(t, world, namespace)
	says := func(status metav1.ConditionStatus) func(g Gomega) {
		return func(g Gomega) {
			now := &bootstrapv1.TalosClusterConfig{}
			g.Expect(world.Admin.Get(ctx, client.ObjectKeyFromObject(config), now)).To(Succeed())
			g.Expect(ptr.Deref(conditions.Get(now, bootstrapv1.SecretsBundleAvailableCondition), metav1.Condition{}).Status).To(Equal(status))
		}
	}

	m.Expect(m.step("start", func() {}, says(metav1.ConditionTrue)).reads).To(BeNumerically("<=", 2**clusters))

	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: "c-0-talos"}
	g.Expect(world.Admin.Get(ctx, key, secret)).To(Succeed())

	good := secret.Data[secrets.BundleKey]

	// A cache that is behind another is made up for by a live read of that Secret, and never of all.
	broken := m.step("a bundle is broken", func() {
		secret.Data[secrets.BundleKey] = []byte("nonsense")
		g.Expect(world.Admin.Update(ctx, secret)).To(Succeed())
	}, says(metav1.ConditionFalse))
	m.Expect(broken.reads).To(BeNumerically("<=", 2))
	m.Expect(broken.writes).To(Equal(1))

	mended := m.step("and mended", func() {
		secret.Data[secrets.BundleKey] = good
		g.Expect(world.Admin.Update(ctx, secret)).To(Succeed())
	}, says(metav1.ConditionTrue))
	m.Expect(mended.reads).To(BeNumerically("<=", 2))
	m.Expect(mended.writes).To(Equal(1))
}
