// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/maesh-dev/ichor/test/harness"
)

// Right is one verb on one resource or one URL that is no resource's. An empty namespace is every namespace, and an empty name every name.
type Right struct{ Namespace, Group, Resource, Name, URL, Verb string }

func (r Right) String() string {
	if r.URL != "" {
		return r.Verb + " " + r.URL
	}

	what, where := r.Resource+"."+r.Group, "every namespace"
	if r.Name != "" {
		what += " " + r.Name
	}

	if r.Namespace != "" {
		where = "namespace " + r.Namespace
	}

	return fmt.Sprintf("%s %s in %s", r.Verb, what, where)
}

// needed are the verbs that a request shows the need of.
func needed(request harness.Request) []string {
	verbs := []string{request.Verb}

	switch uri, err := url.ParseRequestURI(request.URI); {
	case request.Verb == "patch" && request.Code == http.StatusCreated:
		// An apply that makes an object needs the right to create it, too.
		verbs = append(verbs, "create")
	case request.Verb == "watch" && err == nil && uri.Query().Get("sendInitialEvents") == "true":
		// It streams what a list would have. Where an API server does not do that, who watches lists.
		verbs = append(verbs, "list")
	case request.Verb == "create" && request.Group == eventsv1.GroupName && request.Resource == "events":
		// An event that comes again is patched, to count. Whether one does while somebody looks is a matter of time.
		verbs = append(verbs, "patch")
	}

	return verbs
}

// grants says whether a request has needed the right.
func (r Right) grants(request harness.Request) bool {
	if request.Forbidden() || !slices.Contains(needed(request), r.Verb) {
		return false
	}

	if r.URL != "" {
		path, _, _ := strings.Cut(request.URI, "?")

		return request.Resource == "" && path == r.URL
	}

	resource := request.Resource
	if request.Subresource != "" {
		resource += "/" + request.Subresource
	}

	return (r.Namespace == "" || r.Namespace == request.Namespace) && (r.Name == "" || r.Name == request.Name) &&
		r.Group == request.Group && r.Resource == resource
}

// Granted lists every right that the components give to the ServiceAccount, and what is wrong with the way they do.
func Granted(components []*unstructured.Unstructured, account string) (rights []Right, faults []string) {
	roles := map[string][]rbacv1.PolicyRule{}

	for _, component := range components {
		if kind := component.GetKind(); kind == "Role" || kind == "ClusterRole" {
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(component.Object, role); err != nil {
				faults = append(faults, err.Error())
			}

			roles[kind+"/"+component.GetNamespace()+"/"+component.GetName()] = role.Rules
			faults = append(faults, wildcards(component.GetName(), role.Rules)...)
		}
	}

	for _, component := range components {
		if kind := component.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}

		binding := &rbacv1.RoleBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(component.Object, binding); err != nil {
			faults = append(faults, err.Error())
		}

		if !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Kind == "ServiceAccount" && s.Name == account }) {
			continue
		}

		namespace := binding.Namespace
		if binding.RoleRef.Kind == "ClusterRole" {
			namespace = ""
		}

		rules, ok := roles[binding.RoleRef.Kind+"/"+namespace+"/"+binding.RoleRef.Name]
		if !ok {
			faults = append(faults, fmt.Sprintf("%s %s binds %s %s, which is not there", component.GetKind(), binding.Name, binding.RoleRef.Kind, binding.RoleRef.Name))
		}

		rights = append(rights, expand(binding.Namespace, rules)...)
	}

	return rights, faults
}

func expand(namespace string, rules []rbacv1.PolicyRule) []Right {
	var rights []Right

	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}

		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				rights = append(rights, Right{URL: url, Verb: verb})
			}

			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						rights = append(rights, Right{Namespace: namespace, Group: group, Resource: resource, Name: name, Verb: verb})
					}
				}
			}
		}
	}

	return rights
}

func wildcards(role string, rules []rbacv1.PolicyRule) []string {
	var faults []string

	for _, rule := range rules {
		for _, value := range slices.Concat(rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs, rule.NonResourceURLs) {
			if strings.Contains(value, "*") {
				faults = append(faults, fmt.Sprintf("role %s has the wildcard %q", role, value))
			}
		}
	}

	return faults
}

// Compare says which rights the requests lacked, and which they had no use for.
func Compare(rights []Right, requests []harness.Request) (faults []string) {
	for _, request := range requests {
		if request.Forbidden() {
			faults = append(faults, fmt.Sprintf("missing: %s %s", request.Verb, request.URI))
		}
	}

	for _, right := range rights {
		if !slices.ContainsFunc(requests, right.grants) {
			faults = append(faults, "unused: "+right.String())
		}
	}

	slices.Sort(faults)

	return slices.Compact(faults)
}
