// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"go.yaml.in/yaml/v4"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

var (
	errSecretManifest = errors.New("has a manifest of kind Secret with data, which would stand in the patch for all to read: " +
		"keep the manifest in a Secret and refer to its key (contentsFrom, manifestFrom: secretKeyRef)")
	errAuthorization = errors.New("is a credential, which would stand in the patch for all to read: " +
		"keep it in a Secret and refer to its key (headersFrom, extraManifestHeadersFrom: secretKeyRef)")
	errPrivateKey = errors.New("has a private key, which would stand in the patch for all to read: " +
		"keep the text in a Secret and refer to its key (contentFrom, contentsFrom, and so on: secretKeyRef)")
	errUserInfo = errors.New("has a user or password in a URL, which would stand in the patch for all to read: " +
		"remove it; for registries use TalosClusterConfig.spec.registries[].authSecretRef")
	errRegistryLogin = errors.New("has a password or token for a registry, which would stand in the patch for all to read: " +
		"use TalosClusterConfig.spec.registries[].authSecretRef, or keep the text in a Secret and refer to its key (contentFrom: secretKeyRef)")
	errQuery = errors.New("has a token, key or password in the query of a URL, which would stand in the patch for all to read: " +
		"remove it, and send it as a header from a Secret (extraManifestHeadersFrom, headersFrom: secretKeyRef), or keep the whole text in a Secret " +
		"where a field beside it refers to one (contentsFrom, manifestFrom, contentFrom, envFrom, and so on)")
)

// loginURL is a URL with a password, as it may stand anywhere in a text. A user alone ("ssh://git@host") is harmless there.
var loginURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:"']*:[^\s/?#@"']+@`)

// registryLogin is a login of a registry in containerd's own config, as it may stand in a file or a customization.
var registryLogin = regexp.MustCompile(`registry\.configs\.[^\n]*\.auth\][^\[]*?\b(?:password|auth|identitytoken|identity_token)\s*=\s*["'][^"'\n]`)

// privateKey is where a private key in PEM begins, of any sort. In JSON it is the same.
var privateKey = regexp.MustCompile(`-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----`)

// credentialHeaders are the headers that carry a login, in lower case.
var credentialHeaders = []string{
	"authorization", "proxy-authorization", "cookie",
	"private-token", "job-token", "deploy-token", "x-auth-token", "x-api-key", "x-vault-token",
}

// wholeURL is a text that is nothing but a URL.
var wholeURL = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://\S*$`)

// addressFields are the last words of the names of fields that take an address, with or without a scheme.
var addressFields = []string{"url", "urls", "endpoint", "endpoints", "server", "servers"}

// plainSecrets finds what is a secret in so many words, and stands in a patch in a field that is no secret for Talos: its own types
// and redaction do not cover free text. Patches are kept in Git and read by many. No error has a value.
// What came out of a Secret stands in none: secrets are where.
func plainSecrets(patch *merge.Patch, secrets []string) []finding {
	var findings []finding

	for _, part := range patch.Documents() {
		if part.Document == nil {
			continue
		}

		for _, leaf := range merge.LeavesOf(part.Document) {
			if isWithinAny(leaf.Pointer, secrets) {
				continue
			}

			if err := plainSecret(leaf); err != nil {
				findings = append(findings, finding{document: part.ID, field: leaf.Pointer, err: err})
			}
		}
	}

	sortFindings(findings)

	return findings
}

// PlainSecrets finds what plainSecrets does in a single document, by JSON Pointer.
func PlainSecrets(document config.Document) map[string]error {
	found := map[string]error{}

	for _, leaf := range merge.LeavesOf(document) {
		if err := plainSecret(leaf); err != nil {
			found[leaf.Pointer] = err
		}
	}

	return found
}

func plainSecret(leaf merge.Leaf) error {
	text := leaf.Value.Reveal()

	switch {
	case isAuthorization(leaf.Pointer):
		return errAuthorization
	// Most texts have no such sign, and to look for it costs least.
	case strings.Contains(text, "@") && hasLogin(leaf.Pointer, text):
		return errUserInfo
	case strings.Contains(text, "?") && hasCredentialQuery(leaf.Pointer, text):
		return errQuery
	case holdsSecretManifest(text):
		return errSecretManifest
	case privateKey.MatchString(text):
		return errPrivateKey
	case registryLogin.MatchString(text):
		return errRegistryLogin
	default:
		return nil
	}
}

// filledIn is a login whose password a program fills in when it runs, or a text that explains: as placeholder is of a query.
var filledIn = regexp.MustCompile(`(^|://)[^\s/?#@:"']*:[${<*][^\s/?#@"']*@`)

func hasLogin(pointer, text string) bool {
	text = filledIn.ReplaceAllString(text, "$1")

	return loginURL.MatchString(text) || (isAddress(pointer) || wholeURL.MatchString(text)) && merge.HasUserInfo(text)
}

// placeholder is a value of a query that a program fills in when it runs: of a shell, a template, or a text that explains.
var placeholder = regexp.MustCompile(`=(?:\$|\{|<|\*)[^&\s]*`)

// hasCredentialQuery tells a URL with a credential in its query, as it may stand anywhere in a text, or without a scheme in a field for addresses.
func hasCredentialQuery(pointer, text string) bool {
	if isAddress(pointer) && !strings.Contains(text, "://") {
		text = "https://" + text
	}

	return merge.HasCredentialQuery(placeholder.ReplaceAllString(text, "="))
}

// isAuthorization tells the header of a login, in whichever map of headers. Most services have one of their own, such as X-Gitlab-Token.
func isAuthorization(pointer string) bool {
	parent, name := lastTokens(pointer)

	return strings.HasSuffix(strings.ToLower(parent), "headers") && (slices.Contains(credentialHeaders, strings.ToLower(name)) || saysSecret(name))
}

