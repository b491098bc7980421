// SPDX-License-Identifier: Apache-2.0

// Package acceptance proves the generated documents against those who read them: Talos machinery, by round trips of its own
// test data and of maximal documents, and the API server's validation, by a CRD made of them.
//
// It holds tests only. Unlike the rest of the generator it imports what is generated, and machinery.
package acceptance
