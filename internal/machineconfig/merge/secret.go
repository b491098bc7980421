// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"net/url"
	"reflect"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// secretNode is a place in a document type; what is below a secret place is
// secret. All methods work on nil, which is a place without secrets.
type secretNode struct {
	secret bool
	names  map[string]*secretNode
	any    *secretNode // elements of a list or map
}

var secretLeaf = &secretNode{secret: true}

// namedLeaf is a place of which only the name tells that it is secret.
var namedLeaf = &secretNode{secret: true}

// tells says whether a text at the place is shown all the same: a switch whose name sounds secret has nothing to hide.
func (n *secretNode) tells(text string) bool {
	return n == namedLeaf && (text == "true" || text == "false")
}

func (n *secretNode) isSecret() bool { return n != nil && n.secret }

// child gives the place of a field.
func (n *secretNode) child(name string) *secretNode {
	switch {
	case n == nil:
		return nil
	case n.secret:
		return n
	}

	return n.names[name]
}

// element gives the place of a map entry, or with "" of a list element. Entries
// whose key sounds like a credential are secret in every map.
func (n *secretNode) element(key string) *secretNode {
	if n != nil {
		if n == namedLeaf && (key == "kind" || key == "apiVersion") {
			return nil
		}

		if n.secret {
			return n
		}

		if named, ok := n.names[key]; ok {
			return named
		}

		if n.any != nil {
			return n.any
		}
	}

	if soundsSecret(key) {
		return namedLeaf
	}

	return nil
}

// soundsSecret is Talos' own list of names for its audit of redaction.
func soundsSecret(key string) bool {
	if key == "" {
		return false
	}

	key = strings.ToLower(key)
	for _, word := range []string{"password", "passphrase", "token", "secret", "privatekey", "presharedkey", "apikey"} {
		if strings.Contains(key, word) {
			return true
		}
	}

	return false
}

func (n *secretNode) add(tokens []string) {
	for i, token := range tokens {
		last := i == len(tokens)-1

		if token == "*" {
			if n.any == nil {
				n.any = &secretNode{}
			}

			n = n.any
		} else {
			if n.names == nil {
				n.names = map[string]*secretNode{}
			}

			if n.names[token] == nil {
				n.names[token] = &secretNode{}
			}

			n = n.names[token]
		}

		if last {
			n.secret = true
		}
	}
}

// contentSecrets are fields that Talos does not redact but that carry
// credentials in practice: whole files, manifests, headers, environments.
var contentSecrets = map[string][]string{
	LegacyKind: {
		"/machine/env/*",
		"/machine/files/*/content",
		"/machine/pods/*/spec/containers/*/env/*/value",
		"/machine/pods/*/spec/initContainers/*/env/*/value",
		"/machine/kubelet/credentialProviderConfig/providers/*/env/*/value",
		"/cluster/extraManifestHeaders/*",
		"/cluster/inlineManifests/*/contents",
		"/cluster/apiServer/env/*",
		"/cluster/controllerManager/env/*",
		"/cluster/scheduler/env/*",
	},
	"ContainerConfig":              {"/environment/*"},
	"CRICustomizationConfig":       {"/content"},
	"EnvironmentConfig":            {"/variables/*"},
	"EtcFileConfig":                {"/contents"},
	"ExtensionServiceConfig":       {"/environment/*", "/configFiles/*/content"},
	"KubeAPIServerConfig":          {"/env/*"},
	"KubeControllerManagerConfig":  {"/env/*"},
	"KubeCredentialProviderConfig": {"/configuration/providers/*/env/*/value"},
	// Redact looks into this free-form value, where the filled document has nothing for it.
	"KubeEtcdEncryptionConfig":   {"/config/resources/*/providers/*/*/keys/*/secret"},
	"KubeExternalManifestConfig": {"/headers/*"},
	"KubeInlineManifestConfig":   {"/manifest"},
	"KubeSchedulerConfig":        {"/env/*"},
	"KubeStaticPodConfig": {
		"/pod/spec/containers/*/env/*/value",
		"/pod/spec/initContainers/*/env/*/value",
	},
}