// isAddress tells a field that takes an address, or a list of them.
func isAddress(pointer string) bool {
	parent, name := lastTokens(pointer)

	return slices.ContainsFunc(addressFields, func(field string) bool {
		return strings.HasSuffix(strings.ToLower(name), field) || isIndex(name) && strings.HasSuffix(strings.ToLower(parent), field)
	})
}

func isIndex(token string) bool { return token != "" && strings.Trim(token, "0123456789") == "" }

func lastTokens(pointer string) (parent, name string) {
	tokens := strings.Split(pointer, "/")
	if len(tokens) < 2 {
		return "", pointer
	}

	return tokens[len(tokens)-2], tokens[len(tokens)-1]
}

// holdsSecretManifest tells a text that is a stream of Kubernetes manifests, one of them a Secret with data. What is no YAML is none.
func holdsSecretManifest(text string) (found bool) {
	if !strings.Contains(text, "Secret") {
		return false
	}

	// What comes after the place where it is no YAML is none.
	_ = eachManifest(text, func(manifest *yaml.Node) bool {
		found = isSecretWithData(manifest, 0)

		return !found
	})

	return found
}

// maxLists is how deep lists of manifests are looked into: an alias can make a list that contains itself.
const maxLists = 3

// isSecretWithData looks into lists of manifests too, which is in so many lists.
func isSecretWithData(manifest *yaml.Node, lists int) bool {
	if lists < maxLists && slices.ContainsFunc(manifestFields(manifest, "items"), func(items *yaml.Node) bool {
		return items.Kind == yaml.SequenceNode &&
			slices.ContainsFunc(items.Content, func(item *yaml.Node) bool { return isSecretWithData(item, lists+1) })
	}) {
		return true
	}

	isSecret := func(kind *yaml.Node) bool { return kind.Value == "Secret" }
	if !slices.ContainsFunc(manifestFields(manifest, "kind"), isSecret) {
		return false
	}

	return slices.ContainsFunc([]string{"data", "stringData"}, func(name string) bool {
		// What Talos takes is the last, and what stands in the patch is all of them.
		return slices.ContainsFunc(manifestFields(manifest, name), func(data *yaml.Node) bool {
			return data.Kind == yaml.MappingNode && len(data.Content) > 0
		})
	})
}

// secretWords are the words by which a variable's name says that its value is a secret.
var secretWords = []string{"token", "secret", "password", "key"}

// environments are the names of fields that hold environment variables, as a map or as a list of NAME=value.
var environments = []string{"env", "environment", "variables"}

// namedSecrets finds environment variables whose names say that they hold a secret. It says where and which.
func namedSecrets(patch *merge.Patch, secrets []string) []string {
	var notices []string

	for _, part := range patch.Documents() {
		if part.Document == nil {
			continue
		}

		leaves := merge.LeavesOf(part.Document)
		notices = append(notices, namedPairs(part.ID, leaves, secrets)...)

		for _, leaf := range leaves {
			if name, ok := variable(leaf); ok && saysSecret(name) && !isWithinAny(leaf.Pointer, secrets) {
				notices = append(notices, fmt.Sprintf(
					"%s: %s: the name of the variable %s says that it holds a secret, which can be read in the patch and on the machine: keep the value in a Secret and refer to its key (envFrom, environmentFrom, variablesFrom: secretKeyRef)",
					part.ID, leaf.Pointer, name))
			}
		}
	}

	return notices
}

// NamedSecrets finds the environment variables of a document whose names say that they hold a secret, and that are not empty, by JSON Pointer.
func NamedSecrets(document config.Document) []string {
	var found []string

	for _, leaf := range merge.LeavesOf(document) {
		name, ok := variable(leaf)
		if ok && saysSecret(name) && leaf.Value.Reveal() != "" && leaf.Value.Reveal() != name+"=" {
			found = append(found, leaf.Pointer)
		}
	}

	return found
}

// variable is the name of the environment variable that a leaf sets.
func variable(leaf merge.Leaf) (string, bool) {
	parent, name := lastTokens(leaf.Pointer)
	if !slices.Contains(environments, parent) {
		return "", false
	}

	if !isIndex(name) {
		return name, true
	}

	name, _, named := strings.Cut(leaf.Value.Reveal(), "=")

	return name, named
}

// gluedSecretWords are what secretWords end on where there is no _ before them, as in TS_AUTHKEY and PGPASSWORD. Not every word that ends on
// key is one.
var gluedSecretWords = []string{"token", "secret", "password", "authkey", "apikey", "accesskey", "secretkey", "privatekey"}

// lastSecretWords are what names end on whose values are secrets; within a name they are anything, as in CREDENTIALS_FILE. No secret are
// lastHarmlessWords.
var (
	lastSecretWords   = []string{"pass", "passwd", "credential", "credentials"}
	lastHarmlessWords = []string{"bypass", "compass"}
)

// saysSecret looks for whole words, and for words that end on one: a KEYBOARD is no key.
func saysSecret(variable string) bool {
	words := strings.FieldsFunc(strings.ToLower(variable), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})

	if len(words) == 0 {
		return false
	}

	last := words[len(words)-1]
	endsOn := func(end string) bool { return strings.HasSuffix(last, end) }

	if slices.ContainsFunc(lastSecretWords, endsOn) && !slices.Contains(lastHarmlessWords, last) {
		return true
	}

	return slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains(secretWords, word) || slices.ContainsFunc(gluedSecretWords, func(end string) bool { return strings.HasSuffix(word, end) })
	})
}
