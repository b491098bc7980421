// SPDX-License-Identifier: Apache-2.0

package talosconfigpatch

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/secrets"
)

const settle = 5 * time.Second

// world is a namespace of an API that is none, and a Reconciler with a clock that stands.
type world struct {
	*WithT
	t      *testing.T
	client client.Client
	clock  *clocktesting.FakePassiveClock
	r      *Reconciler
}

func newWorld(t *testing.T, machines int, objects ...client.Object) *world {
	t.Helper()

	w := &world{WithT: NewWithT(t), t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	scheme := runtime.NewScheme()

	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		w.Expect(add(scheme)).To(Succeed())
	}

	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c"}}
	cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.244.0.0/16"}
	cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"10.96.0.0/12"}
	settings := &bootstrapv1.TalosClusterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cc"}}
	settings.Spec.ClusterName, settings.Spec.Talos.Version = "c", "v1.14.1"
	objects = append(objects, cluster, settings)

	for i := range machines {
		name := fmt.Sprintf("w-%04d", i)
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
		machine.Spec.ClusterName, machine.Spec.Version = "c", "v1.36.1"
		machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: bootstrapv1.GroupVersion.Group, Kind: "TalosConfig", Name: name,
		}
		// No two of them are alike.
		machine.Labels = map[string]string{"node.cluster.x-k8s.io/slot": name}
		objects = append(objects, machine, &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}})
	}

	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	w.r = &Reconciler{
		Client: w.client, Inputs: inputs.NewReader(w.client, w.client, w.client), Clock: w.clock, Settle: settle,
		judged: lru.New(maxJudged), windows: newWindows(), bundles: map[string]*secrets.Bundle{},
	}

	return w
}

func sysctl(name, key string) *bootstrapv1.TalosConfigPatch {
	patch := &bootstrapv1.TalosConfigPatch{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1}}
	patch.Spec.ClusterName, patch.Spec.Layer = "c", bootstrapv1.PatchLayerCluster
	patch.Spec.Documents = []machineconfigv1alpha1.Document{{
		Kind: machineconfigv1alpha1.KindSysctlConfig, SysctlConfig: &machineconfigv1alpha1.SysctlConfig{Params: map[string]string{key: "1"}},
	}}

	return patch
}

// survey asks for the survey, as a reconcile of the patch does.
func (w *world) survey(patch *bootstrapv1.TalosConfigPatch) (*survey, time.Duration) {
	w.t.Helper()

	got, wait, err := w.r.survey(w.t.Context(), patch)
	w.Expect(err).NotTo(HaveOccurred())

	return got, wait
}

// All patches of a namespace share a survey, and however much changes, there is one in a while.
func TestSurveysAreShared(t *testing.T) {
	a, b := sysctl("a", "kernel.a"), sysctl("b", "kernel.b")
	w := newWorld(t, 2, a, b)

	first, _ := w.survey(a)
	w.Expect(first.patches).To(HaveLen(2))

	second, wait := w.survey(b)
	w.Expect(second).To(BeIdenticalTo(first))
	w.Expect(wait).To(BeZero())

	// Many changes, each of which wakes both patches.
	for range 100 {
		_, err := w.r.all(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w-0000"}})
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.clock.SetTime(w.clock.Now().Add(settle - time.Second))

	for _, patch := range []*bootstrapv1.TalosConfigPatch{a, b} {
		got, wait := w.survey(patch)
		w.Expect(got).To(BeNil())
		w.Expect(wait).To(Equal(time.Second))
	}

	w.clock.SetTime(w.clock.Now().Add(time.Second))

	third, _ := w.survey(a)
	w.Expect(third).NotTo(BeIdenticalTo(first))

	fourth, _ := w.survey(b)
	w.Expect(fourth).To(BeIdenticalTo(third))

	// What a watch has missed is found out in the end.
	w.clock.SetTime(w.clock.Now().Add(maxAge))

	fifth, _ := w.survey(b)
	w.Expect(fifth).NotTo(BeIdenticalTo(third))
}

// A patch that has changed itself does not wait for what changes around it.
func TestOwnChangeIsSurveyedSoon(t *testing.T) {
	a := sysctl("a", "kernel.a")
	w := newWorld(t, 1, a, sysctl("b", "kernel.b"))
	first, _ := w.survey(a)

	changed := a.DeepCopy()
	changed.Generation = 2
	w.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(a), a)).To(Succeed())
	changed.ResourceVersion = a.ResourceVersion
	w.Expect(w.client.Update(t.Context(), changed)).To(Succeed())

	_, wait := w.survey(changed)
	w.Expect(wait).To(Equal(settle / ownShare))

	w.clock.SetTime(w.clock.Now().Add(settle / ownShare))

	second, wait := w.survey(changed)
	w.Expect(wait).To(BeZero())
	w.Expect(second).NotTo(BeIdenticalTo(first))
	w.Expect(second.patches["a"].parsed.Object().Generation).To(Equal(int64(2)))
}

