// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"
)

// fallen takes down how a test fails, and ends it as a test does.
type fallen struct{ text string }

func (*fallen) Helper() {}

func (f *fallen) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)

	runtime.Goexit()
}

// A wait that is in vain names its step, and what it saw last.
func TestFailureNamesItsStep(t *testing.T) {
	inVain := func(s *Scenario) {
		s.Eventually(func() error { return errors.New("cp2 is in maintenance mode") }).WithTimeout(interval).Should(Succeed())
	}

	tests := map[string]struct {
		do   func(s *Scenario)
		want string
	}{
		"in a step":      {func(s *Scenario) { s.within("bootstrap", func() { inVain(s) }) }, `in the step "bootstrap":`},
		"in a later one": {func(s *Scenario) { s.within("create", func() {}); s.within("scale", func() { inVain(s) }) }, `in the step "scale":`},
		"between steps":  {func(s *Scenario) { s.within("scale", func() {}); inVain(s) }, `after the step "scale":`},
		"before any":     {inVain, "\nTimed out"},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			said, ended := &fallen{}, make(chan struct{})

			go func() {
				defer close(ended)

				s := &Scenario{}
				s.WithT = s.telling(said)
				tt.do(s)
			}()
			<-ended

			NewWithT(t).Expect(said.text).To(And(HavePrefix(tt.want), ContainSubstring("cp2 is in maintenance mode")))
		})
	}
}
