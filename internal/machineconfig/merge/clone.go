// SPDX-License-Identifier: Apache-2.0

package merge

// Clone copies the config. The copy shares nothing that can change.
func (c *Config) Clone() (*Config, error) {
	clone := &Config{err: c.err, docs: make([]*document, len(c.docs), cap(c.docs))}

	for i, d := range c.docs {
		doc, err := cloneDocument(d.doc)
		if err != nil {
			return nil, &Error{Index: -1, ID: d.id, Err: err}
		}

		clone.docs[i] = &document{id: d.id, doc: doc, base: d.base, reached: d.reached, marks: d.marks}
	}

	return clone, nil
}
