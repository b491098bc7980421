// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"reflect"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// Reached lists, in order, the documents that were added or that something set a field of, to whatever value. The others are
// as New found them.
func (c *Config) Reached() []ID {
	var ids []ID

	for _, d := range c.docs {
		if d.base == nil || d.reached {
			ids = append(ids, d.id)
		}
	}

	return ids
}

// EncodeReached writes a document that was reached, for a check of what was written into it. Of the legacy document, which is
// large, it leaves out the fields of machine and cluster that are as New found them.
func (c *Config) EncodeReached(id ID) ([]byte, error) {
	d := c.find(id)
	if d == nil {
		return nil, &Error{Index: -1, ID: id, Err: errors.New("the config has no such document")}
	}

	part := d.reachedPart()
	if part == d.doc {
		return d.encode()
	}

	partial := document{id: id, doc: part}

	return partial.encode()
}

// reachedPart is the document, of the legacy one a copy without what is as New found it.
func (d *document) reachedPart() config.Document {
	now, legacy := d.doc.(*v1alpha1.Config)
	before, found := d.base.(*v1alpha1.Config)

	if !legacy || !found {
		return d.doc
	}

	changed := *now
	changed.MachineConfig = changedFields(now.MachineConfig, before.MachineConfig)
	changed.ClusterConfig = changedFields(now.ClusterConfig, before.ClusterConfig)

	return &changed
}

// changedFields copies a struct without the fields that are what they were.
func changedFields[T any](now, before *T) *T {
	if now == nil || before == nil {
		return now
	}

	changed := *now
	fields, was := reflect.ValueOf(&changed).Elem(), reflect.ValueOf(before).Elem()

	for i := range fields.NumField() {
		if field := fields.Field(i); field.CanSet() && reflect.DeepEqual(field.Interface(), was.Field(i).Interface()) {
			field.SetZero()
		}
	}

	return &changed
}
