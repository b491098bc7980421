// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/role"
	corev1 "k8s.io/api/core/v1"

	"github.com/maesh-dev/ichor/internal/secrets"
)

// issued is the Secret with a talosconfig that has just been made at birth.
func issued(t *testing.T, bundle *secrets.Bundle, ttl time.Duration) *corev1.Secret {
	t.Helper()

	object, err := secrets.TalosconfigSecret(cluster(), talosconfig(t, bundle, ttl))
	if err != nil {
		t.Fatal(err)
	}

	return object
}

// written is the Secret with a talosconfig of somebody else's.
func written(data []byte) *corev1.Secret {
	return secretOf("c-talosconfig", map[string][]byte{"talosconfig": data})
}

func edited(t *testing.T, data []byte, edit func(*clientconfig.Config)) []byte {
	t.Helper()

	parsed, err := clientconfig.FromBytes(data)
	if err != nil {
		t.Fatal(err)
	}

	edit(parsed)

	out, err := parsed.Bytes()
	if err != nil {
		t.Fatal(err)
	}

	return out
}

const (
	unusable  = "it cannot be read as a talosconfig with a client certificate"
	otherCA   = "its Talos certificate authority is not that of the cluster's secrets bundle"
	halfLife  = "half of its client certificate's life is over"
	noAdmin   = "its client certificate is not an administrator's"
	askedFor  = "the annotation bootstrap.ichor.maesh.dev/rotate asks for it"
	clockSkew = 5 * time.Minute
)

