// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// embedded is the config of another program inside the machine's: a value that machinery does not look into. Talos accepts it whatever
// it says. Then the program does not start, or it does without what it does not know, and nothing on the Machine tells why.
type embedded struct {
	document merge.ID
	pointer  string
	object   map[string]any
	check    func(map[string]any) []mistake
}

// mistake is what is wrong with an embedded config.
type mistake struct {
	// field is a JSON Pointer within the config, "" when it is not known exactly.
	field string
	err   error
}

// podSecurity is the name of the one admission plugin whose config is checked: the only one that Talos configures itself.
const podSecurity = "PodSecurity"

// wrongEmbedded finds embedded configs that the programs they are for refuse. What the base has is left alone: it is Talos' own.
func (r *render) wrongEmbedded(documents []config.Document) []finding {
	present := embeddedIn(documents)
	if len(present) == 0 {
		return nil
	}

	base := map[address]map[string]any{}
	for _, each := range embeddedIn(r.provider.Documents()) {
		base[address{each.document, each.pointer}] = each.object
	}

	var findings []finding

	for _, each := range present {
		if was, ok := base[address{each.document, each.pointer}]; ok && reflect.DeepEqual(was, each.object) {
			continue
		}

		for _, wrong := range each.check(each.object) {
			found := finding{document: each.document, err: wrong.err}
			if wrong.field != "" {
				found.field = each.pointer + wrong.field
			}

			findings = append(findings, found)
		}
	}

	return append(findings, doubleAuthorizers(documents)...)
}

// embeddedIn lists the embedded configs that are checked.
func embeddedIn(documents []config.Document) []embedded {
	var all []embedded

	for _, document := range documents {
		add := func(pointer string, object map[string]any, check func(map[string]any) []mistake) {
			if object != nil {
				all = append(all, embedded{merge.IDOf(document), pointer, object, check})
			}
		}

		switch typed := document.(type) {
		case *v1alpha1.Config:
			addLegacy(typed, kubeletCheck(documents), add)
		case *k8s.KubeletConfigV1Alpha1:
			add("/config", typed.KubeletConfig.Object, kubeletCheck(documents))
		case *k8s.KubeSchedulerConfigV1Alpha1:
			add("/config", typed.PodConfig.Object, checkScheduler)
		case *k8s.KubeProxyConfigV1Alpha1:
			add("/config", typed.ProxyConfig.Object, checkProxy)
		case *k8s.KubeCredentialProviderConfigV1Alpha1:
			add("/configuration", typed.CredentialProviderConfig.Object, checkCredentialProviders)
		case *k8s.KubeAuditPolicyConfigV1Alpha1:
			add("/configuration", typed.AuditConfig.Object, checkAuditPolicy)
		case *k8s.KubeAuthenticationConfigV1Alpha1:
			add("/configuration", typed.AuthConfig.Object, authenticationCheck(documents))
		case *k8s.KubeAuthorizerConfigV1Alpha1:
			add("/webhook", typed.AuthorizerWebhook.Object, checkAuthorizerWebhook)
		case *k8s.KubeAdmissionControlConfigV1Alpha1:
			if typed.MetaName == podSecurity {
				add("/configuration", typed.PluginConfig.Object, checkPodSecurity)
			}
		}
	}

	return all
}

func addLegacy(document *v1alpha1.Config, kubelet func(map[string]any) []mistake, add func(string, map[string]any, func(map[string]any) []mistake)) {
	if machine := document.MachineConfig; machine != nil && machine.MachineKubelet != nil {
		add("/machine/kubelet/extraConfig", machine.MachineKubelet.KubeletExtraConfig.Object, kubelet)
		add("/machine/kubelet/credentialProviderConfig", machine.MachineKubelet.KubeletCredentialProviderConfig.Object, checkCredentialProviders)
	}

	if document.ClusterConfig != nil && document.ClusterConfig.SchedulerConfig != nil {
		add("/cluster/scheduler/config", document.ClusterConfig.SchedulerConfig.SchedulerConfig.Object, checkScheduler)
	}

	if document.ClusterConfig == nil || document.ClusterConfig.APIServerConfig == nil {
		return
	}

	server := document.ClusterConfig.APIServerConfig
	add("/cluster/apiServer/auditPolicy", server.AuditPolicyConfig.Object, checkAuditPolicy)

	for i, plugin := range server.AdmissionControlConfig {
		if plugin.PluginName == podSecurity {
			add(fmt.Sprintf("/cluster/apiServer/admissionControl/%d/configuration", i), plugin.PluginConfiguration.Object, checkPodSecurity)
		}
	}

	for i, authorizer := range server.AuthorizationConfigConfig {
		add(fmt.Sprintf("/cluster/apiServer/authorizationConfig/%d/webhook", i), authorizer.AuthorizerWebhook.Object, checkAuthorizerWebhook)
	}
}

// decodeEmbedded reads an embedded config as its program does: no unknown field, no value of another type. No mistake has a value.
func decodeEmbedded[T any](object map[string]any) (*T, []mistake) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, []mistake{{err: errors.New("has a map whose keys are no text")}}
	}

	into := new(T)

	unknown, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return nil, []mistake{wrongType(data, new(T), err)}
	}

	var mistakes []mistake

	for _, each := range unknown {
		wrong := mistake{err: errors.New("is not known, and would be refused or ignored: correct or remove it")}

		if at, ok := each.(kjson.FieldError); ok { //nolint:errorlint // the list's own elements, as its documentation says
			wrong.field = fieldPointer(at.FieldPath())
		}

		mistakes = append(mistakes, wrong)
	}

	return into, mistakes
}

// wrongType says which value is of another type than its field. The strict decoder's own error does not tell it apart.
func wrongType(data []byte, into any, err error) mistake {
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(data, into)); ok {
		kind, _, _ := strings.Cut(mismatch.Value, " ")

		return mistake{err: fmt.Errorf("%s takes %s and not a value of type %s", mismatch.Field, typeWords(mismatch.Type), kind)}
	}

	return mistake{err: fmt.Errorf("has a value that cannot be read: %w", err)}
}

func typeWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text (in quotation marks if it looks like a number)"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a map"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// mistakesOf takes over what a validation of Kubernetes says, without the values: they may be long, or a credential.
func mistakesOf(errs field.ErrorList) []mistake {
	mistakes := make([]mistake, 0, len(errs))

	for _, each := range errs {
		words, detail := each.Type.String(), each.Detail

		// The parser of URLs quotes what it cannot read.
		if value, ok := each.BadValue.(string); ok && merge.HasUserInfo(value) {
			detail = "must be a URL without a user"
		}

		if detail != "" {
			words += ": " + detail
		}

		mistakes = append(mistakes, mistake{fieldPointer(each.Field), errors.New(lowerFirst(words))})
	}

	return mistakes
}

func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// fieldPointer makes a JSON Pointer of the path of a field: "jwt[0].issuer.url". What stands in brackets may have dots in it.
func fieldPointer(path string) string {
	if path == "" || path == "<nil>" {
		return ""
	}

	var b strings.Builder

	for path != "" {
		end := strings.IndexAny(path, ".[")

		switch {
		case path[0] == '[':
			key, rest, _ := strings.Cut(path[1:], "]")
			b.WriteString("/" + merge.EscapePointer(key))
			path = strings.TrimPrefix(rest, ".")
		case end < 0:
			b.WriteString("/" + merge.EscapePointer(path))
			path = ""
		default:
			b.WriteString("/" + merge.EscapePointer(path[:end]))
			path = strings.TrimPrefix(path[end:], ".")
		}
	}

	return b.String()
}
