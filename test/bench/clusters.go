// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	"github.com/maesh-dev/ichor/test/harness"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/scale"
	"github.com/maesh-dev/ichor/test/stage"
)

const (
	// maxAvailable is what a new cluster's control plane may take from its first Node to be Available, in seconds: Cluster API's connection to
	// the cluster alone may take 30.
	maxAvailable = 35

	// clusterNodes are the control-plane nodes of each cluster, and fewClusters the part of all clusters that growth is measured against.
	clusterNodes = 3
	fewClusters  = 5

	clusterPoll     = 250 * time.Millisecond
	clustersTimeout = 40 * time.Minute

	// healthInterval is how often the manager looks at a node when all is well: its default.
	healthInterval = time.Minute
)

// look is the call that each look at a control-plane node makes once.
const look = "EtcdStatus"

// clusters is a stage with light clusters, each with a Kubernetes API in memory.
type clusters struct {
	*stage.Stage

	diagnostics *installation.Diagnostics
	settling    time.Duration
	namespace   string
	made        int
}

// load is what the control-plane manager needs with some clusters.
type load struct {
	clusters   int
	memory     scale.Memory
	goroutines int
}

// measureClusters measures the control-plane manager, as a process of its own, with many clusters.
func measureClusters(ctx context.Context, s sizes) (results []result, err error) {
	ctx, cancel := context.WithTimeout(ctx, clustersTimeout)
	defer cancel()

	dir, err := os.MkdirTemp("", "ichor-clusters-")
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	program, err := harness.BuildProvider(ctx, "controlplane", dir)
	if err != nil {
		return nil, err
	}

	world := &clusters{settling: s.settling, namespace: "clusters"}
	if world.Stage, err = stage.Start(ctx, stage.Options{Audit: true, ControlPlaneProgram: program}); err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, world.Stop()) }()

	if world.diagnostics, err = installation.NewDiagnostics(ctx, world.Client); err != nil {
		return nil, err
	}

	if err = world.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: world.namespace}}); err != nil {
		return nil, err
	}

	return world.measure(ctx, s)
}

func (w *clusters) measure(ctx context.Context, s sizes) ([]result, error) {
	var loads []load

	for _, n := range []int{0, max(1, s.clusters/fewClusters), s.clusters} {
		if err := w.grow(ctx, n); err != nil {
			return nil, err
		}

		next, err := w.load(ctx)
		if err != nil {
			return nil, err
		}

		progress("%d clusters: %.0f MB, %d goroutines", n, float64(next.memory.Resident)/megabyte, next.goroutines)
		loads = append(loads, next)
	}

	steady, err := w.steady(ctx, s.steadyIntervals)
	if err != nil {
		return nil, err
	}

	available, err := w.newcomer(ctx)
	if err != nil {
		return nil, err
	}

	name := fmt.Sprintf("%d clusters of %d nodes: ", s.clusters, clusterNodes)
	resident := func(l load) float64 { return float64(l.memory.Resident) / megabyte }
	goroutines := func(l load) float64 { return float64(l.goroutines) }
	each := func(of func(load) float64, from, to load) float64 {
		return (of(to) - of(from)) / float64(to.clusters-from.clusters)
	}
	note := fmt.Sprintf("%d clusters, then %d", loads[1].clusters, loads[2].clusters)

	return append([]result{
		told("no cluster: resident", resident(loads[0]), mega, fmt.Sprintf("%d goroutines", loads[0].goroutines)),
		told(name+"resident", resident(loads[2]), mega, fmt.Sprintf("peak %.0f MB", float64(loads[2].memory.Peak)/megabyte)),
		told(name+"for each more", each(resident, loads[1], loads[2]), mega, note),
		limited(name+"goroutines for each more", each(goroutines, loads[1], loads[2]), units, maxGoroutines, note),
		limited("a new cluster: Available after its first Node", available.Seconds(), second, maxAvailable, ""),
	}, steady...), nil
}

// maxGoroutines bounds what a cluster may add: Cluster API's connection and its watches, and three connections to nodes.
const maxGoroutines = 150

// grow makes clusters until there are so many, and waits until all their control planes have all their machines.
func (w *clusters) grow(ctx context.Context, n int) error {
	for ; w.made < n; w.made++ {
		if err := w.create(ctx, clusterName(w.made)); err != nil {
			return err
		}
	}

	for i := range w.made {
		if err := w.await(ctx, clusterName(i), settled); err != nil {
			return err
		}
	}

	return nil
}

func clusterName(i int) string { return fmt.Sprintf("c%d", i) }

func (w *clusters) create(ctx context.Context, name string) error {
	for _, object := range builder.Cluster(name).On(builder.Sim{Fidelity: infrav1.FidelityInMemory}).
		ControlPlane(builder.ControlPlane(name, name, clusterNodes)).Objects() {
		object.SetNamespace(w.namespace)

		if err := w.Client.Create(ctx, object); err != nil {
			return err
		}
	}

	return nil
}

