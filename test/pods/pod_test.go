// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/maesh-dev/ichor/test/process"
)

// sleeper is a process that does nothing.
func sleeper(t *testing.T) *process.Process {
	t.Helper()

	path, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}

	p, err := process.Start(t.Context(), t.TempDir(), process.Program{
		Name: "sleeper", Path: path, Args: []string{"600"}, Grace: 10 * time.Second, Ready: func(context.Context) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = p.Kill() })

	return p
}

// probed is a container whose probes ask a server, which answers as health and liveness say.
func probed(t *testing.T, readiness, liveness *atomic.Int32) *corev1.Container {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := readiness
		if r.URL.Path == "/healthz" {
			answer = liveness
		}

		w.WriteHeader(int(answer.Load()))
	}))
	t.Cleanup(server.Close)

	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}

	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			PeriodSeconds: 1, FailureThreshold: 2,
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("healthz")}},
		}
	}

	return &corev1.Container{
		Ports:          []corev1.ContainerPort{{Name: "healthz", ContainerPort: int32(number)}},
		ReadinessProbe: probe("/readyz"), LivenessProbe: probe("/healthz"),
	}
}

const (
	fine = http.StatusOK
	sick = http.StatusInternalServerError
)

// A process that was ready and hangs, so that neither probe is answered, is ended and started again: that it is not ready is no
// reason not to ask whether it is alive.
func TestLiveness(t *testing.T) {
	g := NewWithT(t)

	var readiness, liveness atomic.Int32

	readiness.Store(sick)
	liveness.Store(sick)

	container := probed(t, &readiness, &liveness)
	p := &pod{ip: "127.0.0.1", process: sleeper(t)}
	running := p.process

	for range 3 {
		p.probe(t.Context(), container)
		g.Expect(p.state.ready).To(BeFalse())
		g.Expect(running.Ended()).To(BeFalse(), "a start may take long")
	}

	readiness.Store(fine)
	liveness.Store(fine)
	p.probe(t.Context(), container)
	g.Expect(p.state.ready).To(BeTrue())

	readiness.Store(sick)
	liveness.Store(sick)
	g.Eventually(func() bool {
		if p.process != nil {
			p.probe(t.Context(), container)
		}

		return running.Ended()
	}, "20s", "50ms").Should(BeTrue())
	g.Expect(p.state).To(Equal(state{waiting: "CrashLoopBackOff", message: "the liveness probe failed", restarts: 1}))
}

// A process that answers is ready until it has failed as often as its probe says, and again after one success.
func TestReadiness(t *testing.T) {
	g := NewWithT(t)

	var readiness, liveness atomic.Int32

	readiness.Store(fine)
	liveness.Store(fine)

	container := probed(t, &readiness, &liveness)
	p := &pod{ip: "127.0.0.1", process: sleeper(t)}

	probe := func(want bool) {
		t.Helper()

		p.readiness.asked = time.Time{} // its period is over
		p.probe(t.Context(), container)
		g.Expect(p.state.ready).To(Equal(want))
	}

	probe(true)
	readiness.Store(sick)
	probe(true)
	readiness.Store(fine)
	probe(true)
	readiness.Store(sick)
	probe(true)
	probe(false)
	readiness.Store(fine)
	probe(true)
	g.Expect(p.process.Ended()).To(BeFalse())
}

// The process of a Pod that was deleted without grace ends, whether another of its name has come or not.
func TestForcedDeletion(t *testing.T) {
	for name, successor := range map[string][]client.Object{
		"alone": nil,
		"with a successor": {&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "manager", UID: "new"},
			// One that is bound elsewhere would be bound first.
			Spec: corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{Image: "unknown"}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			key := client.ObjectKey{Namespace: "ns", Name: "manager"}
			old, other := sleeper(t), sleeper(t)
			r := &Runner{
				Client:  fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(successor...).WithStatusSubresource(&corev1.Pod{}).Build(),
				options: Options{ReservePort: func() (int, error) { return 10001, nil }},
				pods: map[types.UID]*pod{
					"old":   {name: key, process: old},
					"other": {name: client.ObjectKey{Namespace: "ns", Name: "other"}, process: other},
				},
			}

			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(old.Ended()).To(BeTrue())
			g.Expect(other.Ended()).To(BeFalse())
			g.Expect(r.pods).NotTo(HaveKey(types.UID("old")))
			g.Expect(r.pods).To(HaveLen(1 + len(successor)))
		})
	}
}