func TestReviewTalosconfig(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)
	good := talosconfig(t, bundle, year)

	reader, err := bundle.GenerateTalosAPIClientCertificate(role.MakeSet(role.Reader))
	if err != nil {
		t.Fatal(err)
	}

	readers := edited(t, good, func(c *clientconfig.Config) {
		c.Contexts["c"].Crt = base64.StdEncoding.EncodeToString(reader.Crt)
		c.Contexts["c"].Key = base64.StdEncoding.EncodeToString(reader.Key)
	})
	// Its authority is the bundle's, its certificate is of another.
	mixed := edited(t, talosconfig(t, newBundle(t), year), func(c *clientconfig.Config) {
		c.Contexts["c"].CA = base64.StdEncoding.EncodeToString(bundle.Certs.OS.Crt)
	})
	extended := edited(t, good, func(c *clientconfig.Config) {
		c.Contexts["other"] = &clientconfig.Context{Endpoints: []string{"192.0.2.9"}}
		c.Context = "other"
		c.Contexts["c"].Nodes = []string{"192.0.2.3"}
	})

	// The certificate's life begins before its birth, for nodes whose clocks are behind.
	next := birth.Add(year / 2)

	annotated := func(object *corev1.Secret, values ...string) *corev1.Secret {
		object = object.DeepCopy()
		if object.Annotations == nil {
			object.Annotations = map[string]string{}
		}

		for i := 0; i+1 < len(values); i += 2 {
			object.Annotations[values[i]] = values[i+1]
		}

		return object
	}

	ours := issued(t, bundle, year)
	replaced := ours.DeepCopy()
	replaced.Data["talosconfig"] = readers
	kept := ours.DeepCopy()
	kept.Data["talosconfig"] = extended

	tests := map[string]struct {
		object *corev1.Secret
		bundle *secrets.Bundle
		after  time.Duration
		want   secrets.Review
	}{
		"new":                        {object: ours, want: secrets.Review{Next: next}},
		"before half of its life":    {object: ours, after: year/2 - time.Hour, want: secrets.Review{Next: next}},
		"after half of its life":     {object: ours, after: year/2 + time.Minute, want: secrets.Review{Renew: true, Reason: halfLife}},
		"expired":                    {object: ours, after: 2 * year, want: secrets.Review{Renew: true, Reason: halfLife}},
		"another authority":          {object: ours, bundle: newBundle(t), want: secrets.Review{Renew: true, Reason: otherCA}},
		"as long as its authority":   {object: issued(t, bundle, 100*year), after: 9 * year, want: secrets.Review{}},
		"with contexts of a user's":  {object: kept, want: secrets.Review{Next: next}},
		"renewed with a user's":      {object: kept, after: year, want: secrets.Review{Renew: true, Reason: halfLife}},
		"rotate":                     {object: annotated(ours, secrets.RotateAnnotation, "leaked"), want: secrets.Review{Renew: true, Reason: askedFor}},
		"rotate with an empty value": {object: annotated(ours, secrets.RotateAnnotation, ""), want: secrets.Review{Renew: true, Reason: askedFor}},
		"rotated":                    {object: annotated(ours, secrets.RotateAnnotation, "a", secrets.RotatedAnnotation, "a"), want: secrets.Review{Next: next}},
		"rotate once more":           {object: annotated(ours, secrets.RotateAnnotation, "b", secrets.RotatedAnnotation, "a"), want: secrets.Review{Renew: true, Reason: askedFor}},

		// What another Talos provider or talosctl has made with the cluster's authority is renewed as ours is.
		"another tool's":                    {object: written(good), want: secrets.Review{Next: next}},
		"another tool's, at its half-life":  {object: written(good), after: year, want: secrets.Review{Renew: true, Reason: halfLife}},
		"a user's, of another authority":    {object: written(mixed), want: secrets.Review{Foreign: true, Reason: otherCA}},
		"a user's, of another cluster":      {object: written(good), bundle: newBundle(t), want: secrets.Review{Foreign: true, Reason: otherCA}},
		"a user's, of a reader":             {object: written(readers), want: secrets.Review{Foreign: true, Reason: noAdmin}},
		"a user's in ours":                  {object: replaced, want: secrets.Review{Foreign: true, Reason: noAdmin}},
		"a user's in ours, to rotate":       {object: annotated(replaced, secrets.RotateAnnotation, "1"), want: secrets.Review{Renew: true, Reason: askedFor}},
		"no data":                           {object: written(nil), want: secrets.Review{Renew: true, Reason: "it was empty"}},
		"no data at all":                    {object: secretOf("c-talosconfig", nil), want: secrets.Review{Renew: true, Reason: "it was empty"}},
		"a word":                            {object: written([]byte("hunter2")), want: secrets.Review{Foreign: true, Reason: unusable}},
		"no YAML":                           {object: written([]byte("{hunter2")), want: secrets.Review{Foreign: true, Reason: unusable}},
		"a list":                            {object: written([]byte("- hunter2")), want: secrets.Review{Foreign: true, Reason: unusable}},
		"no context":                        {object: written([]byte("context: c\ncontexts: {}\n")), want: secrets.Review{Foreign: true, Reason: unusable}},
		"a context that is null":            {object: written([]byte("context: c\ncontexts: {c: }\n")), want: secrets.Review{Foreign: true, Reason: unusable}},
		"no certificate":                    {object: written([]byte("context: c\ncontexts: {c: {endpoints: [a]}}\n")), want: secrets.Review{Foreign: true, Reason: unusable}},
		"a bundle that can renew nothing":   {object: ours, bundle: &secrets.Bundle{}, after: 2 * year},
		"an empty one that nothing renews":  {object: written(nil), bundle: &secrets.Bundle{}},
		"a cluster's context of other name": {object: written(edited(t, good, rename)), want: secrets.Review{Next: next}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tc.bundle == nil {
				tc.bundle = bundle
			}

			got := secrets.ReviewTalosconfig(tc.object, "c", tc.bundle, birth.Add(tc.after))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func rename(c *clientconfig.Config) {
	c.Contexts["admin"] = c.Contexts["c"]
	delete(c.Contexts, "c")
	c.Context = "admin"
}

// A renewal changes the certificate and leaves what a user has added.
func TestRenewTalosconfig(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)
	later := birth.Add(year)

	tests := map[string]struct {
		edit func(*clientconfig.Config)
		name string
	}{
		"endpoints and nodes": {name: "c", edit: func(c *clientconfig.Config) {
			c.Contexts["c"].Endpoints, c.Contexts["c"].Nodes = []string{"talos.example.com"}, []string{"192.0.2.7"}
		}},
		"another context, which is current": {name: "c", edit: func(c *clientconfig.Config) {
			c.Contexts["other"] = &clientconfig.Context{Endpoints: []string{"192.0.2.9"}, CA: "b3RoZXI=", Crt: "b3RoZXI=", Key: "b3RoZXI="}
			c.Context = "other"
		}},
		"a name of the user's": {name: "admin", edit: rename},
		"nothing":              {name: "c", edit: func(*clientconfig.Config) {}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			before := edited(t, talosconfig(t, bundle, year), tc.edit)

			after, err := secrets.RenewTalosconfig(before, bundle, "c", year, later)
			if err != nil {
				t.Fatal(err)
			}

			// The same but for the certificate and its key.
			want := edited(t, before, func(c *clientconfig.Config) { c.Contexts[tc.name].Crt, c.Contexts[tc.name].Key = "", "" })

			var key string

			got := edited(t, after, func(c *clientconfig.Config) {
				key = c.Contexts[tc.name].Key
				c.Contexts[tc.name].Crt, c.Contexts[tc.name].Key = "", ""
			})
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}

			edited(t, before, func(c *clientconfig.Config) {
				if key == "" || key == c.Contexts[tc.name].Key {
					t.Error("the key is the old one")
				}
			})

			object := written(nil)
			if err := secrets.SetTalosconfig(object, "c", after); err != nil {
				t.Fatal(err)
			}

			review := secrets.ReviewTalosconfig(object, "c", bundle, later)
			if diff := cmp.Diff(secrets.Review{Next: later.Add((year - clockSkew) / 2)}, review); diff != "" {
				t.Errorf("after the renewal (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("what cannot be read", func(t *testing.T) {
		t.Parallel()

		after, err := secrets.RenewTalosconfig([]byte("{hunter2"), bundle, "c", year, later)
		if err != nil {
			t.Fatal(err)
		}

		edited(t, after, func(c *clientconfig.Config) {
			if c.Context != "c" || len(c.Contexts) != 1 {
				t.Errorf("context %q of %d", c.Context, len(c.Contexts))
			}
		})
	})
}

// An authority that a user brings may have a key of any kind that Talos reads.
func TestTalosconfigOfAnRSAAuthority(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)
	certificate, key := authority(t, x509.RSA(true))
	bundle.Certs.OS = &x509.PEMEncodedCertificateAndKey{Crt: certificate, Key: key}

	review := secrets.ReviewTalosconfig(issued(t, bundle, year), "c", bundle, birth)
	if diff := cmp.Diff(secrets.Review{Next: birth.Add(year / 2)}, review); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A request for a rotation is answered once, is not forgotten while it stands, and may be made again once it was taken back.
func TestSettleRotation(t *testing.T) {
	t.Parallel()

	const asked, answered = secrets.RotateAnnotation, secrets.RotatedAnnotation

	tests := map[string]struct{ annotations, want map[string]string }{
		"nothing": {nil, nil},
		"asked":   {map[string]string{asked: "1"}, map[string]string{asked: "1", answered: "1"}},
		"by an empty value": {
			map[string]string{asked: ""}, map[string]string{asked: "", answered: ""},
		},
		"answered":   {map[string]string{asked: "1", answered: "1"}, map[string]string{asked: "1", answered: "1"}},
		"again":      {map[string]string{asked: "2", answered: "1"}, map[string]string{asked: "2", answered: "2"}},
		"taken back": {map[string]string{answered: "1"}, map[string]string{}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			object := secretOf("c-talosconfig", nil)
			object.Annotations = tc.annotations
			before := object.DeepCopy()

			changed := secrets.SettleRotation(object)
			if diff := cmp.Diff(tc.want, object.Annotations); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}

			if changed == cmp.Equal(before, object) {
				t.Errorf("changed: %t", changed)
			}
		})
	}
}
