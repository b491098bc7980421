// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// Names of settings.
const (
	SettingAllowDegradedCreation     = "allow-volume-creation-with-degraded-availability"
	SettingAllowEmptyDiskSelector    = "allow-empty-disk-selector-volume"
	SettingAllowEmptyNodeSelector    = "allow-empty-node-selector-volume"
	SettingAutoSalvage               = "auto-salvage"
	SettingConcurrentRebuildPerNode  = "concurrent-replica-rebuild-per-node-limit"
	SettingCreateDefaultDiskLabeled  = "create-default-disk-labeled-nodes"
	SettingDefaultDataPath           = "default-data-path"
	SettingDetachManuallyAttached    = "detach-manually-attached-volumes-when-cordoned"
	SettingDisableSchedulingCordoned = "disable-scheduling-on-cordoned-node"
	SettingEngineReplicaTimeout      = "engine-replica-timeout"
	SettingClusterAutoscaler         = "kubernetes-cluster-autoscaler-enabled"
	SettingNodeDrainPolicy           = "node-drain-policy"
	SettingOfflineRebuilding         = "offline-replica-rebuilding"
	SettingReplicaAutoBalance        = "replica-auto-balance"
	SettingReplicaDiskSoftAffinity   = "replica-disk-soft-anti-affinity"
	SettingReplenishmentWait         = "replica-replenishment-wait-interval"
	SettingReplicaSoftAffinity       = "replica-soft-anti-affinity"
	SettingReplicaZoneSoftAffinity   = "replica-zone-soft-anti-affinity"
	SettingMinimalAvailable          = "storage-minimal-available-percentage"
	SettingOverProvisioning          = "storage-over-provisioning-percentage"
	SettingV1DataEngine              = "v1-data-engine"
	SettingV2DataEngine              = "v2-data-engine"
	SettingV2FastRebuild             = "fast-replica-rebuild-enabled"
)

// Values of node-drain-policy.
const (
	DrainAlwaysAllow             = "always-allow"
	DrainAllowIfStopped          = "allow-if-replica-is-stopped"
	DrainBlockIfLastReplica      = "block-if-contains-last-replica"
	DrainBlockForEviction        = "block-for-eviction"
	DrainBlockForEvictionIfLastR = "block-for-eviction-if-contains-last-replica"
)

// kind says which values a setting takes.
type kind int

const (
	kindBool kind = iota
	kindNumber
	kindText
)

// definition is a setting with its default, and what it may be.
type definition struct {
	value   string
	kind    kind
	choices []string
	// perEngine settings may be JSON with a value for each data engine (1.10).
	perEngine bool
	readOnly  bool
}

