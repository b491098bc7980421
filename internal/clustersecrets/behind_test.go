// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// givenData returns a TalosConfig and its data Secret.
func givenData() (*bootstrapv1.TalosConfig, *corev1.Secret) {
	config := &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w-1", UID: "uid-w-1"}}
	data := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "w-1", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: bootstrapv1.GroupVersion.String(), Kind: "TalosConfig", Name: "w-1", UID: "uid-w-1", Controller: new(true),
		}},
	}}

	return config, data
}

// A machine that was given secrets a moment ago is known to no cache yet.
func TestMakeAsksBeyondTheCaches(t *testing.T) {
	config, data := givenData()

	tests := map[string]struct {
		live []client.Object
		want string
	}{
		"data that no cache has seen":        {live: []client.Object{config, data}, want: "TalosConfig w-1 of Cluster c has bootstrap data already"},
		"data of a TalosConfig that is gone": {live: []client.Object{data}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, behind := newDesk(t, nil, test.live...), newDesk(t, nil, config.DeepCopy())
			d.keeper.client = cachedClient{d.client, behind.client}

			_, err := d.keeper.Make(t.Context(), clusterC(), nil, version.Newest())
			if test.want == "" {
				d.Expect(err).NotTo(HaveOccurred())
				d.Expect(d.secret("c-talos")).NotTo(BeNil())

				return
			}

			d.fault(err, bootstrapv1.SecretsBundleMissingReason, "secret c-talos does not exist", test.want)
			d.Expect(d.writes).To(BeZero())
		})
	}
}

// Another manager may make the bundle, and render the first machine with it, while this one looks for what carries the secrets of a lost one.
func TestMakeMeetsAnotherAndItsMachine(t *testing.T) {
	d := newDesk(t, nil)
	config, data := givenData()

	var theirs *corev1.Secret

	d.keeper.live = interceptor.NewClient(d.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if theirs == nil {
				theirs = d.bundle()
				d.Expect(d.client.Create(ctx, config)).To(Succeed())

				data.OwnerReferences[0].UID = config.UID
				d.Expect(d.client.Create(ctx, data)).To(Succeed())

				d.writes = 0
			}

			return c.List(ctx, list, options...)
		},
	})

	secret, err := d.keeper.Make(t.Context(), clusterC(), nil, version.Newest())
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(theirs).NotTo(BeNil())
	d.Expect(secret.Data).To(Equal(theirs.Data))
	d.Expect(d.writes).To(BeZero())
}

// cachedClient reads from a cache and writes to the API.
type cachedClient struct {
	client.Client

	cache client.Reader
}

func (c cachedClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.cache.Get(ctx, key, object, options...)
}

func (c cachedClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.cache.List(ctx, list, options...)
}

// Whatever a cache says that is behind, a config is written with the bundle that exists, and with no other; while the caches agree, nothing is
// read.
func TestStands(t *testing.T) {
	relabel := func(secret *corev1.Secret) { secret.Labels["other"] = "x" }
	replace := func(secret *corev1.Secret) { secret.UID = "uid-of-another" }
	restore := func(secret *corev1.Secret) { secret.Data[secrets.BundleKey] = []byte("restored") }

	type changes []func(*corev1.Secret)

	tests := map[string]struct {
		// metadata and live are what has become of the bundle; nil: it is gone.
		metadata, live changes
		want           string
		reads          int
	}{
		"nothing has changed":                     {metadata: changes{}, live: changes{}},
		"it is gone":                              {want: "secret c-talos: was deleted or replaced", reads: 1},
		"it is gone, and a cache is behind":       {metadata: changes{relabel}, want: "was deleted or replaced", reads: 1},
		"it has been made, and a cache is behind": {live: changes{}, reads: 1},
		"another was made":                        {metadata: changes{replace}, live: changes{replace}, want: "was deleted or replaced", reads: 1},
		"another was there before":                {metadata: changes{replace}, live: changes{}, reads: 1},
		"it has another label":                    {metadata: changes{relabel}, live: changes{relabel}, reads: 1},
		"another was restored into it":            {metadata: changes{restore}, live: changes{restore}, want: "was deleted or replaced", reads: 1},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, nil)
			opened := d.bundle()

			// become is an API, or the cache of one, in which the changes have been made.
			become := func(changes changes) client.WithWatch {
				if changes == nil {
					return newDesk(t, nil).client
				}

				secret := opened.DeepCopy()
				for _, change := range changes {
					secret.ResourceVersion = "7"
					change(secret)
				}

				return newDesk(t, nil, secret).client
			}

			reads := 0
			d.keeper.versions = inputs.NewReader(nil, nil, become(test.metadata))
			d.keeper.live = interceptor.NewClient(become(test.live), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					reads++

					return c.Get(ctx, key, object, options...)
				},
			})

			err := d.keeper.Stands(t.Context(), opened)
			if test.want == "" {
				d.Expect(err).NotTo(HaveOccurred())
			} else {
				d.Expect(err).To(MatchError(ContainSubstring(test.want)))
			}

			d.Expect(reads).To(Equal(test.reads))
		})
	}
}
