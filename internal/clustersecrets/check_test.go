// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// check checks as a report does, and sees to it that nothing was written.
func (d *desk) check(config *bootstrapv1.TalosClusterConfig) (made bool, faults []*FaultError) {
	d.t.Helper()

	writes := d.writes
	made, faults, err := d.keeper.Check(d.t.Context(), clusterC(), config, func(ctx context.Context, name string) (*corev1.Secret, error) {
		return d.keeper.read(ctx, client.ObjectKey{Namespace: "ns", Name: name})
	})
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(d.writes).To(Equal(writes))

	return made, faults
}

// settled is a desk with a cluster whose secrets are all there.
func settled(t *testing.T, objects ...client.Object) *desk {
	t.Helper()

	d := newDesk(t, nil, objects...)
	d.bundle()

	_, err := d.keep()
	d.Expect(err).NotTo(HaveOccurred())

	return d
}

func (d *desk) change(name string, change func(*corev1.Secret)) {
	d.t.Helper()

	secret := d.secret(name)
	change(secret)
	d.Expect(d.client.Update(d.t.Context(), secret)).To(Succeed())
}

// others are the authorities of another cluster, by name.
func others(d *desk) map[string]*corev1.Secret {
	d.t.Helper()

	other, err := secrets.New(machinerysecrets.NewFixedClock(birth), version.Newest(), secrets.WithECDSAServiceAccountKey())
	d.Expect(err).NotTo(HaveOccurred())

	made, err := secrets.AuthoritySecrets(clusterC(), other)
	d.Expect(err).NotTo(HaveOccurred())

	byName := map[string]*corev1.Secret{}
	for _, secret := range made {
		byName[secret.Name] = secret
	}

	return byName
}

// What keeps machines from being rendered is found for every Secret of a cluster that has a bundle, by a look that changes nothing.
func TestCheckOfMadeSecrets(t *testing.T) {
	for _, name := range secrets.AuthorityNames("c") {
		t.Run(name, func(t *testing.T) {
			d := settled(t)

			made, faults := d.check(nil)
			d.Expect(made).To(BeTrue())
			d.Expect(faults).To(BeEmpty())

			other := others(d)[name]
			good := d.secret(name).Data

			for what, data := range map[string]map[string][]byte{
				"of another cluster": other.Data,
				"without any key":    {},
				"without a form":     {"tls.crt": []byte("crt"), "tls.key": []byte("key")},
			} {
				d.change(name, func(secret *corev1.Secret) { secret.Data = data })

				_, faults = d.check(nil)
				d.Expect(faults).To(HaveLen(1), what)
				d.fault(faults[0], bootstrapv1.SecretsBundleMismatchReason, "secret "+name, `key "tls.`, "delete the Secret")
			}

			d.change(name, func(secret *corev1.Secret) { secret.Data = good })
			_, faults = d.check(nil)
			d.Expect(faults).To(BeEmpty())

			// Of an earlier cluster, which no machine of this one carries.
			d.change(name, earlier)
			_, faults = d.check(nil)
			d.Expect(faults).To(HaveLen(1))
			d.fault(faults[0], bootstrapv1.SecretsBundleMismatchReason, "secret "+name, "belongs to an earlier Cluster c")
			d.Expect(faults[0].Leftover).To(BeTrue())

			d.Expect(d.client.Create(t.Context(), machineWithData())).To(Succeed())
			_, faults = d.check(nil)
			d.Expect(faults).To(BeEmpty())
		})
	}

	t.Run("two at once", func(t *testing.T) {
		d := settled(t)
		for _, name := range []string{"c-ca", "c-sa"} {
			d.change(name, func(secret *corev1.Secret) { secret.Data = nil })
		}

		_, faults := d.check(nil)
		d.Expect(faults).To(HaveLen(2))
	})

	t.Run("a bundle with another contract than there is", func(t *testing.T) {
		d := settled(t)
		d.change("c-talos", func(secret *corev1.Secret) { secret.Annotations[secrets.ConfigContractAnnotation] = "newest" })

		made, faults := d.check(nil)
		d.Expect(made).To(BeTrue())
		d.Expect(faults).To(HaveLen(1))
		d.fault(faults[0], bootstrapv1.SecretsBundleInvalidReason, "secret c-talos", secrets.ConfigContractAnnotation)
	})
}