// Of a namespace in which no two machines are alike, not all are rendered, and nobody says that all are well.
func TestTooManyKindsOfMachines(t *testing.T) {
	a := sysctl("a", "kernel.a")
	w := newWorld(t, maxRendered+4, a)

	made, _ := w.survey(a)
	found := made.patches["a"]
	report(a, found, "", nil)

	says := func(conditionType string) string {
		condition := conditions.Get(a, conditionType)
		w.Expect(condition).NotTo(BeNil())

		return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
	}
	words := "The machines differ in 260 ways: 256 of 260 machines, in 256 ways, were rendered, and nothing is known of the others"

	w.Expect(says("Valid")).To(Equal("Unknown NotAllRendered: " + words))
	w.Expect(says("Ready")).To(Equal("True Ready: " + words))
	w.Expect(says("Effective")).To(Equal("Unknown NotAllRendered: " + words))
	w.Expect(*a.Status.Machines.Selected).To(Equal(int32(maxRendered + 4)))
}

// Machines that do not render are why nothing can be told, and not that there are none.
func TestFaultOnAllMachines(t *testing.T) {
	broken := sysctl("broken", "kernel.a")
	broken.Spec.Documents = []machineconfigv1alpha1.Document{{
		Kind: machineconfigv1alpha1.KindWireguardConfig,
		WireguardConfig: &machineconfigv1alpha1.WireguardConfig{
			Name: "wg0", PrivateKeySecretRef: &machineconfigv1alpha1.SecretKeyReference{Name: "none", Key: "private"},
		},
	}}

	good := sysctl("good", "kernel.good")
	w := newWorld(t, 7, good, broken)

	made, _ := w.survey(good)
	report(good, made.patches["good"], "", nil)
	report(broken, made.patches["broken"], "", nil)

	const where = "Machine w-0000, Machine w-0001, Machine w-0002, Machine w-0003, Machine w-0004 and 2 more: "

	valid := conditions.Get(good, "Valid")
	w.Expect(valid.Reason).To(Equal("MachinesNotRendered"))
	w.Expect(valid.Message).To(HavePrefix(where + "Cluster layer: TalosConfigPatch broken spec.documents[0]"))
	w.Expect(valid.Message).NotTo(ContainSubstring("; "))
	w.Expect(conditions.Get(broken, "Valid").Message).To(Equal(valid.Message))

	effective := conditions.Get(good, "Effective")
	w.Expect(effective.Status).To(Equal(metav1.ConditionUnknown))
	w.Expect(effective.Message).To(Equal("7 of 7 machines do not render, see the condition Valid"))
}

