// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	talos "github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/storage"
	"k8s.io/utils/lru"

	"github.com/maesh-dev/ichor/internal/expression"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// maxExpressions is how many letters the expressions of a patch may have together, so that the time for many of them is bounded too.
const maxExpressions = 16 * expression.MaxLength

var errManyExpressions = fmt.Errorf("the expressions of the patch have more than %d letters together: make several patches of it", maxExpressions)

// expressionField is a field that holds a CEL expression, with what Talos checks it by.
type expressionField struct {
	pointer string
	parse   func(string, *cel.Env) (talos.Expression, error)
	env     func() *cel.Env
}

// sound are expressions in which nothing was found: a patch's are the same for all its machines, and are parsed once for many of them. What
// is kept depends on the text and on what it is over alone.
var sound = lru.New(256)

// soundExpression is an expression by the fields that it is over: an environment is made once.
type soundExpression struct {
	env  *cel.Env
	text string
}

// judge says what is wrong with an expression.
func (f expressionField) judge(text string) error {
	key := soundExpression{f.env(), text}
	if _, ok := sound.Get(key); ok {
		return nil
	}

	if _, err := f.parse(text, key.env); err != nil {
		return err
	}

	sound.Add(key, nil)

	return nil
}

// expressionFields are those of each kind.
var expressionFields = map[string][]expressionField{
	block.ExistingVolumeConfigKind:      {{"/discovery/volumeSelector/match", expression.ParseSelector, celenv.VolumeLocator}},
	block.RawVolumeConfigKind:           {{"/provisioning/diskSelector/match", expression.ParseSelector, celenv.DiskLocator}},
	block.SwapVolumeConfigKind:          {{"/provisioning/diskSelector/match", expression.ParseSelector, celenv.DiskLocator}},
	block.UserVolumeConfigKind:          {{"/provisioning/diskSelector/match", expression.ParseSelector, celenv.DiskLocator}},
	block.VolumeConfigKind:              {{"/provisioning/diskSelector/match", expression.ParseSelector, celenv.DiskLocator}},
	network.LinkAliasKind:               {{"/selector/match", expression.ParseSelector, celenv.LinkLocator}},
	runtime.UnattendedInstallConfigKind: {{"/provisioning/diskSelector/match", expression.ParseSelector, celenv.DiskLocator}},
	runtime.OOMKind: {
		{"/triggerExpression", expression.ParseBoolean, celenv.OOMTrigger},
		{"/cgroupRankingExpression", expression.ParseDouble, celenv.OOMCgroupScoring},
	},
	storage.LVMVolumeGroupConfigKind: {{"/provisioning/volumeSelector/match", expression.ParseSelector, celenv.MemberVolumeLocator}},
	storage.RAIDArrayConfigKind:      {{"/provisioning/volumeSelector/match", expression.ParseSelector, celenv.MemberVolumeLocator}},
}

// badExpressions finds expressions that Talos cannot read, that are over fields that it does not have, or that select nothing. A merge replaces an expression
// as a whole, so no other patch makes it right. letters is how many the patch may still have.
func badExpressions(document config.Document, letters *int) []finding {
	fields := expressionFields[document.Kind()]
	if len(fields) == 0 {
		return nil
	}

	var findings []finding

	for _, leaf := range merge.LeavesOf(document) {
		for _, field := range fields {
			if leaf.Pointer != field.pointer {
				continue
			}

			text := leaf.Value.Reveal()
			if *letters -= utf8.RuneCountInString(text); *letters < 0 {
				findings = append(findings, finding{document: merge.IDOf(document), field: leaf.Pointer, err: errManyExpressions})

				continue
			}

			if err := field.judge(text); err != nil {
				findings = append(findings, finding{document: merge.IDOf(document), field: leaf.Pointer, err: err})
			}
		}
	}

	return findings
}

// deadSelectors finds expressions of a merged config that select nothing. The rest Talos says itself.
func deadSelectors(documents []config.Document) []finding {
	var dead []finding

	letters := maxExpressions

	for _, document := range documents {
		for _, found := range badExpressions(document, &letters) {
			if errors.Is(found.err, expression.ErrNeverTrue) {
				dead = append(dead, found)
			}
		}
	}

	return dead
}
