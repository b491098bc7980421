// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	auditvalidation "k8s.io/apiserver/pkg/apis/audit/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	podsecurityapi "k8s.io/pod-security-admission/admission/api"
	podsecurityv1 "k8s.io/pod-security-admission/admission/api/v1"
	podsecurityvalidation "k8s.io/pod-security-admission/admission/api/validation"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// The compilers take long to make, and most configs have no expression.
var (
	claimCompiler = sync.OnceValue(authenticationcel.NewDefaultCompiler)
	matchCompiler = sync.OnceValue(authorizationcel.NewDefaultCompiler)
)

// serverConfigs fills in the API server's defaults and converts to its own types.
var serverConfigs = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)

	return scheme
})

// checkKind checks the head of an embedded config that Talos hands on as it is.
func checkKind(object map[string]any, kind string, apiVersions ...string) []mistake {
	var mistakes []mistake

	if apiVersion, _ := object["apiVersion"].(string); !slices.Contains(apiVersions, apiVersion) {
		mistakes = append(mistakes, mistake{"/apiVersion", fmt.Errorf("must be %s", apiVersions[0])})
	}

	if object["kind"] != kind {
		mistakes = append(mistakes, mistake{"/kind", fmt.Errorf("must be %s", kind)})
	}

	return mistakes
}

// checkAuditPolicy checks what Talos, which refuses unknown fields, and the API server check at their start.
func checkAuditPolicy(object map[string]any) []mistake {
	mistakes := checkKind(object, "Policy", auditv1.SchemeGroupVersion.String())

	policy, wrong := decodeEmbedded[auditv1.Policy](object)
	if mistakes = append(mistakes, wrong...); policy == nil {
		return mistakes
	}

	if len(policy.Rules) == 0 {
		mistakes = append(mistakes, mistake{"/rules", errors.New("must have a rule: the API server does not start with a policy that has none")})
	}

	internal := &audit.Policy{}
	if err := auditv1.Convert_v1_Policy_To_audit_Policy(policy, internal, nil); err != nil {
		return append(mistakes, mistake{err: err})
	}

	return append(mistakes, mistakesOf(auditvalidation.ValidatePolicy(internal))...)
}

// checkPodSecurity checks what the admission plugin checks at the start of the API server.
func checkPodSecurity(object map[string]any) []mistake {
	const group = "pod-security.admission.config.k8s.io/"

	mistakes := checkKind(object, "PodSecurityConfiguration", group+"v1", group+"v1beta1", group+"v1alpha1")

	configuration, wrong := decodeEmbedded[podsecurityv1.PodSecurityConfiguration](object)
	if mistakes = append(mistakes, wrong...); configuration == nil {
		return mistakes
	}

	podsecurityv1.SetDefaults_PodSecurityDefaults(&configuration.Defaults)

	internal := &podsecurityapi.PodSecurityConfiguration{}
	if err := podsecurityv1.Convert_v1_PodSecurityConfiguration_To_api_PodSecurityConfiguration(configuration, internal, nil); err != nil {
		return append(mistakes, mistake{err: err})
	}

	return append(mistakes, mistakesOf(podsecurityvalidation.ValidatePodSecurityConfiguration(internal))...)
}

// authenticationCheck checks what the API server checks at its start. Talos sets apiVersion and kind, whatever stands there. Tokens of
// the cluster's own service accounts are not for an authenticator of JWTs to accept.
func authenticationCheck(documents []config.Document) func(map[string]any) []mistake {
	return func(object map[string]any) []mistake {
		configuration, mistakes := decodeEmbedded[apiserverv1beta1.AuthenticationConfiguration](object)
		if configuration == nil {
			return mistakes
		}

		if anonymous := configuration.Anonymous; anonymous != nil && anonymous.Enabled && len(anonymous.Conditions) == 0 {
			mistakes = append(mistakes, mistake{"/anonymous", errors.New("lets requests without a login in on every path: name single paths, such as " +
				"conditions: [{path: /livez}], or set enabled to false")})
		}

		serverConfigs().Default(configuration)

		internal := &apiserver.AuthenticationConfiguration{}
		if err := serverConfigs().Convert(configuration, internal, nil); err != nil {
			return append(mistakes, mistake{err: err})
		}

		var compiler authenticationcel.Compiler
		if len(internal.JWT) > 0 {
			compiler = claimCompiler()
		}

		return append(mistakes, mistakesOf(apiservervalidation.ValidateAuthenticationConfiguration(compiler, internal, ownIssuers(documents)))...)
	}
}

