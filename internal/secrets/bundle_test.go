// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/crypto/x509"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

func TestNewIsCompleteForEveryContract(t *testing.T) {
	t.Parallel()

	for _, each := range append([]version.Contract{contract(t, "v1.0"), contract(t, "v1.2"), contract(t, "v1.3")}, version.Supported()...) {
		bundle, err := secrets.New(clock(), each, secrets.WithECDSAServiceAccountKey())
		if err != nil {
			t.Fatalf("%s: %v", each, err)
		}

		if err := secrets.Check(bundle, each); err != nil {
			t.Errorf("%s: %v", each, err)
		}

		// Machinery must take for complete what Check does.
		if err := bundle.Validate(each.Machinery()); err != nil {
			t.Errorf("%s: machinery: %v", each, err)
		}
	}

	if _, err := secrets.New(clock(), version.Contract{}); err == nil {
		t.Error("an unset contract is accepted")
	}
}

func TestEncodeDecodeRoundTrip(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)

	data, err := secrets.Encode(bundle)
	if err != nil {
		t.Fatal(err)
	}

	decoded, err := secrets.Decode(data, bundle.Clock)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(bundle, decoded, cmp.AllowUnexported(machinerysecrets.SystemClock{})); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}

	again, err := secrets.Encode(decoded)
	if err != nil {
		t.Fatal(err)
	}

	if !bytes.Equal(data, again) {
		t.Error("encoded twice, the bytes differ")
	}

	// Machinery, and with it talosctl and the existing providers, reads what is written here.
	path := t.TempDir() + "/secrets.yaml"
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}

	loaded, err := machinerysecrets.LoadBundle(path)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(bundle.Certs, loaded.Certs); diff != "" {
		t.Errorf("as machinery reads it (-want +got):\n%s", diff)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()

	data, err := secrets.Encode(newBundle(t))
	if err != nil {
		t.Fatal(err)
	}

	good := string(data)

	tests := map[string]struct {
		yaml string
		want string
	}{
		"as written":                  {yaml: good},
		"with a comment and a marker": {yaml: "---\n# secrets\n" + good},
		"with the former admin pair":  {yaml: strings.Replace(good, "certs:\n", "certs:\n    admin:\n        crt: anything\n        key: anything\n", 1)},
		"a section of nothing":        {yaml: "cluster: null\ncerts: {etcd: null}\n"},
		"empty":                       {yaml: "", want: "secrets bundle: is empty"},
		"a comment only":              {yaml: "# nothing\n", want: "secrets bundle: is empty"},
		"null":                        {yaml: "null\n", want: "secrets bundle: must have the fields cluster, secrets, trustdinfo and certs"},
		"a word":                      {yaml: "hunter2\n", want: "secrets bundle: must have the fields cluster, secrets, trustdinfo and certs"},
		"a list":                      {yaml: "- hunter2\n", want: "secrets bundle: must have the fields cluster, secrets, trustdinfo and certs"},
		"no YAML":                     {yaml: "cluster: {id: hunter2", want: "secrets bundle: not YAML"},
		"two documents":               {yaml: good + "---\n" + good, want: "secrets bundle: must be one YAML document"},
		"unknown section":             {yaml: good + "hunter2:\n    a: b\n", want: "unknown field"},
		"unknown field":               {yaml: "cluster:\n    id: a\n    hunter2: b\n", want: "secrets bundle: cluster: line 3: unknown field"},
		"machinery's JSON names":      {yaml: "Cluster:\n    Id: hunter2\n", want: "secrets bundle: line 1: unknown field"},
		"a field given twice":         {yaml: "cluster:\n    id: hunter2\n    id: hunter3\n", want: "secrets bundle: cluster.id: line 3: given twice"},
		"a section that is a text":    {yaml: "cluster: hunter2\n", want: "secrets bundle: cluster: line 1: must have fields"},
		"a text that is a section":    {yaml: "cluster:\n    id: {hunter2: a}\n", want: "secrets bundle: cluster.id: line 2: must be a text"},
		"a key that is not in base64": {yaml: "certs:\n    etcd:\n        crt: \"\"\n        key: hunter2!\n", want: "secrets bundle: certs.etcd.key: line 4: must be PEM data in base64"},
		"a redacted key":              {yaml: "certs:\n    os:\n        key: '******'\n", want: "secrets bundle: certs.os.key: line 3: must be PEM data in base64"},
		"an alias":                    {yaml: "cluster: &a\n    id: hunter2\nsecrets: *a\n", want: "secrets bundle: secrets: line 3: must have fields"},
		"a key that is a mapping":     {yaml: "? {hunter2: a}\n: b\n", want: "secrets bundle: line 1: unknown field"},
		"a machine config":            {yaml: "version: v1alpha1\nmachine:\n    token: hunter2\n", want: "secrets bundle: line 1: unknown field"},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := secrets.Decode([]byte(tc.yaml), clock())
			if got := errorText(err); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("error %q, want %q", got, tc.want)
			}

			if strings.Contains(errorText(err), "hunter") {
				t.Errorf("the error tells content: %v", err)
			}
		})
	}
}

