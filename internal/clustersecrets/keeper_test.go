// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

var birth = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// desk is a Keeper on an API that is none: what is proved here does not depend on a real one, and one cannot be brought about there.
type desk struct {
	*WithT
	t      *testing.T
	client client.WithWatch
	keeper *Keeper
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	writes int
}

func newDesk(t *testing.T, refuse func(client.Object) error, objects ...client.Object) *desk {
	t.Helper()

	scheme := runtime.NewScheme()
	d := &desk{WithT: NewWithT(t), t: t, clock: clocktesting.NewFakePassiveClock(birth), events: events.NewFakeRecorder(100)}

	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		d.Expect(add(scheme)).To(Succeed())
	}

	write := func(object client.Object) error {
		if refuse != nil {
			if err := refuse(object); err != nil {
				return err
			}
		}

		d.writes++

		return nil
	}

	d.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := write(object); err != nil {
				return err
			}

			// As an API server does, and the fake client does not.
			object.SetUID(types.UID("uid-" + object.GetName()))

			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := write(object); err != nil {
				return err
			}

			return c.Patch(ctx, object, patch, options...)
		},
	})
	d.keeper = New(d.client, d.client, d.client, d.events, d.clock)

	return d
}

func clusterC() *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid-now"}}
}

func (d *desk) bundle(change ...func(*corev1.Secret)) *corev1.Secret {
	d.t.Helper()

	contract := version.Newest()

	made, err := secrets.New(machinerysecrets.NewFixedClock(birth), contract, secrets.WithECDSAServiceAccountKey())
	d.Expect(err).NotTo(HaveOccurred())

	secret, err := secrets.BundleSecret(clusterC(), made, contract)
	d.Expect(err).NotTo(HaveOccurred())

	for _, each := range change {
		each(secret)
	}

	d.Expect(d.client.Create(d.t.Context(), secret)).To(Succeed())

	d.writes = 0

	return secret
}

func (d *desk) secret(name string) *corev1.Secret {
	d.t.Helper()

	secret := &corev1.Secret{}
	d.Expect(d.client.Get(d.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, secret)).To(Succeed())

	return secret
}

func (d *desk) keep() (time.Time, error) {
	d.t.Helper()

	return d.keeper.Keep(d.t.Context(), clusterC())
}

// fault checks that the error is a fault of the reason with all texts.
func (d *desk) fault(err error, reason string, texts ...string) {
	d.t.Helper()
	d.Expect(ReasonOf(err)).To(Equal(reason), "%v", err)

	for _, text := range texts {
		d.Expect(err).To(MatchError(ContainSubstring(text)))
	}
}

// earlier makes a Secret belong to a Cluster of the same name that was there before.
func earlier(secret *corev1.Secret) {
	secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "uid-before"}}
}

func machineWithData() client.Object {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w-1"}}
	machine.Spec.ClusterName, machine.Spec.Bootstrap.DataSecretName = "c", new("w-1")

	return machine
}

// A new cluster does not begin with the secrets of a deleted one of its name, which the garbage collector has not taken yet; a restored
// cluster, whose machines carry them, keeps them.
func TestLeftovers(t *testing.T) {
	t.Run("of the bundle", func(t *testing.T) {
		d := newDesk(t, nil)
		d.bundle(earlier)

		_, err := d.keep()
		d.fault(err, bootstrapv1.SecretsBundleMismatchReason, "secret c-talos", "earlier Cluster c")
		d.Expect(d.writes).To(BeZero())
	})

	t.Run("of an authority", func(t *testing.T) {
		leftover := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-ca"}}
		earlier(leftover)

		d := newDesk(t, nil, leftover)

		_, err := d.keeper.Make(t.Context(), clusterC(), nil, version.Newest())
		d.fault(err, bootstrapv1.SecretsBundleMismatchReason, "secret c-ca", "earlier Cluster c")
		d.Expect(d.writes).To(BeZero())
	})

	t.Run("of a restored cluster", func(t *testing.T) {
		d := newDesk(t, nil, machineWithData())
		d.bundle(earlier)

		_, err := d.keep()
		d.Expect(err).NotTo(HaveOccurred())
		d.Expect(d.secret("c-talos").OwnerReferences).To(ConsistOf(referenceTo(clusterC())))
	})
}

