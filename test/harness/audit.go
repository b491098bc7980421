// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditPolicy has the API server note every request without its body. A request is noted when it has been answered; one
// that goes on, such as a watch, when its answer begins, and once more at its end.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// Request is what the API server has noted of a request that it has answered, or begun to answer.
type Request struct {
	// User who made it, and UserAgent of the program that did.
	User, UserAgent string

	// Verb is that of a role: get, list, watch, create, update, patch, delete, deletecollection. For a URI that is no
	// resource's it is the HTTP method in lower case.
	Verb string

	// Group, Resource and Subresource are empty for a URI that is no resource's.
	Group, Resource, Subresource string

	Namespace, Name string

	URI string

	// Code is the HTTP status of the answer.
	Code int

	// Received is when the API server got the request, and Answered when it had answered, or begun to.
	Received, Answered time.Time
}

// Forbidden says that the user lacked a right.
func (r Request) Forbidden() bool { return r.Code == http.StatusForbidden }

// Requests returns what a user has asked of the API server so far, in order. It needs Options.Audit.
func (mc *ManagementCluster) Requests(user string) ([]Request, error) {
	if !mc.options.Audit {
		return nil, errors.New("requests are noted only with Options.Audit")
	}
	content, err := os.ReadFile(mc.auditLog())
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return requestsOf(content, user)
}

// RequestReader reads the requests of a user as they come.
type RequestReader struct {
	user   string
	log    *os.File
	offset int64
}

// FollowRequests begins to read the requests of a user that come from now on. It needs Options.Audit.
func (mc *ManagementCluster) FollowRequests(user string) (*RequestReader, error) {
	if !mc.options.Audit {
		return nil, errors.New("requests are noted only with Options.Audit")
	}
	log, err := os.Open(mc.auditLog())
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	offset, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("audit log: %w", err), log.Close())
	}
	return &RequestReader{user: user, log: log, offset: offset}, nil
}

// Next returns the requests that were noted since the last call. One that goes on may be among those of two calls.
func (r *RequestReader) Next() ([]Request, error) {
	content, err := io.ReadAll(io.NewSectionReader(r.log, r.offset, math.MaxInt64-r.offset))
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	r.offset += int64(bytes.LastIndexByte(content, '\n') + 1)
	return requestsOf(content, r.user)
}

// Close ends the reading.
func (r *RequestReader) Close() error { return r.log.Close() }

// requestsOf reads an audit log. What follows the last newline is still being written.
func requestsOf(content []byte, user string) ([]Request, error) {
	var requests []Request
	position := map[string]int{}
	for line := range bytes.Lines(content[:bytes.LastIndexByte(content, '\n')+1]) {
		// Most requests of a busy cluster are somebody else's.
		if !bytes.Contains(line, []byte(user)) {
			continue
		}
		event := auditv1.Event{}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if event.User.Username != user {
			continue
		}
		request := requestOf(event)
		if at, seen := position[string(event.AuditID)]; seen {
			requests[at] = request
			continue
		}
		position[string(event.AuditID)] = len(requests)
		requests = append(requests, request)
	}
	return requests, nil
}

func requestOf(event auditv1.Event) Request {
	request := Request{
		User: event.User.Username, UserAgent: event.UserAgent, Verb: event.Verb, URI: event.RequestURI,
		Received: event.RequestReceivedTimestamp.Time, Answered: event.StageTimestamp.Time,
	}
	if object := event.ObjectRef; object != nil {
		request.Group, request.Resource, request.Subresource = object.APIGroup, object.Resource, object.Subresource
		request.Namespace, request.Name = object.Namespace, object.Name
	}
	if event.ResponseStatus != nil {
		request.Code = int(event.ResponseStatus.Code)
	}
	return request
}

func (mc *ManagementCluster) auditLog() string {
	return filepath.Join(mc.dir, "audit.log")
}

// auditArguments prepares the audit of the API server. The log is written before a request ends, so that who has seen an
// answer finds the request in it.
func (mc *ManagementCluster) auditArguments() ([]string, error) {
	if !mc.options.Audit {
		return nil, nil
	}
	policy := filepath.Join(mc.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o644); err != nil {
		return nil, err
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + mc.auditLog(),
		"--audit-log-mode=blocking",
		// One file, whatever its size.
		"--audit-log-maxsize=0",
	}, nil
}
