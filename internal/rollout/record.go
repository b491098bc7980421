// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// BootstrapRecord says on which machine etcd is bootstrapped: the value of BootstrapAnnotation.
type BootstrapRecord struct {
	Machine string `json:"machine"`

	// Done is true once the Kubernetes API server has answered. From then on nothing is ever bootstrapped.
	Done bool `json:"done,omitempty"`
}

// BootstrapMark is such a record as it was read. The zero value is none.
type BootstrapMark struct {
	// Set is true when there is a record, readable or not.
	Set    bool
	Record BootstrapRecord

	// Problem says why it cannot be read.
	Problem string
}

// Marshal is the record as an annotation has it.
func (r BootstrapRecord) Marshal() string { return marshal(r) }

// ParseBootstrapMark reads the value of an annotation. What cannot be read counts as set: a record that nobody understands must not
// allow a second bootstrap.
func ParseBootstrapMark(value string, set bool) BootstrapMark {
	if !set {
		return BootstrapMark{}
	}

	mark := BootstrapMark{Set: true}

	if err := json.Unmarshal([]byte(value), &mark.Record); err != nil {
		mark.Problem = "it is not the JSON of a record"
	} else if mark.Record.Machine == "" {
		mark.Problem = "it names no machine"
	}

	return mark
}

// RemediationRecord is the value of the annotations that follow a remediation.
type RemediationRecord struct {
	// Machine that was deleted because it was unhealthy.
	Machine string `json:"machine"`

	// Timestamp of the decision, in whole seconds.
	Timestamp time.Time `json:"timestamp"`

	// RetryCount is how many times in a row the replacement was unhealthy itself.
	RetryCount int `json:"retryCount"`
}

// Marshal is the record as an annotation has it.
func (r RemediationRecord) Marshal() string { return marshal(r) }

// ParseRemediationRecord reads the value of an annotation.
func ParseRemediationRecord(value string) (*RemediationRecord, error) {
	r := &RemediationRecord{}
	if err := json.Unmarshal([]byte(value), r); err != nil {
		return nil, fmt.Errorf("read the record of a remediation: %w", err)
	}

	if r.Machine == "" {
		return nil, errors.New("read the record of a remediation: it names no machine")
	}

	return r, nil
}

func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // records hold strings, numbers and times in years of four digits only
	}

	return string(data)
}