// The bundle is not made again when machines carry the secrets of one that is lost.
func TestMakeRefusesTheLost(t *testing.T) {
	config, data := givenData()

	tests := map[string]struct {
		objects []client.Object
		cluster func(*clusterv1.Cluster)
		want    string
	}{
		"a machine with bootstrap data":                  {objects: []client.Object{machineWithData()}, want: "Machine w-1 of Cluster c has bootstrap data already"},
		"data that Cluster API has not taken over yet":   {objects: []client.Object{config, data}, want: "TalosConfig w-1 of Cluster c has bootstrap data already"},
		"data of a TalosConfig that is gone":             {objects: []client.Object{data}},
		"an initialized control plane without a machine": {cluster: initialize, want: "Cluster c is initialized"},
		"a cluster that is new":                          {},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := make([]client.Object, len(test.objects))
			for i, object := range test.objects {
				objects[i], _ = object.DeepCopyObject().(client.Object)
			}

			d := newDesk(t, nil, objects...)
			cluster := clusterC()

			if test.cluster != nil {
				test.cluster(cluster)
			}

			secret, err := d.keeper.Make(t.Context(), cluster, nil, version.Newest())
			if test.want == "" {
				d.Expect(err).NotTo(HaveOccurred())
				d.Expect(secret.Name).To(Equal("c-talos"))

				return
			}

			d.fault(err, bootstrapv1.SecretsBundleMissingReason, "secret c-talos does not exist", test.want, "backup")
			d.Expect(d.writes).To(BeZero())
		})
	}
}

func initialize(cluster *clusterv1.Cluster) {
	cluster.Status.Initialization.ControlPlaneInitialized = new(true)
}

// Of two processes that make the bundle at once, the second takes the first's, and everything is made of that one.
func TestMakeMeetsAnother(t *testing.T) {
	var d *desk

	first := true
	d = newDesk(t, func(object client.Object) error {
		if object.GetName() != "c-talos" || !first {
			return nil
		}

		// Another process has been faster by a moment.
		first = false
		theirs := d.bundle()

		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, theirs.Name)
	})

	secret, err := d.keeper.Make(t.Context(), clusterC(), nil, version.Newest())
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(secret.UID).To(Equal(d.secret("c-talos").UID))
	d.Expect(secret.Data).To(Equal(d.secret("c-talos").Data))
	d.Expect(d.events.Events).To(BeEmpty(), "it was not made here")

	bundle, err := d.keeper.Open(t.Context(), clusterC(), nil, secret, version.Newest())
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(d.secret("c-ca").Data["tls.crt"]).To(Equal(bundle.Certs.K8s.Crt))
}

// Two workers that give a bundle of somebody else's what it lacks do not undo each other's part, nor stumble over it: the pin of the
// cluster's contract is set once.
func TestOwnMeetsAnother(t *testing.T) {
	d := newDesk(t, nil)
	d.bundle(func(secret *corev1.Secret) { secret.OwnerReferences, secret.Labels, secret.Annotations = nil, nil, nil })

	stale := d.secret("c-talos")
	d.Expect(d.keeper.own(t.Context(), clusterC(), stale.DeepCopy(), "")).To(Succeed())
	d.Expect(d.secret("c-talos").Annotations).To(BeEmpty())

	d.Expect(d.keeper.own(t.Context(), clusterC(), stale.DeepCopy(), "v1.13")).To(Succeed())
	d.Expect(d.keeper.own(t.Context(), clusterC(), stale.DeepCopy(), "v1.13")).To(Succeed())
	d.Expect(d.keeper.own(t.Context(), clusterC(), d.secret("c-talos"), "v1.14")).To(Succeed(), "who has seen the pin has chosen by it")

	// Who has not seen it was about to render with another contract.
	err := d.keeper.own(t.Context(), clusterC(), stale.DeepCopy(), "v1.14")
	d.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)

	pinned := &bootstrapv1.TalosClusterConfig{}
	pinned.Spec.Talos.Version = "v1.14.1"
	_, err = d.keeper.Open(t.Context(), clusterC(), pinned, stale.DeepCopy(), version.Newest())
	d.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)

	now := d.secret("c-talos")
	d.Expect(now.Annotations).To(HaveKeyWithValue(secrets.ConfigContractAnnotation, "v1.13"))
	d.Expect(now.OwnerReferences).To(ConsistOf(referenceTo(clusterC())))
	d.Expect(now.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))

	// One that is gone has nothing to be given.
	d.Expect(d.client.Delete(t.Context(), now)).To(Succeed())
	d.Expect(client.IgnoreNotFound(errors.Unwrap(d.keeper.own(t.Context(), clusterC(), stale, "")))).To(Succeed())
}