var secretPlaces sync.Map // of reflect.Type to *secretNode

// secretsOf gives the secret places of a document's type: those that Talos' own
// Redact replaces, found out by running it on a document with every field
// filled, and those of contentSecrets.
func secretsOf(doc config.Document) *secretNode {
	t := reflect.TypeOf(doc)
	if known, ok := secretPlaces.Load(t); ok {
		return known.(*secretNode) //nolint:forcetypeassert // only nodes are stored
	}

	n := &secretNode{}

	for _, pattern := range contentSecrets[IDOf(doc).Kind] {
		n.add(strings.Split(pattern[1:], "/"))
	}

	if !n.addRedacted(t) {
		// What cannot be found out is treated as secret as a whole.
		n = secretLeaf
	}

	secretPlaces.Store(t, n)

	return n
}

// addRedacted tells whether the places could be found out.
func (n *secretNode) addRedacted(t reflect.Type) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()

	p, err := planFor(t.Elem())
	if err != nil {
		return false
	}

	filled, redacted := reflect.New(t.Elem()), reflect.New(t.Elem())
	fill(filled.Elem(), p)
	fill(redacted.Elem(), p)

	secretDoc, isSecretDoc := reflect.TypeAssert[config.SecretDocument](redacted)
	if !isSecretDoc {
		return true
	}

	secretDoc.Redact(Mask)

	differ(filled.Elem(), redacted.Elem(), p, nil, func(path []string) { n.add(path) })

	return true
}

const filling = "x"

// fill puts something into every field of a document.
func fill(v reflect.Value, p *plan) {
	switch p.shape {
	case shapePointer:
		v.Set(reflect.New(p.elem.typ))
		fill(v.Elem(), p.elem)
	case shapeStruct:
		for i := range p.fields {
			fill(p.fields[i].at(v), p.fields[i].plan)
		}
	case shapeList:
		v.Set(reflect.MakeSlice(p.typ, 1, 1))
		fill(v.Index(0), p.elem)
	case shapeMap:
		elem := reflect.New(p.elem.typ).Elem()
		fill(elem, p.elem)
		v.Set(reflect.MakeMap(p.typ))
		v.SetMapIndex(reflect.ValueOf(filling).Convert(p.typ.Key()), elem)
	case shapeFreeForm:
		v.Set(reflect.ValueOf(meta.Unstructured{Object: map[string]any{filling: filling}}))
	case shapeScalar:
		fillScalar(v, p)
	}
}

func fillScalar(v reflect.Value, p *plan) {
	u := &url.URL{Scheme: "https", Host: filling, RawQuery: "jointoken=" + filling}

	switch {
	case p.typ == urlType:
		v.Set(reflect.ValueOf(meta.URL{URL: u}))
	case p.typ == endpointType:
		v.Set(reflect.ValueOf(v1alpha1.Endpoint{URL: u}))
	case v.Kind() == reflect.String:
		v.SetString(filling)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes([]byte(filling))
	}
}

// differ visits the places at which two filled documents differ.
func differ(a, b reflect.Value, p *plan, path []string, visit func([]string)) {
	switch p.shape {
	case shapePointer:
		if !a.IsNil() && !b.IsNil() {
			differ(a.Elem(), b.Elem(), p.elem, path, visit)

			return
		}
	case shapeStruct:
		for i := range p.fields {
			f := &p.fields[i]
			differ(f.at(a), f.at(b), f.plan, append(path, f.name), visit)
		}

		return
	case shapeList:
		if a.Len() == 1 && b.Len() == 1 {
			differ(a.Index(0), b.Index(0), p.elem, append(path, "*"), visit)

			return
		}
	case shapeMap:
		key := reflect.ValueOf(filling).Convert(p.typ.Key())
		if va, vb := a.MapIndex(key), b.MapIndex(key); a.Len() == 1 && b.Len() == 1 && va.IsValid() && vb.IsValid() {
			differ(va, vb, p.elem, append(path, "*"), visit)

			return
		}
	case shapeScalar, shapeFreeForm:
	}

	if !reflect.DeepEqual(a.Interface(), b.Interface()) {
		visit(path)
	}
}