// definitions are the settings that the simulation knows. Source: Longhorn 1.12 documentation, references/settings, and
// longhorn-manager types/setting.go.
var definitions = map[string]definition{
	SettingAllowDegradedCreation:     {value: "true"},
	SettingAllowEmptyDiskSelector:    {value: "true"},
	SettingAllowEmptyNodeSelector:    {value: "true"},
	SettingAutoSalvage:               {value: "true"},
	SettingConcurrentRebuildPerNode:  {value: "5", kind: kindNumber},
	SettingCreateDefaultDiskLabeled:  {value: "false"},
	SettingDefaultDataPath:           {value: "/var/lib/longhorn/", kind: kindText},
	SettingDetachManuallyAttached:    {value: "false"},
	SettingDisableSchedulingCordoned: {value: "true"},
	SettingEngineReplicaTimeout:      {value: "8", kind: kindNumber, perEngine: true},
	SettingClusterAutoscaler:         {value: "false"},
	SettingNodeDrainPolicy: {
		value: DrainBlockIfLastReplica, kind: kindText,
		choices: []string{
			DrainBlockForEviction, DrainBlockForEvictionIfLastR, DrainBlockIfLastReplica, DrainAllowIfStopped, DrainAlwaysAllow,
		},
	},
	SettingOfflineRebuilding: {value: "false"},
	SettingReplicaAutoBalance: {
		value: lh.AutoBalanceDisabled, kind: kindText,
		choices: []string{lh.AutoBalanceDisabled, lh.AutoBalanceLeastEffort, lh.AutoBalanceBestEffort},
	},
	SettingReplicaDiskSoftAffinity: {value: "true"},
	SettingReplenishmentWait:       {value: "600", kind: kindNumber},
	SettingReplicaSoftAffinity:     {value: "false"},
	SettingReplicaZoneSoftAffinity: {value: "true"},
	SettingMinimalAvailable:        {value: "25", kind: kindNumber},
	SettingOverProvisioning:        {value: "100", kind: kindNumber},
	SettingV1DataEngine:            {value: "true"},
	SettingV2DataEngine:            {value: "false"},
	SettingV2FastRebuild:           {value: "false", perEngine: true},

	// These change nothing here; the product reads them.
	"auto-delete-pod-when-volume-detached-unexpectedly": {value: "true"},
	"current-longhorn-version":                          {value: "v1.12.1", kind: kindText, readOnly: true},
	"node-down-pod-deletion-policy": {
		value: "do-nothing", kind: kindText,
		choices: []string{"do-nothing", "delete-statefulset-pod", "delete-deployment-pod", "delete-both-statefulset-and-deployment-pod"},
	},
	"orphan-resource-auto-deletion": {value: "", kind: kindText},
	"rwx-volume-fast-failover":      {value: "false"},
	"default-replica-count":         {value: `{"v1":"3","v2":"3"}`, kind: kindNumber, perEngine: true},
}

// DefaultSettings returns every setting with its default.
func DefaultSettings() map[string]string {
	all := make(map[string]string, len(definitions))
	for name, d := range definitions {
		all[name] = d.value
	}

	return all
}

// setting returns a setting's value for a data engine.
func (s *State) setting(name string, engine lh.DataEngine) string {
	value, changed := s.Settings[name]
	if !changed {
		value = definitions[name].value
	}

	byEngine := map[lh.DataEngine]string{}
	if definitions[name].perEngine && json.Unmarshal([]byte(value), &byEngine) == nil {
		return byEngine[engine]
	}

	return value
}

func (s *State) on(name string) bool { return s.setting(name, lh.DataEngineV1) == "true" }

func (s *State) number(name string) int64 {
	n, err := strconv.ParseInt(s.setting(name, lh.DataEngineV1), 10, 64)
	if err != nil {
		n, _ = strconv.ParseInt(definitions[name].value, 10, 64) // a default is a number
	}

	return n
}

func (s *State) seconds(name string) time.Duration {
	return time.Duration(s.number(name)) * time.Second
}

// override is the value of a setting that a volume may override with enabled or disabled.
func (s *State) override(name, volume string) bool {
	switch volume {
	case lh.Enabled:
		return true
	case lh.Disabled:
		return false
	}

	return s.on(name)
}

// checkSetting is what Longhorn's webhook says of a setting.
func checkSetting(name, value string) error {
	d, known := definitions[name]
	if !known {
		return fmt.Errorf("setting %s is not supported", name)
	}

	values := map[string]string{"": value}
	if d.perEngine && strings.HasPrefix(value, "{") {
		values = map[string]string{}
		if err := json.Unmarshal([]byte(value), &values); err != nil {
			return fmt.Errorf("value %s of setting %s is no JSON with a value for each data engine", value, name)
		}
	}

	for _, v := range values {
		if err := d.check(name, v); err != nil {
			return err
		}
	}

	return nil
}

func (d definition) check(name, value string) error {
	switch {
	case d.kind == kindBool && value != "true" && value != "false":
		return fmt.Errorf("value %s of setting %s should be true or false", value, name)
	case len(d.choices) > 0 && !slices.Contains(d.choices, value):
		return fmt.Errorf("value %s is not a valid choice of setting %s, available choices %v", value, name, d.choices)
	case d.kind == kindNumber:
		if n, err := strconv.ParseInt(value, 10, 64); err != nil || n < 0 {
			return fmt.Errorf("value %s of setting %s should be a number, at least 0", value, name)
		}
	}

	return nil
}
