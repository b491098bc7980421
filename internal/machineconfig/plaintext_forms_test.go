// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// TestNamedSecrets finds variables in every form that Talos has for them, also in kinds that no patch can bring yet.
func TestNamedSecrets(t *testing.T) {
	t.Parallel()

	patch, err := merge.Load([]byte(`
cluster: {apiServer: {env: {ETCD_KEY: s3cr3t}}}
---
apiVersion: v1alpha1
kind: EnvironmentConfig
variables: {my.secret: s3cr3t, MONKEY: x}
---
apiVersion: v1alpha1
kind: ExtensionServiceConfig
name: ups
environment: [UPS_HOST=h, UPS_PASSWORD=s3cr3t, SECRET]
---
apiVersion: v1alpha1
kind: SysctlConfig
params: {net.key: s3cr3t}
---
apiVersion: v1alpha1
kind: KubeCredentialProviderConfig
configuration: {providers: [{name: p, env: [{name: AWS_REGION, value: x}, {name: REGISTRY_TOKEN, value: s3cr3t}, {name: OTHER_TOKEN, value: ''}]}]}
---
apiVersion: v1alpha1
kind: KubeStaticPodConfig
name: a
pod: {spec: {containers: [{name: main-key, env: [{name: DB_PASSWORD, value: s3cr3t}, {name: API_KEY, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]}}
`))
	if err != nil {
		t.Fatal(err)
	}

	var got []string

	for _, notice := range namedSecrets(patch, nil) {
		at, _, _ := strings.Cut(notice, " says")
		got = append(got, at)

		if strings.Contains(notice, "s3cr3t") {
			t.Errorf("the notice shows the value: %s", notice)
		}
	}

	want := []string{
		"Config: /cluster/apiServer/env/ETCD_KEY: the name of the variable ETCD_KEY",
		"EnvironmentConfig: /variables/my.secret: the name of the variable my.secret",
		"ExtensionServiceConfig/ups: /environment/1: the name of the variable UPS_PASSWORD",
		"KubeCredentialProviderConfig: /configuration/providers/0/env/1/value: the name of the variable REGISTRY_TOKEN",
		"KubeStaticPodConfig/a: /pod/spec/containers/0/env/0/value: the name of the variable DB_PASSWORD",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSaysSecret is the one test of names, of warnings and of what convert moves.
func TestSaysSecret(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]bool{
		"TS_AUTHKEY": true, "OPENAI_APIKEY": true, "DB_PASS": true, "MYSQLPASS": true, "REDIS_PASSWD": true, "GCP_CREDENTIALS": true,
		"apiKey": true, "my.credential": true, "PGPASSWORD": true, "API_TOKEN": true, "AWS_SECRET_ACCESS_KEY": true,
		"": false, "___": false, "KEYBOARD": false, "MONKEY": false, "TLS_BYPASS": false, "COMPASS": false, "PASS_THROUGH": false,
		"CREDENTIALS_FILE": false, "PASSENGER": false, "TOKENS": false, "http_proxy": false,
	} {
		if got := saysSecret(name); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
}

// TestPlainSecretsOfModernKinds: kinds that no patch can bring yet are looked into as well.
func TestPlainSecretsOfModernKinds(t *testing.T) {
	t.Parallel()

	const head = "apiVersion: v1alpha1\nkind: "

	tests := map[string]struct{ document, want string }{
		"manifest of a Secret":  {"KubeInlineManifestConfig\nname: m\nmanifest: '{kind: Secret, data: {a: s3cr3t}}'", "/manifest"},
		"manifest":              {"KubeInlineManifestConfig\nname: m\nmanifest: '{kind: ConfigMap, data: {a: b}}'", ""},
		"header of a login":     {"KubeExternalManifestConfig\nname: m\nurl: https://a.example.com\nheaders: {Authorization: s3cr3t}", "/headers/Authorization"},
		"GitLab's header":       {"KubeExternalManifestConfig\nname: m\nurl: https://a.example.com\nheaders: {PRIVATE-TOKEN: s3cr3t}", "/headers/PRIVATE-TOKEN"},
		"header with a key":     {"KubeExternalManifestConfig\nname: m\nurl: https://a.example.com\nheaders: {x-api-key: s3cr3t}", "/headers/x-api-key"},
		"header with a token":   {"KubeExternalManifestConfig\nname: m\nurl: https://a.example.com\nheaders: {X-Auth-Token: s3cr3t}", "/headers/X-Auth-Token"},
		"header of a service":   {"KubeExternalManifestConfig\nname: m\nurl: https://a.example.com\nheaders: {X-Gitlab-Deploy-Token: s3cr3t}", "/headers/X-Gitlab-Deploy-Token"},
		"login of containerd":   {"CRICustomizationConfig\nname: m\ncontent: |\n  [plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"ghcr.io\".auth]\n    username = \"u\"\n    password = \"s3cr3t\"", "/content"},
		"trust of containerd":   {"CRICustomizationConfig\nname: m\ncontent: |\n  [plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"ghcr.io\".tls]\n    insecure_skip_verify = true", ""},
		"cookie":                {"KubeExternalManifestConfig\nname: m\nurl: https://a.example.com\nheaders: {Cookie: s3cr3t}", "/headers/Cookie"},
		"private key":           {"EtcFileConfig\nname: a\ncontents: |\n  -----BEGIN PRIVATE KEY-----\n  s3cr3t\n", "/contents"},
		"private key of SSH":    {"EtcFileConfig\nname: a\ncontents: '{\"key\":\"-----BEGIN OPENSSH PRIVATE KEY-----\\ns3cr3t\"}'", "/contents"},
		"certificate":           {"EtcFileConfig\nname: a\ncontents: |\n  -----BEGIN CERTIFICATE-----\n  abc\n", ""},
		"public key":            {"EtcFileConfig\nname: a\ncontents: |\n  -----BEGIN PUBLIC KEY-----\n  abc\n", ""},
		"header":                {"KubeExternalManifestConfig\nname: m\nurl: https://a.example.com\nheaders: {X-Site: lab}", ""},
		"address with a user":   {"KubeExternalManifestConfig\nname: m\nurl: https://s3cr3t@a.example.com", "/url"},
		"file":                  {"EtcFileConfig\nname: a\ncontents: 'url = https://u:s3cr3t@a.example.com'", "/contents"},
		"variables of a list":   {"ExtensionServiceConfig\nname: ups\nenvironment: ['PROXY=http://u:s3cr3t@a.example.com']", "/environment/0"},
		"credentials by design": {"HCloudVIPConfig\nname: 10.0.0.1\nlink: eth0\napiToken: s3cr3t", ""},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			patch, err := merge.Load([]byte(head + tc.document))
			if err != nil {
				t.Fatal(err)
			}

			got := ""
			for _, found := range plainSecrets(patch, nil) {
				got += found.field

				if strings.Contains(found.err.Error(), "s3cr3t") {
					t.Errorf("the error shows the value: %v", found.err)
				}
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