// What the API server does not take is told without what is in it, and tried again.
func TestRefusals(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}

	d := newDesk(t, func(object client.Object) error {
		return apierrors.NewForbidden(resource, object.GetName(), errors.New("exceeded quota: few"))
	})

	_, err := d.keeper.Make(t.Context(), clusterC(), nil, version.Newest())
	d.fault(err, bootstrapv1.SecretsBundleNotAvailableReason, "secret c-talos", "exceeded quota: few")

	fault, _ := errors.AsType[*FaultError](err)
	d.Expect(fault.Again).To(BeTrue())

	var token string

	d = newDesk(t, func(object client.Object) error {
		secret, _ := object.(*corev1.Secret)

		// It is asked again without what is in it.
		if bytes.Equal(secret.Data[secrets.BundleKey], placeholder) {
			return nil
		}

		bundle, _, err := secrets.FromSecret(secret, nil)
		d.Expect(err).NotTo(HaveOccurred())

		token = bundle.TrustdInfo.Token

		return apierrors.NewForbidden(resource, object.GetName(), errors.New("policy: "+token+" is weak"))
	})

	_, err = d.keeper.Make(t.Context(), clusterC(), nil, version.Newest())
	d.fault(err, bootstrapv1.SecretsBundleNotAvailableReason, "secret c-talos", "left out")
	d.Expect(token).NotTo(BeEmpty())
	d.Expect(err.Error()).NotTo(ContainSubstring(token))

	d = newDesk(t, func(client.Object) error { return apierrors.NewServiceUnavailable("later") })

	_, err = d.keeper.Make(t.Context(), clusterC(), nil, version.Newest())
	d.Expect(err).To(MatchError(ContainSubstring("later")))
	d.Expect(ReasonOf(err)).To(BeEmpty())
}

// One Secret that differs leaves all others as they are: nothing is written beside it.
func TestDisagreementWritesNothing(t *testing.T) {
	for _, name := range secrets.AuthorityNames("c") {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, nil)
			d.bundle(func(secret *corev1.Secret) { secret.OwnerReferences, secret.Labels = nil, nil })

			other, err := secrets.New(machinerysecrets.NewFixedClock(birth), version.Newest(), secrets.WithECDSAServiceAccountKey())
			d.Expect(err).NotTo(HaveOccurred())

			theirs, err := secrets.AuthoritySecrets(clusterC(), other)
			d.Expect(err).NotTo(HaveOccurred())

			for _, secret := range theirs {
				if secret.Name == name {
					d.Expect(d.client.Create(t.Context(), secret)).To(Succeed())
				}
			}

			d.writes = 0
			_, err = d.keep()
			d.fault(err, bootstrapv1.SecretsBundleMismatchReason, "secret "+name, `key "tls.`)
			d.Expect(d.writes).To(BeZero())
		})
	}
}

// A note that is too long for an event is cut.
func TestRecordFault(t *testing.T) {
	d := newDesk(t, nil)
	const longest = 1024

	d.keeper.RecordFault(clusterC(), &FaultError{Err: errors.New(strings.Repeat("ä", longest))})

	note := <-d.events.Events
	d.Expect(len(note)).To(BeNumerically("<=", longest+len("Warning "+EventSecretsFault+" ")))
	d.Expect(note).To(HaveSuffix("ä..."))
}
