// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoadErrors: what people get wrong, and what they are told. No error shows a secret.
func TestLoadErrors(t *testing.T) {
	const notAScalar = "machine: {token: [" + secretText + "]}"

	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)

	tests := map[string]struct{ patch, want string }{
		"nothing":      {patch: "", want: "the patch is empty: want at least one Talos document"},
		"only null":    {patch: "---\n---\n# nothing\n", want: "the patch is empty: want at least one Talos document"},
		"a JSON patch": {patch: `[{"op": "add", "path": "/machine"}]`, want: "document 0: a list is no Talos document; JSON patches (RFC 6902) are not supported, write the fields to change as a document (line 1)"},
		"plain text":   {patch: "hello", want: "document 0: want a Talos document, found text (line 1)"},
		"unknown kind": {patch: doc("KubeletConf", "", ""), want: "document 0 (KubeletConf): unknown kind: this version of Ichor knows no such Talos document; did you mean KubeletConfig? (line 1)"},
		"kind of another API": {
			patch: "apiVersion: v1\nkind: Secret\nname: x",
			want:  "document 0 (Secret/x): unknown apiVersion; set it to v1alpha1 (line 1)",
		},
		"kind is missing":       {patch: "apiVersion: v1alpha1\nname: x", want: "document 0: kind is missing; set apiVersion and kind, or machine/cluster for the legacy document (line 1)"},
		"apiVersion is missing": {patch: "kind: KubeletConfig", want: "document 0 (KubeletConfig): apiVersion is missing; set it to v1alpha1 (line 1)"},
		"kind is no name":       {patch: "apiVersion: v1alpha1\nkind: 'x: y'", want: "document 0 (x: y): unknown kind (line 1)"},
		"second document": {
			patch: docs(doc("KubeletConfig", "", "image: x"), doc("Foo", "bar", "")),
			want:  "document 1 (Foo/bar): unknown kind: this version of Ichor knows no such Talos document (line 5)",
		},
		"mistyped field":        {patch: doc("KubeletConfig", "", "imagee: x"), want: `document 0 (KubeletConfig): /imagee: unknown field; did you mean "image"? (line 3)`},
		"field in another case": {patch: doc("KubeletConfig", "", "extraargs: {}"), want: `document 0 (KubeletConfig): /extraargs: unknown field; did you mean "extraArgs"? (line 3)`},
		"unknown field":         {patch: doc("SysctlConfig", "", "sysctls: {}"), want: "document 0 (SysctlConfig): /sysctls: unknown field; the fields here are params (line 3)"},
		"unknown legacy field":  {patch: "machine: {kubelet: {zzz: 1}}", want: "document 0 (Config): /machine/kubelet/zzz: unknown field; the fields here are clusterDNS, credentialProviderConfig, defaultRuntimeSeccompProfileEnabled, disableManifestsDirectory, extraArgs, extraConfig, extraMounts, image, nodeIP, registerWithFQDN, skipNodeRegistration (line 1)"},
		"unknown field below a list": {
			patch: "machine: {network: {interfaces: [{interface: eth0}, {mtuu: 1}]}}",
			want:  `document 0 (Config): /machine/network/interfaces/1/mtuu: unknown field; did you mean "mtu"? (line 1)`,
		},
		"unknown field with a secret":    {patch: doc("RegistryAuthConfig", "x", "passwrd: "+secretText), want: `document 0 (RegistryAuthConfig/x): /passwrd: unknown field; did you mean "password"? (line 4)`},
		"doubled field":                  {patch: doc("KubePrismConfig", "", "port: 1\nport: 2"), want: `document 0 (KubePrismConfig): /port: the key "port" is there twice; keep one of them (line 4)`},
		"doubled key of a map":           {patch: doc("KubeNodeConfig", "", "labels: {a: x, a: y}"), want: `document 0 (KubeNodeConfig): /labels/a: the key "a" is there twice; keep one of them (line 3)`},
		"doubled key in free-form value": {patch: doc("KubeletConfig", "", "config: {a: {b: 1, b: 2}}"), want: `document 0 (KubeletConfig): /config/a/b: the key "b" is there twice; keep one of them (line 3)`},
		"map for a list":                 {patch: doc("RegistryMirrorConfig", "x", "endpoints: {url: y}"), want: "document 0 (RegistryMirrorConfig/x): /endpoints: want a list, found a map (line 4)"},
		"text for a list":                {patch: "machine: {certSANs: a}", want: "document 0 (Config): /machine/certSANs: want a list, found text (line 1)"},
		"list for a map":                 {patch: doc("KubeNodeConfig", "", "labels: [a]"), want: "document 0 (KubeNodeConfig): /labels: want a map, found a list (line 3)"},
		"text for a struct":              {patch: "machine: worker", want: "document 0 (Config): /machine: want a map of fields, found text (line 1)"},
		"list for a scalar":              {patch: notAScalar, want: "document 0 (Config): /machine/token: want text, found a list (line 1)"},
		"map for a free-form list":       {patch: doc("KubeletConfig", "", "config: [a]"), want: "document 0 (KubeletConfig): /config: want a map, found a list (line 3)"},
		"text for a number":              {patch: doc("KubePrismConfig", "", "port: http"), want: "document 0 (KubePrismConfig): /port: want a whole number, found text that is not (line 3)"},
		"too large a number":             {patch: "machine: {network: {interfaces: [{vlans: [{vlanId: 70000}]}]}}", want: "document 0 (Config): /machine/network/interfaces/0/vlans/0/vlanId: want a whole number from 0 to 65535, found a whole number that is not (line 1)"},
		"text for a boolean":             {patch: doc("LinkConfig", "eth0", "up: maybe"), want: "document 0 (LinkConfig/eth0): /up: want true or false, found text that is not (line 4)"},
		"number for a duration":          {patch: doc("TimeSyncConfig", "", "bootTimeout: 30"), want: `document 0 (TimeSyncConfig): /bootTimeout: want a duration such as "1m30s", found a whole number that is not (line 3)`},
		"bad size":                       {patch: doc("UserVolumeConfig", "x", "provisioning: {minSize: big}"), want: `document 0 (UserVolumeConfig/x): /provisioning/minSize: wrong value "big": want a size such as 10GiB or 500MB (line 4)`},
		"bad percentage":                 {patch: doc("UserVolumeConfig", "x", "provisioning: {maxSize: 200%}"), want: `document 0 (UserVolumeConfig/x): /provisioning/maxSize: wrong value "200%": want a size such as 10GiB or 500MB, or a share of the disk between 0 and 100 percent such as 50% (line 4)`},
		"unknown enum value":             {patch: doc("NetworkDefaultActionConfig", "", "ingress: drop"), want: `document 0 (NetworkDefaultActionConfig): /ingress: wrong value "drop": want one of accept, block (line 3)`},
		"boolean for an enum":            {patch: doc("HostnameConfig", "", "auto: false"), want: `document 0 (HostnameConfig): /auto: wrong value "false": want one of "off", talos-addr, stable (in quotes, which keep a word from being read as true or false) (line 3)`},
		"bad address":                    {patch: doc("KubeNetworkConfig", "", "podSubnets: [10.0.0.0]"), want: `document 0 (KubeNetworkConfig): /podSubnets/0: wrong value "10.0.0.0": the length of the prefix is missing: want an address and the length of its prefix, such as 10.0.0.0/24 or 2001:db8::/64 (line 3)`},
		"port range as text":             {patch: doc("NetworkRuleConfig", "x", `portSelector: {ports: ["http"]}`), want: `document 0 (NetworkRuleConfig/x): /portSelector/ports/0: wrong value "http": want a port such as 443, without quotes, or a range such as 8000-8100 (line 4)`},
		"port in quotes":                 {patch: doc("NetworkRuleConfig", "x", `portSelector: {ports: ["443"]}`), want: `document 0 (NetworkRuleConfig/x): /portSelector/ports/0: wrong value "443": a single port is a number: write 443 without quotes (line 4)`},
		"number in quotes":               {patch: doc("KubePrismConfig", "", `port: "7445"`), want: "document 0 (KubePrismConfig): /port: want a whole number, found text: write it without quotes (line 3)"},
		"word near another":              {patch: doc("BondConfig", "bond0", "bondMode: activebackup"), want: `document 0 (BondConfig/bond0): /bondMode: wrong value "activebackup": want one of balance-rr, active-backup, balance-xor, broadcast, 802.3ad, balance-tlb, balance-alb; did you mean active-backup? (line 4)`},
		"legacy name of a field":         {patch: doc("BondConfig", "bond0", "mode: 802.3ad"), want: `document 0 (BondConfig/bond0): /mode: unknown field; did you mean "bondMode"? (line 4)`},
		"list in an argument":            {patch: doc("KubeletConfig", "", "extraArgs: {v: {a: b}}"), want: "document 0 (KubeletConfig): /extraArgs/v: want text or a list of texts, found a map (line 3)"},
		"bad URL with a password":        {patch: doc("KmsgLogConfig", "x", "url: 'tcp://user:"+secretText+"@ho st:%zz'"), want: "document 0 (KmsgLogConfig/x): /url: want a URL such as https://host:port/path (line 4)"},
		"certificate that is not base64": {patch: "machine: {ca: {crt: '-----BEGIN', key: " + secretText + "}}", want: "document 0 (Config): /machine/ca: want base64 of PEM text (line 1)"},
		"bad secret":                     {patch: doc("RegistryAuthConfig", "x", "password: {a: "+secretText+"}"), want: "document 0 (RegistryAuthConfig/x): /password: want text, found a map (line 4)"},
		"null in a list of objects":      {patch: "machine: {network: {interfaces: [null]}}", want: "document 0 (Config): /machine/network/interfaces/0: null is no element of this list; remove it (line 1)"},
		"null in a map of objects":       {patch: "machine: {registries: {mirrors: {docker.io: null}}}", want: "document 0 (Config): /machine/registries/mirrors/docker.io: null is no value here; to remove the entry use $patch: delete (line 1)"},
		"a number as a key":              {patch: doc("KubeletConfig", "", "config: {1: x}"), want: "document 0 (KubeletConfig): /config/1: a key must be a string; quote it (line 3)"},
		"a list as a key":                {patch: doc("KubeletConfig", "", "config: {[a]: x}"), want: "document 0 (KubeletConfig): /config: a key must be a string (line 3)"},
		"binary":                         {patch: doc("KubeletConfig", "", "config: {a: !!binary aGk=}"), want: "document 0 (KubeletConfig): /config/a: binary values are not supported here; write a string (line 3)"},
		"nested too deeply":              {patch: doc("KubeletConfig", "", "config: {a: "+deep+"}"), want: "document 0 (KubeletConfig): /config/a" + strings.Repeat("/0", 127) + ": the document is nested too deeply (line 3)"},
		"unknown $patch":                 {patch: doc("KubeNodeConfig", "", "labels: {$patch: replace}"), want: `document 0 (KubeNodeConfig): /labels/$patch: the only $patch is "delete" (line 3)`},
		"delete below a list":            {patch: "machine: {network: {interfaces: [{interface: eth0, vip: {$patch: delete}}]}}", want: "document 0 (Config): /machine/network/interfaces/0/vip: a field inside a list element cannot be deleted; delete the element, or use a deletion with a path (line 1)"},
		"delete of some element":         {patch: "machine: {network: {interfaces: [{$patch: delete}]}}", want: "document 0 (Config): /machine/network/interfaces/0: say which element to delete: add the field that tells it, such as its name (line 1)"},
		"delete of an unknown field":     {patch: doc("KubeNodeConfig", "", "lables: {$patch: delete}"), want: `document 0 (KubeNodeConfig): /lables: unknown field; did you mean "labels"?`},
		"delete of the legacy document":  {patch: "version: v1alpha1\n$patch: delete", want: "document 0 (Config): the legacy document cannot be deleted as a whole; delete fields of it"},
		"delete without a name":          {patch: doc("LinkConfig", "", "$patch: delete"), want: "document 0 (LinkConfig): name is missing: say which LinkConfig to delete"},
		"delete of the name":             {patch: doc("LinkConfig", "", "name: {$patch: delete}"), want: "document 0 (LinkConfig): /name: what identifies the document cannot be deleted; delete the document"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Load([]byte(test.patch))
			if err == nil {
				t.Fatal("want an error")
			}

			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}

			if strings.Contains(err.Error(), secretText) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

// TestLoadBrokenYAML: the parser's own words may change, what is around them may not.
func TestLoadBrokenYAML(t *testing.T) {
	for name, patch := range map[string]string{
		"unclosed":       "machine: [",
		"tabs":           "machine:\n\ttype: worker",
		"unknown anchor": "machine: *x",
		"a loop":         "machine: &a {nodeLabels: *a}",
		"bad escape":     `{"machine": "\q"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load([]byte(patch))

			var located *Error
			if !errors.As(err, &located) || located.Index != 0 {
				t.Errorf("got %v, want an error that names document 0", err)
			}
		})
	}
}

func TestErrorCanBeTakenApart(t *testing.T) {
	_, err := Load([]byte(docs("machine: {type: worker}", doc("LinkConfig", "eth0", "mtuu: 1"))))

	var got *Error
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want an *Error", err)
	}

	got.Err = nil

	want := &Error{Index: 1, ID: ID{Kind: "LinkConfig", Name: "eth0"}, Pointer: "/mtuu", Line: 6}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAliasesThatExplode(t *testing.T) {
	var b strings.Builder

	b.WriteString("a0: &a0 {x: y}\n")

	for i := 1; i < 12; i++ {
		b.WriteString("a" + itoa(i) + ": &a" + itoa(i) + " [")
		b.WriteString(strings.TrimSuffix(strings.Repeat("*a"+itoa(i-1)+", ", 10), ", ") + "]\n")
	}

	text := doc("KubeletConfig", "", "config:\n  "+strings.ReplaceAll(b.String(), "\n", "\n  "))

	_, err := Load([]byte(text))
	if err == nil || !strings.Contains(err.Error(), "aliases expand to too much") {
		t.Errorf("got %v, want an error about aliases", err)
	}
}

func TestDocuments(t *testing.T) {
	p := mustLoad(t, docs("null", doc("LinkConfig", "eth0", "mtu: 1"), doc("LinkConfig", "eth1", "$patch: delete"),
		"machine: {sysctls: {a/b: {$patch: delete}}, network: {interfaces: [{interface: eth0, $patch: delete}]}}"))

	type summary struct {
		Index     int
		ID        string
		Merges    bool
		Deletions []string
	}

	var got []summary
	for _, d := range p.Documents() {
		got = append(got, summary{Index: d.Index, ID: d.ID.String(), Merges: d.Document != nil, Deletions: d.Deletions})
	}

	want := []summary{
		{Index: 1, ID: "LinkConfig/eth0", Merges: true},
		{Index: 2, ID: "LinkConfig/eth1", Deletions: []string{""}},
		{Index: 3, ID: "Config", Deletions: []string{"/machine/sysctls/a~1b", "/machine/network/interfaces/interface=eth0"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestUnknownMergeRuleIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"a merger":             {value: struct{ List ownMerge }{}, want: "list: type merge.ownMerge has a merge rule of its own that is not known here"},
		"a list that reads":    {value: struct{ List ownRead }{}, want: "list: type merge.ownRead reads YAML by its own rule, so that how to merge it is not known here"},
		"an interface":         {value: struct{ Any any }{}, want: "any: merging does not support the type interface {}"},
		"keys not of strings":  {value: struct{ M map[int]string }{}, want: "m: type map[int]string has keys that are not strings, which merging does not support"},
		"a type within itself": {value: recursive{}, want: "next: type merge.recursive contains itself, which merging does not support"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := planFor(typeOf(test.value))
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

type ownMerge []string

func (*ownMerge) Merge(any) error { return nil }

type ownRead []string

func (*ownRead) UnmarshalYAML(func(any) error) error { return nil }

type recursive struct{ Next *recursive }

// FuzzMerge looks for input that makes loading, merging or listing fail in another way than with an error, and for changes
// that do not tell the difference.
func FuzzMerge(f *testing.F) {
	for _, text := range benchPatches {
		f.Add([]byte(text), []byte(text))
	}

	f.Add([]byte("machine: {type: worker, sysctls: {a: b}}"), []byte("machine: {sysctls: {a: {$patch: delete}}, install: {disk: null}}"))
	f.Add([]byte(doc("UserVolumeConfig", "x", longhorn)), []byte(doc("UserVolumeConfig", "x", "$patch: delete")))
	f.Add([]byte("cluster: {controlPlane: {endpoint: 'https://a'}}"), []byte("cluster: {controlPlane: {endpoint: ''}, inlineManifests: [{name: a}]}"))
	f.Add([]byte(doc("KubeletConfig", "", "config: {a: [1, {b: c}], d: 2026-01-01}")), []byte(doc("KubeletConfig", "", "config: {a: [2], e: &x {y: z}, f: {<<: *x}}")))

	f.Fuzz(func(t *testing.T, base, patch []byte) {
		first, err := Load(base)
		if err != nil {
			return
		}

		second, err := Load(patch)
		if err != nil {
			return
		}

		c := &Config{}
		if err := c.Apply(first, nil); err != nil {
			return
		}

		replayed := leavesByDocument(c)

		err = c.Apply(second, func(change Change) {
			if replayed[change.ID] == nil {
				replayed[change.ID] = map[string]string{}
			}

			replay(t, replayed[change.ID], change)
		})
		if err != nil {
			return
		}

		after := leavesByDocument(c)

		for id, leaves := range replayed {
			if len(leaves) > 0 || len(after[id]) > 0 {
				if diff := cmp.Diff(after[id], leaves); diff != "" {
					t.Errorf("%s: (-after +replayed)\n%s", id, diff)
				}
			}
		}

		if _, err := c.Encode(); err != nil {
			t.Errorf("what was loaded cannot be written: %v", err)
		}
	})
}
