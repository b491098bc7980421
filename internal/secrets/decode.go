// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"
)

// field is a node of the bundle's form: its fields, or a leaf.
type field struct {
	fields map[string]field

	// base64 is set for leaves that hold PEM data in base64.
	base64 bool

	// dropped is set for what old bundles have and nothing reads any more.
	dropped bool
}

var (
	text        = field{}
	pemData     = field{base64: true}
	keyPair     = field{fields: map[string]field{"crt": pemData, "key": pemData}}
	bundleField = field{fields: map[string]field{
		"cluster":    {fields: map[string]field{"id": text, "secret": text}},
		"secrets":    {fields: map[string]field{"bootstraptoken": text, "aescbcencryptionsecret": text, "secretboxencryptionsecret": text}},
		"trustdinfo": {fields: map[string]field{"token": text}},
		"certs": {fields: map[string]field{
			"etcd": keyPair, "k8s": keyPair, "k8saggregator": keyPair, "os": keyPair,
			"k8sserviceaccount": {fields: map[string]field{"key": pemData}},

			// The administrator's client certificate, which Talos' generator once kept here.
			"admin": {dropped: true},
		}},
	}}
)

// Decode reads a bundle from its YAML form: that of `talosctl gen secrets` and of the existing providers. The clock is for the
// certificates that are later made with it. It is strict: a field that it does not know is refused rather than lost. The error names the
// field and the line, and never what stands there. Whether the bundle is complete is Check's question.
func Decode(data []byte, clock Clock) (bundle *Bundle, err error) {
	// The parser has panicked on malformed input before, and its message may quote the input.
	defer func() {
		if recover() != nil {
			bundle, err = nil, errors.New("secrets bundle: not YAML")
		}
	}()

	root, err := onlyDocument(data)
	if err != nil {
		return nil, fmt.Errorf("secrets bundle: %w", err)
	}

	if err := checkForm(root, bundleField, ""); err != nil {
		return nil, fmt.Errorf("secrets bundle: %w", err)
	}

	bundle = &Bundle{}
	if root.Decode(bundle) != nil {
		return nil, errors.New("secrets bundle: cannot be decoded; compare it with the output of talosctl gen secrets")
	}

	bundle.Clock = clock

	return bundle, nil
}

func onlyDocument(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	document := yaml.Node{}

	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("is empty")
	case err != nil:
		return nil, errors.New("not YAML")
	}

	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one YAML document")
	}

	root := &document
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}

	if root.Kind != yaml.MappingNode {
		return nil, errors.New("must have the fields cluster, secrets, trustdinfo and certs")
	}

	return root, nil
}

// checkForm checks that a mapping has no fields but those of the form, each once, and takes out what nothing reads. Names of unknown
// fields are not told: in a mangled bundle they may be secrets.
func checkForm(node *yaml.Node, form field, at string) error {
	kept := []*yaml.Node{}
	seen := map[string]bool{}

	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]

		below, known := form.fields[key.Value]
		if !known || key.Kind != yaml.ScalarNode {
			return fmt.Errorf("%sline %d: unknown field", prefixed(at), key.Line)
		}

		path := joined(at, key.Value)
		if seen[key.Value] {
			return fmt.Errorf("%s: line %d: given twice", path, key.Line)
		}

		seen[key.Value] = true

		if below.dropped {
			continue
		}

		kept = append(kept, key, value)

		if err := checkValue(value, below, path); err != nil {
			return err
		}
	}

	node.Content = kept

	return nil
}

func checkValue(value *yaml.Node, form field, path string) error {
	// Sections and pairs that are not there are null in machinery's own output.
	if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
		return nil
	}

	if form.fields != nil {
		if value.Kind != yaml.MappingNode {
			return fmt.Errorf("%s: line %d: must have fields", path, value.Line)
		}

		return checkForm(value, form, path)
	}

	if value.Kind != yaml.ScalarNode {
		return fmt.Errorf("%s: line %d: must be a text", path, value.Line)
	}

	if form.base64 {
		if _, err := base64.StdEncoding.DecodeString(value.Value); err != nil {
			return fmt.Errorf("%s: line %d: must be PEM data in base64", path, value.Line)
		}
	}

	return nil
}

func joined(at, name string) string {
	if at == "" {
		return name
	}

	return at + "." + name
}

func prefixed(at string) string {
	if at == "" {
		return ""
	}

	return at + ": "
}