// await waits until a control plane is as it should be. How it was last is in the error.
func (w *clusters) await(ctx context.Context, name string, is func(*controlplanev1.TalosControlPlane) bool) error {
	tcp := &controlplanev1.TalosControlPlane{}

	err := wait.PollUntilContextCancel(ctx, clusterPoll, true, func(ctx context.Context) (bool, error) {
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, tcp); err != nil {
			return false, err
		}

		return is(tcp), nil
	})
	if err != nil {
		return fmt.Errorf("control plane %s: %w: %s: %s", name, err, tcp.Status.Plan.Reason, tcp.Status.Plan.Message)
	}

	return nil
}

func settled(tcp *controlplanev1.TalosControlPlane) bool {
	return tcp.Status.Plan.Action == "None" && ptr.Deref(tcp.Status.AvailableReplicas, 0) == clusterNodes && available(tcp)
}

func available(tcp *controlplanev1.TalosControlPlane) bool {
	return conditions.IsTrue(tcp, controlplanev1.AvailableCondition)
}

// quiet waits until the manager has written nothing for the settling period, however long that takes on a machine that is busy.
func (w *clusters) quiet(ctx context.Context) error {
	for {
		begin := time.Now()
		if err := scale.Pause(ctx, w.settling); err != nil {
			return err
		}

		if writes, err := w.writes(begin); err != nil || len(writes) == 0 {
			return err
		}
	}
}

// load is what the manager needs when it has come to rest.
func (w *clusters) load(ctx context.Context) (load, error) {
	if err := w.quiet(ctx); err != nil {
		return load{}, err
	}

	memory, err := scale.Settled(ctx, w.ControlPlane.PID(), restFactor*w.settling, func() error {
		_, err := w.diagnostics.Get(ctx, w.ControlPlane, scale.CollectPath)

		return err
	})
	if err != nil {
		return load{}, err
	}

	metrics, err := w.diagnostics.Get(ctx, w.ControlPlane, "/metrics")
	if err != nil {
		return load{}, err
	}

	for line := range strings.Lines(string(metrics)) {
		if text, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			goroutines, err := strconv.Atoi(strings.TrimSpace(text))

			return load{clusters: w.made, memory: memory, goroutines: goroutines}, err
		}
	}

	return load{}, errors.New("metrics: no go_goroutines")
}

// steady watches the clusters for some intervals: what the manager writes, and how often it looks at a node.
func (w *clusters) steady(ctx context.Context, intervals int) ([]result, error) {
	if intervals == 0 {
		return nil, nil
	}

	before, begin := w.looks(), time.Now()
	if err := scale.Pause(ctx, time.Duration(intervals)*healthInterval); err != nil {
		return nil, err
	}

	writes, err := w.writes(begin)
	if err != nil {
		return nil, err
	}

	most := 0
	for node, n := range w.looks() {
		most = max(most, n-before[node])
	}

	name := fmt.Sprintf("%d clusters at rest for %s: ", w.made, time.Duration(intervals)*healthInterval)

	return []result{
		limited(name+"writes", float64(len(writes)), units, 0, strings.Join(writes[:min(len(writes), shownWrites)], ", ")),
		limited(name+"looks at a node, the most", float64(most), units, float64(intervals+1), "one a minute is due"),
	}, nil
}

// shownWrites are told in full.
const shownWrites = 3

// looks counts the looks at each node.
func (w *clusters) looks() map[string]int {
	all := map[string]int{}

	for i := range w.made {
		for _, machine := range w.Machines(client.ObjectKey{Namespace: w.namespace, Name: clusterName(i)}) {
			all[clusterName(i)+"/"+machine.Node.Name()] = machine.Node.CallCount(look)
		}
	}

	return all
}

// writes are what the manager has written since then, but for events.
func (w *clusters) writes(since time.Time) ([]string, error) {
	requests, err := w.Requests(installation.ControlPlane.User())
	if err != nil {
		return nil, err
	}

	var all []string

	for _, request := range requests {
		if slices.Contains(writing, request.Verb) && request.Resource != "events" && request.Group != "authentication.k8s.io" &&
			request.Group != "authorization.k8s.io" && request.Received.After(since) {
			all = append(all, request.Verb+" "+request.URI)
		}
	}

	return all, nil
}

// newcomer is how long a new cluster's control plane takes from its first Node to be Available.
func (w *clusters) newcomer(ctx context.Context) (time.Duration, error) {
	name := clusterName(w.made)
	if err := w.create(ctx, name); err != nil {
		return 0, err
	}

	w.made++

	key := client.ObjectKey{Namespace: w.namespace, Name: name}

	err := wait.PollUntilContextCancel(ctx, clusterPoll, true, func(ctx context.Context) (bool, error) {
		kubernetes, err := stage.Kubernetes(ctx, w.Client, key)
		if err != nil {
			return false, nil //nolint:nilerr // there is no access yet
		}

		list := &corev1.NodeList{}

		return kubernetes.List(ctx, list) == nil && len(list.Items) > 0, nil
	})
	if err != nil {
		return 0, fmt.Errorf("first Node of cluster %s: %w", name, err)
	}

	begin := time.Now()
	err = w.await(ctx, name, available)

	return time.Since(begin), err
}
