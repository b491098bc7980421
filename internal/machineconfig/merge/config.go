// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
)

// Config is a machine config under construction: an ordered list of documents,
// the legacy one first. It is for one goroutine at a time. After an error of
// Apply or Delete it is half changed and must be dropped.
type Config struct {
	docs []*document
	// err is why the base could not be taken over; every later step returns it.
	err error
}

// document is one document of a Config.
type document struct {
	id   ID
	doc  config.Document
	root reflect.Value // the struct that doc points to
	plan *plan
	// base is the document as New found it, nil for one that was added.
	base config.Document
	// reached says that something tried to change it.
	reached bool
	// leaves is what it holds now, and encoded how that is written, nil when that is not known.
	leaves  []Leaf
	encoded []byte
	// marks are the values that are secret because of where they came from.
	marks marks
}

// New starts from a config. It copies every document, and so neither changes
// nor shares anything with base, which may be cached and used by others. A base
// that cannot be copied makes every later step fail.
func New(base coreconfig.Provider) *Config {
	docs := base.Documents()
	c := &Config{docs: make([]*document, 0, len(docs)+8)}

	for _, doc := range docs {
		id := IDOf(doc)

		clone, err := cloneDocument(doc)
		if err != nil {
			c.err = &Error{Index: -1, ID: id, Err: err}

			break
		}

		c.docs = append(c.docs, &document{id: id, doc: clone, base: doc})
	}

	return c
}

// prepare works out the document's plan, which only those need that change.
func (d *document) prepare() error {
	if d.plan != nil {
		return nil
	}

	d.root = reflect.ValueOf(d.doc).Elem()

	var err error

	d.plan, err = planFor(d.root.Type())

	return err
}

func (c *Config) find(id ID) *document {
	for _, d := range c.docs {
		if d.id == id {
			return d
		}
	}

	return nil
}

// Apply merges a patch, document by document, and tells observe what each leaf
// went through. Errors are of type *Error and name document and field.
func (c *Config) Apply(p *Patch, observe Observer) error {
	if c.err != nil {
		return c.err
	}

	for _, pd := range p.documents {
		if err := c.applyDocument(pd, observe); err != nil {
			return inDocument(pd.index, pd.id, err)
		}
	}

	return nil
}

func (c *Config) applyDocument(pd *patchDocument, observe Observer) error {
	for _, del := range pd.deletions {
		if _, err := c.delete(pd.id, del, observe); err != nil {
			return err
		}
	}

	if pd.doc == nil {
		return nil
	}

	d := c.find(pd.id)
	if d == nil {
		return c.add(pd, observe)
	}

	if err := d.prepare(); err != nil {
		return err
	}

	if d.plan != pd.plan {
		return fmt.Errorf("the config has a %v of this kind, the patch a %v", d.plan.typ, pd.plan.typ)
	}

	var before []Leaf
	if observe != nil {
		before = d.flat()
	}

	d.reached, d.leaves, d.encoded = true, nil, nil
	d.marks = d.marks.with(pd.marks)

	rec := newRecorder(observe)
	m := merging{rec: rec}
	_, named := d.doc.(config.NamedDocument)
	identity := isIdentity(d.id, named)
	src := reflect.ValueOf(pd.doc).Elem()

	for _, fs := range pd.said.fields {
		f := &d.plan.fields[fs.index]
		if identity(f.name) && d.id.Kind != LegacyKind {
			continue
		}

		rec.push(f.name)
		err := m.merge(f.at(d.root), f.at(src), f.plan, fs.said, f.replace)
		rec.pop()

		if err != nil {
			return under(f.name, err)
		}
	}

	normalise(d.doc, pd)

	if observe != nil {
		rec.report(d.id, before, d.flat(), observe)
	}

	return nil
}

