// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"hash/maphash"
	"maps"
	"sync"
)

const (
	// maxTexts, maxTextBytes and maxMaps bound what is shared. Whoever has more different ones than that gets copies of some, and nothing breaks.
	maxTexts     = 8192
	maxTextBytes = 2 << 20
	maxMaps      = 1024

	// maxTextLength is that of a text that is worth looking for. Longer ones are seldom the same.
	maxTextLength = 4096
)

// Shared has one copy of the texts and maps that many objects of a cache have in common: names of labels, kinds and clusters, the labels of a
// MachineSet. Decoding makes a copy for each object. It may be used by many at once.
type Shared struct {
	seed maphash.Seed

	mu    sync.Mutex
	texts map[string]string
	bytes int
	maps  map[uint64]map[string]string
}

// NewShared returns an empty Shared.
func NewShared() *Shared {
	return &Shared{seed: maphash.MakeSeed(), texts: map[string]string{}, maps: map[uint64]map[string]string{}}
}

// Text returns an equal text, the same for all that ask.
func (s *Shared) Text(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.text(text)
}

func (s *Shared) text(text string) string {
	if text == "" || len(text) > maxTextLength {
		return text
	}

	if known, ok := s.texts[text]; ok {
		return known
	}

	// What is forgotten stays with those that have it.
	if len(s.texts) >= maxTexts || s.bytes+len(text) > maxTextBytes {
		clear(s.texts)

		s.bytes = 0
	}

	s.texts[text] = text
	s.bytes += len(text)

	return text
}

// Map returns an equal map, the same for all that ask. It must not be changed by anybody. Nil stays nil.
func (s *Shared) Map(values map[string]string) map[string]string {
	if values == nil {
		return nil
	}

	sum := s.sum(values)

	s.mu.Lock()
	defer s.mu.Unlock()

	// Other maps may have the same sum, though hardly ever.
	if known, ok := s.maps[sum]; ok && maps.Equal(known, values) {
		return known
	}

	if len(s.maps) >= maxMaps {
		clear(s.maps)
	}

	shared := make(map[string]string, len(values))
	for key, value := range values {
		shared[s.text(key)] = s.text(value)
	}

	s.maps[sum] = shared

	return shared
}

// sum is the same for equal maps, whatever their order.
func (s *Shared) sum(values map[string]string) (sum uint64) {
	for key, value := range values {
		sum += maphash.Comparable(s.seed, [2]string{key, value})
	}

	return sum
}
