// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"go.yaml.in/yaml/v4"
)

// blame finds the field that does not decode, so that the error names it. The
// decoder's own text is kept only where it cannot show a secret.
func (d *patchDocument) blame(target config.Document) error {
	if err := probe(d.said, d.plan, secretsOf(target)); err != nil {
		return err
	}

	// No field fails by itself, so there is only the decoder's message, which may
	// quote values.
	return errors.New("the document does not decode as its kind; check its values against the Talos reference")
}

// probe decodes each scalar by itself and tells the first that fails.
func probe(s *said, p *plan, secrets *secretNode) error {
	if s == nil || s.node == nil {
		return nil
	}

	switch p.shape {
	case shapePointer:
		return probe(s, p.elem, secrets)
	case shapeStruct:
		if byteFields[p.typ] != nil {
			break // reads its fields by its own method
		}

		for _, f := range s.fields {
			if err := probe(f.said, p.fields[f.index].plan, secrets.child(p.fields[f.index].name)); err != nil {
				return under(p.fields[f.index].name, err)
			}
		}

		return nil
	case shapeMap:
		for _, k := range s.keys {
			if err := probe(k.said, p.elem, secrets.element(k.key)); err != nil {
				return under(k.key, err)
			}
		}

		return nil
	case shapeList:
		for i, item := range s.items {
			if err := probe(item, p.elem, secrets.element("")); err != nil {
				return under(itoa(i), err)
			}
		}

		return nil
	case shapeScalar, shapeFreeForm:
	}

	return probeScalar(s.node, p, secrets)
}

func probeScalar(node *yaml.Node, p *plan, secrets *secretNode) error {
	err := node.Decode(reflect.New(p.typ).Interface())

	switch {
	case err == nil:
		return nil
	case byteFields[p.typ] != nil:
		return at(node, errors.New("want base64 of PEM text"))
	case p.custom && node.Kind != yaml.ScalarNode && forms[p.typ] != "":
		return at(node, fmt.Errorf("want %s, found %s", forms[p.typ], found(node)))
	case !p.custom && node.ShortTag() == "!!str" && decodesPlain(node, p.typ):
		return at(node, fmt.Errorf("want %s, found text: write it without quotes", wanted(p.typ)))
	case !p.custom && node.ShortTag() == "!!timestamp":
		return at(node, fmt.Errorf("want %s, found a date: write it in quotation marks", wanted(p.typ)))
	case !p.custom || node.Kind != yaml.ScalarNode:
		return at(node, fmt.Errorf("want %s, found %s that is not", wanted(p.typ), found(node)))
	case p.typ == urlType || p.typ == endpointType:
		// Not quoted: a URL may hold a password.
		return at(node, errors.New("want a URL such as https://host:port/path"))
	case secrets.isSecret():
		return at(node, errSecretForm)
	default:
		return at(node, wrongValue(p.typ, node.Value, textError(p.typ, node.Value, err)))
	}
}

// decodesPlain says whether a text in quotes would decode without them.
func decodesPlain(node *yaml.Node, t reflect.Type) bool {
	var plain yaml.Node

	return yaml.Unmarshal([]byte(node.Value), &plain) == nil && len(plain.Content) == 1 && plain.Content[0].ShortTag() != "!!str" &&
		plain.Decode(reflect.New(t).Interface()) == nil
}

// textError gives the type's own word on a text, without what the YAML decoder
// wraps around it.
func textError(t reflect.Type, text string, wrapped error) error {
	if reads, ok := reflect.TypeAssert[encoding.TextUnmarshaler](reflect.New(t)); ok {
		if err := reads.UnmarshalText([]byte(text)); err != nil {
			return err
		}
	}

	var several *yaml.LoadErrors
	if errors.As(wrapped, &several) && len(several.Errors) > 0 {
		return errors.New(several.Errors[0].Message)
	}

	return wrapped
}