// However a bundle is mangled, no error may carry a piece of a secret.
func TestErrorsCarryNoSecret(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)

	data, err := secrets.Encode(bundle)
	if err != nil {
		t.Fatal(err)
	}

	// Six characters are more than any word of a message has in common with random text.
	pieces := map[string]bool{}

	for _, value := range secretValues(bundle) {
		for i := 0; i+6 <= len(value); i++ {
			pieces[value[i:i+6]] = true
		}
	}

	failures := 0

	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 1))
		mangled := mangle(random, data)

		decoded, err := secrets.Decode(mangled, clock())
		if err == nil {
			err = secrets.Check(decoded, version.Newest())
		}

		if err == nil {
			continue
		}

		failures++

		for i, text := 0, err.Error(); i+6 <= len(text); i++ {
			if pieces[text[i:i+6]] {
				t.Fatalf("seed %d: the error carries a piece of a secret", seed)
			}
		}
	}

	if failures < 300 {
		t.Errorf("only %d of 1000 mangled bundles fail: the test mangles too little", failures)
	}
}

func secretValues(bundle *secrets.Bundle) []string {
	encoded := func(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

	return []string{
		bundle.Cluster.Secret, bundle.Cluster.ID, bundle.Secrets.BootstrapToken, bundle.Secrets.SecretboxEncryptionSecret, bundle.TrustdInfo.Token,
		// What all keys begin with is no secret.
		encoded(bundle.Certs.OS.Key)[48:], encoded(bundle.Certs.K8s.Key)[48:], encoded(bundle.Certs.Etcd.Key)[48:],
		encoded(bundle.Certs.K8sAggregator.Key)[48:], encoded(bundle.Certs.K8sServiceAccount.Key)[48:],
	}
}

// mangle cuts, swaps, doubles and overwrites pieces.
func mangle(random *rand.Rand, data []byte) []byte {
	const noise = "{}[]:\n -&*!|>'\"%@`\x00\xffaZ9="

	out := bytes.Clone(data)

	for range 1 + random.IntN(3) {
		from := random.IntN(len(out))
		to := min(len(out), from+1+random.IntN(40))

		switch random.IntN(4) {
		case 0:
			out = append(out[:from:from], out[to:]...)
		case 1:
			out = append(out[:to:to], out[from:]...)
		case 2:
			for i := from; i < to; i++ {
				out[i] = noise[random.IntN(len(noise))]
			}
		default:
			lines := bytes.Split(out, []byte("\n"))
			i, j := random.IntN(len(lines)), random.IntN(len(lines))
			lines[i], lines[j] = lines[j], lines[i]
			out = bytes.Join(lines, []byte("\n"))
		}

		if len(out) == 0 {
			return []byte("x")
		}
	}

	return out
}

func TestCheck(t *testing.T) {
	t.Parallel()

	const empty = `secrets bundle: cluster.id is missing
secrets bundle: cluster.secret is missing
secrets bundle: trustdinfo.token is missing
secrets bundle: secrets.bootstraptoken is missing
secrets bundle: secrets.secretboxencryptionsecret (or secrets.aescbcencryptionsecret, in clusters older than Talos 1.3) is missing
secrets bundle: certs is missing`

	tests := map[string]struct {
		change func(*testing.T, *secrets.Bundle)
		want   string
	}{
		"complete": {change: func(*testing.T, *secrets.Bundle) {}},
		"AES-CBC only": {change: func(_ *testing.T, b *secrets.Bundle) {
			b.Secrets.AESCBCEncryptionSecret, b.Secrets.SecretboxEncryptionSecret = b.Secrets.SecretboxEncryptionSecret, ""
		}},
		"both encryption keys": {change: func(_ *testing.T, b *secrets.Bundle) {
			b.Secrets.AESCBCEncryptionSecret = b.Secrets.SecretboxEncryptionSecret
		}},
		"an authority of RSA": {change: func(t *testing.T, b *secrets.Bundle) {
			b.Certs.K8s.Crt, b.Certs.K8s.Key = authority(t, x509.RSA(true), x509.Bits(2048))
		}},
		"a service account key in PKCS 8": {change: func(t *testing.T, b *secrets.Bundle) { b.Certs.K8sServiceAccount.Key = pkcs8Key(t) }},
		"nothing":                         {change: func(_ *testing.T, b *secrets.Bundle) { *b = secrets.Bundle{} }, want: empty},
		"no encryption key":               {change: func(_ *testing.T, b *secrets.Bundle) { b.Secrets.SecretboxEncryptionSecret = "" }, want: "secrets bundle: secrets.secretboxencryptionsecret (or secrets.aescbcencryptionsecret, in clusters older than Talos 1.3) is missing"},
		"no etcd":                         {change: func(_ *testing.T, b *secrets.Bundle) { b.Certs.Etcd = nil }, want: "secrets bundle: certs.etcd is missing"},
		"no etcd key, as a worker has it": {change: func(_ *testing.T, b *secrets.Bundle) { b.Certs.Etcd.Key = nil }, want: "secrets bundle: certs.etcd.key is missing"},
		"no Kubernetes certificate":       {change: func(_ *testing.T, b *secrets.Bundle) { b.Certs.K8s.Crt = nil }, want: "secrets bundle: certs.k8s.crt is missing"},
		"certificate cut short":           {change: func(_ *testing.T, b *secrets.Bundle) { b.Certs.OS.Crt = b.Certs.OS.Crt[:80] }, want: "secrets bundle: certs.os.crt is not a PEM certificate"},
		"key where the certificate belongs": {
			change: func(_ *testing.T, b *secrets.Bundle) { b.Certs.OS.Crt = b.Certs.OS.Key }, want: "secrets bundle: certs.os.crt is not a PEM certificate",
		},
		"redacted key":           {change: func(_ *testing.T, b *secrets.Bundle) { b.Certs.OS.Key = []byte("******") }, want: "secrets bundle: certs.os.key is not a PEM private key of a kind that Talos reads (RSA, ECDSA, Ed25519)"},
		"another pair's key":     {change: func(_ *testing.T, b *secrets.Bundle) { b.Certs.K8sAggregator.Key = b.Certs.K8s.Key }, want: "secrets bundle: certs.k8saggregator.key does not belong to the certificate"},
		"no service account key": {change: func(_ *testing.T, b *secrets.Bundle) { b.Certs.K8sServiceAccount = nil }, want: "secrets bundle: certs.k8sserviceaccount.key is missing"},
		"service account certificate": {
			change: func(_ *testing.T, b *secrets.Bundle) { b.Certs.K8sServiceAccount.Key = b.Certs.K8s.Crt },
			want:   "secrets bundle: certs.k8sserviceaccount.key is not a PEM private key of a kind that Talos reads (RSA, ECDSA, Ed25519)",
		},
		"malformed bootstrap token": {change: func(_ *testing.T, b *secrets.Bundle) { b.Secrets.BootstrapToken = "hunter2" }, want: "secrets bundle: secrets.bootstraptoken must be 6 and 16 lower-case letters and digits with a dot between"},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			bundle := newBundle(t)
			tc.change(t, bundle)

			if diff := cmp.Diff(tc.want, errorText(secrets.Check(bundle, version.Newest()))); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}

	if secrets.Check(nil, version.Newest()) == nil || secrets.Check(newBundle(t), version.Contract{}) == nil {
		t.Error("a missing bundle or contract is accepted")
	}
}
