// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/role"
)

// transcript is what happened in a world, in order. Its zero value is empty.
type transcript struct {
	mu      sync.Mutex
	entries []entry
}

// entry is one line. A call that changes nothing is a read.
type entry struct {
	text string
	read bool
}

func (t *transcript) add(e entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries = append(t.entries, e)
}

// Transcript tells what happened to the machines, a line for each boot, installation, fault and call that could change
// something, in the order in which it happened; a call is there when it ends. Nodes go by the names of their machines.
// There are no addresses, times, identifiers or values of a configuration in it, so that the same scenario gives the same
// text.
func (w *World) Transcript() string { return w.transcript.text(false) }

// FullTranscript is the Transcript with the calls that only read; of equal lines that follow each other it has one, since
// how often a caller polls depends on the time.
func (w *World) FullTranscript() string { return w.transcript.text(true) }

func (t *transcript) text(reads bool) string {
	t.mu.Lock()
	entries := slices.Clone(t.entries)
	t.mu.Unlock()
	var lines []string
	for _, e := range entries {
		if e.read && (!reads || len(lines) > 0 && lines[len(lines)-1] == e.text) {
			continue
		}
		lines = append(lines, e.text)
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// note adds a line about the machine.
func (n *Node) note(format string, args ...any) {
	n.world.transcript.add(entry{text: n.Name() + ": " + fmt.Sprintf(format, args...)})
}

type remarksKey struct{}

// remarks are what a call adds to its line.
type remarks struct {
	mu    sync.Mutex
	words []string
	// reads is set by a call that changed nothing, though others of its method do.
	reads bool
}

// remark is where a call says more about itself.
func remark(ctx context.Context) *remarks {
	if r, ok := ctx.Value(remarksKey{}).(*remarks); ok {
		return r
	}
	return &remarks{}
}

func (r *remarks) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.words = append(r.words, fmt.Sprintf(format, args...))
}

// readOnly are the methods that change nothing although they are not for readers.
var readOnly = []string{
	"/machine.MachineService/Read", "/machine.MachineService/Copy", "/machine.MachineService/Kubeconfig",
	"/machine.MachineService/EtcdSnapshot", "/machine.MachineService/GenerateClientConfiguration",
}

// changes tells whether calls of a method can change something.
func changes(full string) bool {
	if slices.Contains(readOnly, full) {
		return false
	}
	switch full {
	case "/machine.MachineService/ApplyConfiguration", "/storage.StorageService/BlockDeviceWipe":
		return true // a reader may, in maintenance mode
	}
	allowed, known := allowedRoles[full]
	return !known || !allowed.Includes(role.Reader)
}

// noteCall adds a call's line.
func (n *Node) noteCall(full string, roles role.Set, r *remarks, code string) {
	r.mu.Lock()
	words := slices.Concat([]string{shortMethod(full)}, r.words)
	read := r.reads || !changes(full)
	r.mu.Unlock()
	text := fmt.Sprintf("%s: %s by %s: %s", n.Name(), strings.Join(words, " "), strings.Join(roles.Strings(), ","), code)
	n.world.transcript.add(entry{text: text, read: read})
}

// describe names the faults that are set, without what they say.
func (f Faults) describe() string {
	var names []string
	value := reflect.ValueOf(f)
	for i := range value.NumField() {
		if !value.Field(i).IsZero() {
			names = append(names, value.Type().Field(i).Name)
		}
	}
	if len(names) == 0 {
		return "no faults"
	}
	return "faults: " + strings.Join(names, ", ")
}
