// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/maesh-dev/ichor/internal/convert"
	"github.com/maesh-dev/ichor/internal/yamlsyntax"
)

// checkSecretsFile refuses what a file with secrets cannot be: a terminal or a pipe would show them.
func checkSecretsFile(name string) error {
	if name == "" {
		return nil
	}

	info, err := os.Lstat(name)

	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usagef("--secrets-file: %w", err)
	case !info.Mode().IsRegular():
		return usagef("--secrets-file is %s: want the name of a file", name)
	default:
		return nil
	}
}

// write writes the Secret, if there is one, and then the patch.
func (o *convertOptions) write(result *convert.Result) error {
	patch, err := encodeObject(o.format, result.Patch)
	if err != nil {
		return err
	}

	if result.Secret != nil {
		secret, err := encodeObject(o.format, result.Secret)
		if err != nil {
			return err
		}

		if err = keepOther(o.secretsFile, secret); err == nil {
			err = writePrivate(o.secretsFile, secret)
		}

		if err != nil {
			return fmt.Errorf("write the Secret: %w", err)
		}

		o.tell("note", fmt.Sprintf("credentials are in Secret %s, whose manifest is in %s: keep that file out of Git, or encrypt it, and apply it beside the patch",
			result.Secret.Name, o.secretsFile))
	} else if o.secretsFile != "" {
		o.tell("note", "there are no credentials in the documents: "+o.secretsFile+" is not written")
	}

	if result.Comments {
		o.tell("note", "comments are not kept")
	}

	if _, err = o.Out.Write(patch); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}

	return nil
}

func encodeObject(format string, object any) ([]byte, error) {
	if format == outputYAML {
		return yamlsyntax.Marshal(object)
	}

	var out bytes.Buffer

	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object)

	return out.Bytes(), err
}

// keepOther refuses a file that is there and has something else in it, which may be the only place where that is kept. The same may be
// written again.
func keepOther(name string, data []byte) error {
	present, err := os.ReadFile(name)

	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !bytes.Equal(present, data):
		return fmt.Errorf("%s is there already, with other content: remove it if nobody needs it, or name another file", name)
	default:
		return nil
	}
}

// writePrivate writes a file that only its owner can read, whole or not at all.
func writePrivate(name string, data []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), ".secret-*") // made with mode 0600
	if err != nil {
		return err
	}

	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the error that led here counts
		}
	}()

	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}

	return os.Rename(file.Name(), name)
}
