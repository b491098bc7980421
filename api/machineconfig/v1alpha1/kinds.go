// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "reflect"

// FieldName is the name of the field of a Document that holds the kind's content, for example "hostnameConfig" for HostnameConfig. It is
// empty for a kind that is not offered.
func (k DocumentKind) FieldName() string {
	field, ok := reflect.TypeFor[Document]().FieldByName(string(k))
	if !ok || field.Name == "Kind" {
		return ""
	}

	return jsonName(field)
}