// A machine that is pinned to another contract is rendered for it: kernel arguments have a place in the older one only.
func TestPinnedContractIsFollowed(t *testing.T) {
	a := sysctl("a", "kernel.a")
	w := newWorld(t, 1, a)

	config := &bootstrapv1.TalosConfig{}
	w.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "w-0000"}, config)).To(Succeed())

	config.Spec.Install = bootstrapv1.InstallSpec{Disk: "/dev/sda", Image: "factory.talos.dev/metal-installer/x:v1.14.1", ExtraKernelArgs: []string{"quiet"}}
	config.Status.ConfigContract = "v1.13"
	w.Expect(w.client.Update(t.Context(), config)).To(Succeed())

	made, _ := w.survey(a)
	w.Expect(made.patches["a"].foreign.String()).To(BeEmpty())

	before := config.DeepCopy()
	config.Status.ConfigContract = "v1.14"
	w.Expect(w.client.Update(t.Context(), config)).To(Succeed())
	w.Expect(configChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: config})).To(BeTrue())

	_, err := w.r.all(t.Context(), config)
	w.Expect(err).NotTo(HaveOccurred())
	w.clock.SetTime(w.clock.Now().Add(settle))

	made, _ = w.survey(a)
	w.Expect(made.patches["a"].foreign.String()).To(ContainSubstring("config contract v1.14 has no place for kernel arguments"))
}

// A machine runs what it was given once it has joined, unless something else is noted down of its node.
func TestApplied(t *testing.T) {
	a := sysctl("a", "kernel.a")
	w := newWorld(t, 3, a)

	applied := func() int32 {
		_, err := w.r.all(t.Context(), a)
		w.Expect(err).NotTo(HaveOccurred())
		w.clock.SetTime(w.clock.Now().Add(settle))

		made, _ := w.survey(a)

		return made.patches["a"].applied
	}

	// Two machines were given the patch as it is, one an older generation.
	for i, generation := range []int64{1, 1, 7} {
		config := &bootstrapv1.TalosConfig{}
		w.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: fmt.Sprintf("w-%04d", i)}, config)).To(Succeed())

		config.Status.Inputs = []bootstrapv1.RenderedInput{{Kind: "TalosConfigPatch", Name: "a", Layer: "Cluster", Generation: &generation}}
		w.Expect(w.client.Update(t.Context(), config)).To(Succeed())
	}

	w.Expect(applied()).To(BeZero(), "none has joined")

	join := func(name string, note string) {
		machine := &clusterv1.Machine{}
		w.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, machine)).To(Succeed())

		before := machine.DeepCopy()
		machine.Status.NodeRef.Name = name

		if note != "" {
			metav1.SetMetaDataAnnotation(&machine.ObjectMeta, bootstrapv1.RunningInputsAnnotation, note)
		}

		w.Expect(w.client.Update(t.Context(), machine)).To(Succeed())
		w.Expect(changed().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: machine})).To(BeTrue())
	}

	join("w-0000", "")
	join("w-0002", "")
	w.Expect(applied()).To(BeEquivalentTo(1))

	join("w-0001", `[{"kind":"TalosConfigPatch","name":"a","generation":7,"layer":"Cluster"}]`)
	w.Expect(applied()).To(BeEquivalentTo(1), "it was given another config since")

	join("w-0002", `[{"kind":"TalosConfigPatch","name":"a","generation":1,"layer":"Cluster"}]`)
	w.Expect(applied()).To(BeEquivalentTo(2))

	// One whose TalosConfig has the patch's name may be noted without it.
	machine := &clusterv1.Machine{}
	w.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "w-0000"}, machine)).To(Succeed())
	machine.Spec.Bootstrap.ConfigRef.Name = "a"
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, bootstrapv1.RunningInputsAnnotation, `[{"kind":"TalosConfigPatch","generation":1,"layer":"Cluster"}]`)
	w.Expect(w.client.Update(t.Context(), machine)).To(Succeed())

	pass := &pass{Reconciler: w.r, running: map[string]map[string]int64{}}
	running, err := pass.runs(t.Context(), machine)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(running).To(HaveKeyWithValue("a", BeEquivalentTo(1)))
}