// Before the first machine it is found out whether a bundle can be made.
func TestCheckOfSecretsToBeMade(t *testing.T) {
	ref := &bootstrapv1.TalosClusterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "config"}}
	ref.Spec.SecretsRef = &corev1.LocalObjectReference{Name: "mine"}

	theirs := ref.DeepCopy()
	theirs.Spec.SecretsRef.Name = "b-talos"

	tests := map[string]struct {
		prepare func(d *desk) []client.Object
		config  *bootstrapv1.TalosClusterConfig
		reason  string
		texts   []string
	}{
		"nothing there": {},
		"a good authority": {
			prepare: func(d *desk) []client.Object { return []client.Object{others(d)["c-ca"]} },
		},
		"an authority without its key": {
			prepare: func(d *desk) []client.Object {
				secret := others(d)["c-etcd"]
				delete(secret.Data, "tls.key")

				return []client.Object{secret}
			},
			reason: bootstrapv1.SecretsBundleInvalidReason, texts: []string{"secret c-etcd", `key "tls.key" is missing`},
		},
		"an authority of an earlier cluster": {
			prepare: func(d *desk) []client.Object {
				secret := others(d)["c-proxy"]
				earlier(secret)

				return []client.Object{secret}
			},
			reason: bootstrapv1.SecretsBundleMismatchReason, texts: []string{"secret c-proxy", "earlier Cluster c"},
		},
		"a machine that carries lost secrets": {
			prepare: func(*desk) []client.Object { return []client.Object{machineWithData()} },
			reason:  bootstrapv1.SecretsBundleMissingReason, texts: []string{"Machine w-1"},
		},
		"a bundle to copy that does not exist": {
			config: ref, reason: bootstrapv1.SecretsBundleInvalidReason, texts: []string{`spec.secretsRef: secret "mine" does not exist`},
		},
		"a bundle to copy": {
			prepare: func(d *desk) []client.Object { return []client.Object{bundleOf(d, "mine")} }, config: ref,
		},
		"a bundle to copy beside another Cluster's": {
			prepare: func(d *desk) []client.Object {
				return []client.Object{bundleOf(d, "mine"), clusterNamed("b", "uid-b"), bundleOf(d, "b-talos")}
			},
			config: ref,
		},
		"a bundle to copy beside one that is broken": {
			prepare: func(d *desk) []client.Object {
				theirs := bundleOf(d, "b-talos")
				theirs.Data[secrets.BundleKey] = []byte("secrets: {}")

				return []client.Object{bundleOf(d, "mine"), clusterNamed("b", "uid-b"), theirs}
			},
			config: ref,
		},
		"a bundle to copy that another Cluster has copied": {
			prepare: func(d *desk) []client.Object {
				mine := bundleOf(d, "mine")
				theirs := mine.DeepCopy()
				theirs.Name = "b-talos"

				return []client.Object{mine, clusterNamed("b", "uid-b"), theirs}
			},
			config: ref, reason: bootstrapv1.SecretsBundleMismatchReason,
			texts: []string{"TalosClusterConfig config: spec.secretsRef: secret mine: holds the bundle of Cluster b", "a bundle of its own"},
		},
		"a bundle to copy that is another Cluster's own": {
			prepare: func(d *desk) []client.Object {
				return []client.Object{clusterNamed("b", "uid-b"), bundleOf(d, "b-talos"), clusterNamed("d", "uid-d")}
			},
			config: theirs, reason: bootstrapv1.SecretsBundleMismatchReason, texts: []string{"secret b-talos: holds the bundle of Cluster b"},
		},
		"a bundle to copy that was a deleted Cluster's": {
			prepare: func(d *desk) []client.Object { return []client.Object{bundleOf(d, "b-talos")} }, config: theirs,
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, nil)

			if test.prepare != nil {
				for _, object := range test.prepare(d) {
					d.Expect(d.client.Create(t.Context(), object)).To(Succeed())
				}
			}

			made, faults := d.check(test.config)
			d.Expect(made).To(BeFalse())

			// What is found before is what stops the first machine.
			d.writes = 0
			_, err := d.keeper.Make(t.Context(), clusterC(), test.config, version.Newest())

			if test.reason == "" {
				d.Expect(faults).To(BeEmpty())
				d.Expect(err).NotTo(HaveOccurred())

				return
			}

			d.Expect(faults).To(HaveLen(1))
			d.fault(faults[0], test.reason, test.texts...)
			d.fault(err, test.reason, test.texts...)
			d.Expect(d.writes).To(BeZero())
		})
	}
}