func ownIssuers(documents []config.Document) []string {
	accounts, ok := documentOf[*k8s.KubeServiceAccountConfigV1Alpha1](documents)
	if !ok {
		return nil
	}

	var issuers []string

	for _, issuer := range append(slices.Clone(accounts.ServiceAccepted.Issuers), accounts.ServiceIssuer.IssuerURL) {
		if issuer.URL != nil {
			issuers = append(issuers, issuer.String())
		}
	}

	return issuers
}

// checkAuthorizerWebhook checks what the API server checks at its start, but for the file with the connection, which is on the machine.
func checkAuthorizerWebhook(object map[string]any) []mistake {
	webhook, mistakes := decodeEmbedded[apiserverv1.WebhookConfiguration](object)
	if webhook == nil {
		return mistakes
	}

	if webhook.ConnectionInfo.Type == apiserver.AuthorizationWebhookConnectionInfoTypeInCluster {
		mistakes = append(mistakes, mistake{"/connectionInfo/type", errors.New("is InClusterConfig, which an API server does not take for its own requests: " +
			"use KubeConfigFile, and set kubeConfigFile to a file on the machine")})
	}

	if file := webhook.ConnectionInfo.KubeConfigFile; webhook.ConnectionInfo.Type == apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile {
		if file == nil || !path.IsAbs(*file) {
			mistakes = append(mistakes, mistake{"/connectionInfo/kubeConfigFile", errors.New("must be the absolute path of a file on the machine")})
		}

		webhook.ConnectionInfo = apiserverv1.WebhookConnectionInfo{Type: apiserver.AuthorizationWebhookConnectionInfoTypeInCluster}
	}

	// The defaults belong to the whole configuration.
	whole := &apiserverv1.AuthorizationConfiguration{Authorizers: []apiserverv1.AuthorizerConfiguration{{Type: string(apiserver.TypeWebhook), Webhook: webhook}}}
	serverConfigs().Default(whole)

	internal := &apiserver.AuthorizationConfiguration{}
	if err := serverConfigs().Convert(whole, internal, nil); err != nil {
		return append(mistakes, mistake{err: err})
	}

	var compiler authorizationcel.Compiler
	if len(webhook.MatchConditions) > 0 {
		compiler = matchCompiler()
	}

	return append(mistakes, mistakesOf(apiservervalidation.ValidateWebhookConfiguration(compiler, nil, internal.Authorizers[0].Webhook))...)
}

// doubleAuthorizers finds authorizers that the API server takes once, and names that it does not take. Talos adds Node and RBAC only where
// they are missing.
func doubleAuthorizers(documents []config.Document) []finding {
	var findings []finding

	seen := map[string]string{}
	look := func(document merge.ID, pointer, kind, name string) {
		if first, double := seen[kind]; double && kind != string(apiserver.TypeWebhook) {
			findings = append(findings, finding{
				document: document, field: pointer + "/type",
				err: fmt.Errorf("an authorizer of type %s is there already, named %s, and the API server takes one: remove this one", kind, first),
			})
		}

		seen[kind] = name

		if faults := validation.IsDNS1123Subdomain(name); name != "" && len(faults) > 0 {
			findings = append(findings, finding{document: document, field: pointer + "/name", err: errors.New("the API server takes only names of lower case letters, digits, '-' and '.'")})
		}
	}

	_, cluster := legacyOf(documents)
	if cluster.APIServerConfig != nil {
		for i, authorizer := range cluster.APIServerConfig.AuthorizationConfigConfig {
			look(merge.ID{Kind: merge.LegacyKind}, fmt.Sprintf("/cluster/apiServer/authorizationConfig/%d", i), authorizer.AuthorizerType, authorizer.AuthorizerName)
		}
	}

	for _, document := range documents {
		if authorizer, ok := document.(*k8s.KubeAuthorizerConfigV1Alpha1); ok {
			look(merge.IDOf(document), "", authorizer.AuthorizerType, authorizer.MetaName)
		}
	}

	return findings
}
