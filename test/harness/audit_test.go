// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	. "github.com/onsi/gomega"
)

const auditLines = `{"stage":"ResponseComplete","auditID":"1","verb":"get","requestURI":"/a","user":{"username":"me"},"objectRef":{"resource":"secrets","namespace":"n","name":"s"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","auditID":"2","verb":"get","requestURI":"/b","user":{"username":"another"},"responseStatus":{"code":200}}
{"stage":"ResponseStarted","auditID":"3","verb":"watch","requestURI":"/c","user":{"username":"me"},"objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","auditID":"4","verb":"patch","requestURI":"/d","user":{"username":"me"},"objectRef":{"resource":"talosconfigs","subresource":"status"},"responseStatus":{"code":403}}
{"stage":"ResponseComplete","auditID":"3","verb":"watch","requestURI":"/c","user":{"username":"me"},"objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","auditID":"5","verb":"get","user":{"userna`

func TestRequestsOf(t *testing.T) {
	g := NewWithT(t)

	requests, err := requestsOf([]byte(auditLines), "me")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requests).To(Equal([]Request{
		{User: "me", Verb: "get", Resource: "secrets", Namespace: "n", Name: "s", URI: "/a", Code: 200},
		{User: "me", Verb: "watch", Group: "coordination.k8s.io", Resource: "leases", URI: "/c", Code: 200},
		{User: "me", Verb: "patch", Resource: "talosconfigs", Subresource: "status", URI: "/d", Code: 403},
	}))
	g.Expect(requests[2].Forbidden()).To(BeTrue())

	_, err = (&ManagementCluster{}).Requests("me")
	g.Expect(err).To(MatchError(ContainSubstring("Options.Audit")))
}