// add appends a document that the config does not have.
func (c *Config) add(pd *patchDocument, observe Observer) error {
	clone, err := cloneDocument(pd.doc)
	if err != nil {
		return err
	}

	d := &document{id: pd.id, doc: clone, reached: true, marks: pd.marks}

	if err := d.prepare(); err != nil {
		return err
	}

	if d.id.Kind == LegacyKind {
		c.docs = slices.Insert(c.docs, 0, d)
	} else {
		c.docs = append(c.docs, d)
	}

	if observe != nil {
		newRecorder(observe).report(d.id, nil, d.flat(), observe)
	}

	return nil
}

// Delete removes what a JSON pointer leads to, or the whole document when the
// pointer is "". It tells whether there was something to remove; a target that
// does not exist is none, and no error. A path that the kind cannot have is an
// error, and so is the deletion of what identifies the document.
//
// An element of a list is named by its index or by its key: Talos' merge key
// where the list has one ("/machine/network/interfaces/eth0"), else the
// element's own text, else its first plain field. Where both could be meant,
// Talos' key wins over the index.
func (c *Config) Delete(id ID, pointer string, observe Observer) (bool, error) {
	if c.err != nil {
		return false, c.err
	}

	tokens, err := splitPointer(pointer)
	if err != nil {
		return false, &Error{Index: -1, ID: id, Err: err}
	}

	if len(tokens) == 0 && id.Kind == LegacyKind {
		return false, &Error{Index: -1, ID: id, Err: errors.New("the legacy document cannot be deleted as a whole; delete fields of it")}
	}

	done, err := c.delete(id, deletion{tokens: tokens}, observe)

	return done, inDocument(-1, id, err)
}

func (c *Config) delete(id ID, del deletion, observe Observer) (bool, error) {
	d := c.find(id)
	if d == nil {
		return false, nil
	}

	if err := d.prepare(); err != nil {
		return false, err
	}

	rec := newRecorder(observe)

	if len(del.tokens) == 0 {
		if observe != nil {
			rec.report(id, d.flat(), nil, observe)
		}

		c.docs = slices.DeleteFunc(c.docs, func(other *document) bool { return other == d })

		return true, nil
	}

	_, named := d.doc.(config.NamedDocument)
	if err := checkPath(d.plan, del.tokens, isIdentity(id, named)); err != nil {
		return false, err
	}

	var before []Leaf
	if observe != nil {
		before = d.flat()
	}

	r := remover{rec: rec, key: del.key, value: del.value}
	if !r.remove(d.root, d.plan, del.tokens) {
		return false, nil
	}

	d.reached, d.leaves, d.encoded = true, nil, nil

	if observe != nil {
		rec.report(id, before, d.flat(), observe)
	}

	return true, nil
}

// Documents gives the documents in their order. They belong to the Config and
// must not be changed.
func (c *Config) Documents() []config.Document {
	docs := make([]config.Document, len(c.docs))
	for i, d := range c.docs {
		docs[i] = d.doc
	}

	return docs
}

// Provider gives the config in machinery's form. It fails on documents that
// Talos does not allow together. It shares the documents with the Config.
func (c *Config) Provider() (coreconfig.Provider, error) {
	if c.err != nil {
		return nil, c.err
	}

	return container.New(c.Documents()...)
}

// Encode writes the config as YAML without comments. The bytes are those that
// machinery's container writes, and the same every time.
func (c *Config) Encode() ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}

	var buf bytes.Buffer

	for _, d := range c.docs {
		if buf.Len() > 0 {
			buf.WriteString("---\n")
		}

		b, err := d.encode()
		if err != nil {
			return nil, err
		}

		buf.Write(b)
	}

	return buf.Bytes(), nil
}

func (d *document) encode() ([]byte, error) {
	if d.encoded != nil {
		return d.encoded, nil
	}

	b, err := encoder.NewEncoder(d.doc, encoder.WithComments(encoder.CommentsDisabled)).Encode()
	if err != nil {
		return nil, &Error{Index: -1, ID: d.id, Err: fmt.Errorf("cannot be written as YAML: %w", err)}
	}

	d.encoded = b

	return b, nil
}