// Of two Clusters that are to have the same bundle at the same time, one gets it.
func TestMakeOfOneBundleForTwo(t *testing.T) {
	config := &bootstrapv1.TalosClusterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "config"}}
	config.Spec.SecretsRef = &corev1.LocalObjectReference{Name: "mine"}

	d := newDesk(t, nil)
	clusters := []*clusterv1.Cluster{clusterNamed("a", "uid-a"), clusterNamed("b", "uid-b")}

	for _, object := range []client.Object{clusters[0].DeepCopy(), clusters[1].DeepCopy(), bundleOf(d, "mine")} {
		d.Expect(d.client.Create(t.Context(), object)).To(Succeed())
	}

	failed := make(chan error)

	for _, cluster := range clusters {
		go func() {
			_, err := d.keeper.Make(t.Context(), cluster, config, version.Newest())
			failed <- err
		}()
	}

	err := errors.Join(<-failed, <-failed)
	d.fault(err, bootstrapv1.SecretsBundleMismatchReason, "secret mine: holds the bundle of Cluster")
	d.Expect(d.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a-talos"}, &corev1.Secret{}) == nil).NotTo(
		Equal(d.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b-talos"}, &corev1.Secret{}) == nil))
}

// bundleOf is a Secret of the name with a bundle of its own.
func bundleOf(d *desk, name string) *corev1.Secret {
	d.t.Helper()

	made, err := secrets.New(machinerysecrets.NewFixedClock(birth), version.Newest(), secrets.WithECDSAServiceAccountKey())
	d.Expect(err).NotTo(HaveOccurred())

	data, err := secrets.Encode(made)
	d.Expect(err).NotTo(HaveOccurred())

	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{secrets.BundleKey: data}}
}

func clusterNamed(name string, uid types.UID) *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}}
}

// What carries a cluster's secrets is watched when it begins to and when it ends.
func TestCarrierChanged(t *testing.T) {
	fresh := &clusterv1.Machine{Spec: clusterv1.MachineSpec{ClusterName: "c"}}
	carrying, _ := machineWithData().(*clusterv1.Machine)
	config := &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
	user := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
	data := user.DeepCopy()
	data.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: bootstrapv1.GroupVersion.String(), Kind: "TalosConfig", Name: "w-1", Controller: new(true),
	}}

	changed := CarrierChanged()

	for name, test := range map[string]struct{ got, want bool }{
		"a machine comes":                  {changed.Create(event.CreateEvent{Object: fresh}), false},
		"a restored machine comes":         {changed.Create(event.CreateEvent{Object: carrying}), true},
		"a machine gets its data":          {changed.Update(event.UpdateEvent{ObjectOld: fresh, ObjectNew: carrying}), true},
		"a machine stays":                  {changed.Update(event.UpdateEvent{ObjectOld: carrying, ObjectNew: carrying}), false},
		"a machine with data goes":         {changed.Delete(event.DeleteEvent{Object: carrying}), true},
		"a machine without goes":           {changed.Delete(event.DeleteEvent{Object: fresh}), false},
		"a TalosConfig goes":               {changed.Delete(event.DeleteEvent{Object: config}), true},
		"a data Secret goes":               {changed.Delete(event.DeleteEvent{Object: data}), true},
		"another Secret of a cluster goes": {changed.Delete(event.DeleteEvent{Object: user}), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(test.got).To(Equal(test.want))
		})
	}

	for _, object := range []client.Object{fresh, carrying, config, data} {
		NewWithT(t).Expect(CarrierOf(object)).To(Equal("c"))
	}
}
