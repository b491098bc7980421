// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// RemediationSpec limits how often unhealthy machines are replaced. A retry is the replacement of a machine that was itself made
// to replace an unhealthy one.
// +kubebuilder:validation:MinProperties=1
type RemediationSpec struct {
	// maxRetry is how many retries there may be in a row. Unset: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRetry *int32 `json:"maxRetry,omitempty"`

	// retryPeriodSeconds is the least time between a remediation and its retry. Unset or 0: none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RetryPeriodSeconds *int32 `json:"retryPeriodSeconds,omitempty"`

	// minHealthyPeriodSeconds is the time after a remediation from which a new fault counts as another one, and retries are
	// counted from 0 again. Unset: 3600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinHealthyPeriodSeconds *int32 `json:"minHealthyPeriodSeconds,omitempty"`
}
