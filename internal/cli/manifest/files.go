// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Stdin is the name of standard input among the files.
const Stdin = "-"

// UnreadableError is an input that could not be read at all: a file that is not there, or one that is neither YAML nor JSON.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

func unreadable(format string, args ...any) error {
	return &UnreadableError{fmt.Errorf(format, args...)}
}

// Document is one YAML or JSON document of a file.
type Document struct {
	Location

	// Data is the document after as many line feeds as there are lines before it in its file, so that a parser's line
	// numbers are those of the file.
	Data []byte

	// Commented tells that comments stand before the document, which are not in Data.
	Commented bool
}

// Files are the inputs of a command.
type Files struct {
	// Names are files, directories, and "-" for standard input.
	Names []string

	// Recursive reads directories below directories too.
	Recursive bool

	// Stdin is read when "-" is among the names.
	Stdin io.Reader
}

// Read reads all files and takes them apart, in the order in which they were named; those of a directory by name. Of a
// directory, files that end in .yaml, .yml and .json are read. Every error is an UnreadableError.
func (f Files) Read() ([]Document, error) {
	var (
		documents []Document
		seen      = map[string]bool{}
		faults    []error
	)

	for _, name := range f.Names {
		files, err := f.expand(name)
		if err != nil {
			faults = append(faults, err)

			continue
		}

		for _, file := range files {
			if seen[file] {
				faults = append(faults, unreadable("%s: is named more than once", file))

				continue
			}

			seen[file] = true

			data, err := Read(file, f.Stdin)
			if err != nil {
				faults = append(faults, err)

				continue
			}

			documents = append(documents, Split(file, data)...)
		}
	}

	return documents, errors.Join(faults...)
}

// maxFile bounds what is read of one file: more is no manifest, and the parsers need many times as much memory.
const maxFile = 64 << 20

// Read gives the content of a file, or of standard input for the name Stdin. What cannot be read, or is larger than any manifest, is
// an UnreadableError.
func Read(name string, stdin io.Reader) ([]byte, error) {
	shown, source := name, stdin

	if name == Stdin {
		shown = "standard input"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, unreadable("%s: %w", name, cause(err))
		}
		defer file.Close() //nolint:errcheck // it is only read

		source = file
	}

	data, err := io.ReadAll(io.LimitReader(source, maxFile+1))
	if err != nil {
		return nil, unreadable("%s: %w", shown, cause(err))
	}

	if len(data) > maxFile {
		return nil, unreadable("%s: is larger than %d MiB: name the manifests alone", shown, maxFile>>20)
	}

	return data, nil
}

// cause is a path error without the path, which is named already.
func cause(err error) error {
	if detail, ok := errors.AsType[*fs.PathError](err); ok {
		return detail.Err
	}

	return err
}

// expand gives the files that a name stands for.
func (f Files) expand(name string) ([]string, error) {
	if name == Stdin {
		return []string{Stdin}, nil
	}

	info, err := os.Stat(name)
	if err != nil {
		return nil, unreadable("%s: %w", name, cause(err))
	}

	if !info.IsDir() {
		return []string{name}, nil
	}

	var files []string

	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && !f.Recursive:
			return filepath.SkipDir
		case !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			files = append(files, path)
		}

		return nil
	})
	if err != nil {
		return nil, unreadable("%s: %w", name, err)
	}

	if len(files) == 0 {
		return nil, unreadable("%s: the directory has no file that ends in .yaml, .yml or .json", name)
	}

	return files, nil
}

// Split takes a file apart into its documents. Documents without content are left out, and count in the index unless they
// stand before the first "---".
func Split(file string, data []byte) []Document {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))

	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		return splitJSON(file, data)
	}

	return splitYAML(file, data)
}

// chunk is a run of lines between two separators.
type chunk struct {
	line      int
	text      []string
	commented bool
}

// trim drops lines without content from the front.
func (c *chunk) trim() {
	for len(c.text) > 0 {
		text := strings.TrimSpace(c.text[0])
		if text != "" && text[0] != '#' && text[0] != '%' && text != "..." {
			return
		}

		c.commented = c.commented || text != "" && text[0] == '#'
		c.text = c.text[1:]
		c.line++
	}
}

// splitYAML cuts at lines that begin with "---": YAML has no such line within a document, not even in a block of text.
func splitYAML(file string, data []byte) []Document {
	chunks := []chunk{{line: 1}}
	line := 0

	for text := range strings.Lines(string(data)) {
		line++

		if rest, ok := separator(text); ok {
			chunks = append(chunks, chunk{line: line})
			text = rest
		}

		last := &chunks[len(chunks)-1]
		last.text = append(last.text, text)
	}

	if chunks[0].trim(); len(chunks[0].text) == 0 && len(chunks) > 1 {
		// What stands before the first separator is about the document behind it.
		chunks[1].commented = chunks[0].commented
		chunks = chunks[1:]
	}

	var documents []Document

	for index, each := range chunks {
		if each.trim(); len(each.text) == 0 {
			continue
		}

		documents = append(documents, Document{
			Location{File: file, Document: index, Line: each.line},
			[]byte(strings.Repeat("\n", each.line-1) + strings.Join(each.text, "")), each.commented,
		})
	}

	return documents
}

// separator tells a line that begins a document, and what else stands in it.
func separator(line string) (string, bool) {
	rest, ok := strings.CutPrefix(line, "---")
	if !ok || rest != "" && !strings.ContainsRune(" \t\r\n", rune(rest[0])) {
		return "", false
	}

	return "   " + rest, true
}

// splitJSON cuts a stream of JSON values. What is no JSON is left in one piece: YAML may begin with a brace too, and the YAML
// parser knows what is wrong with the rest.
func splitJSON(file string, data []byte) []Document {
	var documents []Document

	decoder := json.NewDecoder(bytes.NewReader(data))

	for index := 0; ; index++ {
		offset := int(decoder.InputOffset())
		offset += len(data[offset:]) - len(bytes.TrimLeft(data[offset:], " \t\r\n"))

		var value json.RawMessage

		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return documents
		}

		if err != nil {
			value = data[offset:]
		}

		line := 1 + bytes.Count(data[:offset], []byte("\n"))
		documents = append(documents, Document{
			Location{File: file, Document: index, Line: line}, append([]byte(strings.Repeat("\n", line-1)), value...), false,
		})

		if err != nil {
			return documents
		}
	}
}
