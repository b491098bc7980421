// SPDX-License-Identifier: Apache-2.0

package validating

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// How many bytes of requests are read and looked at at the same time. The API server passes on any number of requests at once, each with
// objects of up to 3 MiB, and to decode one and look at it takes many times its size: without a bound, whoever may create patches could make
// the manager run out of memory. Ordinary objects have a few KiB. What is no larger than an ordinary request has a room of its own, so that it
// never waits for what is large, nor for who only announces that.
const (
	maxOrdinary       = 64 << 10
	maxOrdinaryAtOnce = 2 << 20
	maxLargeAtOnce    = 4 << 20
)

// readTimeout is how long a request may take to come once there is room for it. The API server sends it at once, and by default waits ten
// seconds for the answer: who announces much and sends nothing must not keep the room from others for as long as that.
const readTimeout = 2 * time.Second

// Room bounds the memory of all webhooks of a manager together.
type Room struct {
	ordinary, large *semaphore.Weighted
	readTimeout     time.Duration
}

// NewRoom returns a Room for the webhooks of one manager.
func NewRoom() *Room {
	return &Room{semaphore.NewWeighted(maxOrdinaryAtOnce), semaphore.NewWeighted(maxLargeAtOnce), readTimeout}
}

// within has each request wait for room before anything of it is read, at most as long as the API server waits for the answer, and come
// whole soon after.
func (r *Room) within(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		room, size := r.of(request)

		if err := room.Acquire(request.Context(), size); err != nil {
			http.Error(out, "too many objects are being checked: try again", http.StatusServiceUnavailable)

			return
		}
		defer room.Release(size)

		if err := r.hurry(out, request); err != nil {
			http.Error(out, "the time to read the request cannot be bounded", http.StatusInternalServerError)

			return
		}

		next.ServeHTTP(out, request)
	})
}

// of returns the room that the request is let into, and how much of it. One that does not say how long it is may be as long as it likes.
func (r *Room) of(request *http.Request) (*semaphore.Weighted, int64) {
	switch size := request.ContentLength; {
	case size < 0 || size > maxLargeAtOnce:
		return r.large, maxLargeAtOnce
	case size > maxOrdinary:
		return r.large, size
	default:
		return r.ordinary, size
	}
}

// hurry bounds the time that the body takes to be read, and nothing else: the deadline ends with the body, as the server goes on to listen
// whether the client is still there, and with the request.
func (r *Room) hurry(out http.ResponseWriter, request *http.Request) error {
	if request.Body == nil || request.Body == http.NoBody {
		return nil
	}

	err := http.NewResponseController(out).SetReadDeadline(time.Now().Add(r.readTimeout))
	if errors.Is(err, http.ErrNotSupported) {
		return nil // no connection that could be slow
	}

	return err
}

// How large a spec may be. What is larger fits into no machine's config, which is kept in a Secret of at most 1 MiB, nor does etcd take much
// more; and no machine has as many settings. To look at it would only cost.
const (
	maxSpec   = 1 << 20
	maxValues = 20_000
)

// checkSize refuses a spec that is too large, before it is looked at. An update may leave it too large if it is no larger than it was: who
// has one from before there was a bound must be able to make it smaller step by step.
func checkSize(request admission.Request) *field.Error {
	now, fault := sizeOf(request.Object.Raw)
	if fault != nil {
		return fault
	}

	most := size{maxSpec, maxValues}

	if len(request.OldObject.Raw) > 0 && (now.bytes > most.bytes || now.values > most.values) {
		if before, unreadable := sizeOf(request.OldObject.Raw); unreadable == nil {
			most = size{max(most.bytes, before.bytes), max(most.values, before.values)}
		}
	}

	tooLong := func(has int, what string, allowed int) *field.Error {
		return &field.Error{
			Type: field.ErrorTypeTooLong, Field: "spec", BadValue: field.OmitValueType{},
			Detail: fmt.Sprintf("has %d %s, at most %d are allowed: what is larger fits into no machine's config", has, what, allowed),
		}
	}

	switch {
	case now.bytes > most.bytes:
		return tooLong(now.bytes, "bytes", maxSpec)
	case now.values > most.values:
		return tooLong(now.values, "values", maxValues)
	default:
		return nil
	}
}

// size of a spec.
type size struct{ bytes, values int }

func sizeOf(raw []byte) (size, *field.Error) {
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}

	if err := json.Unmarshal(raw, &object); err != nil {
		return size{}, &field.Error{Type: field.ErrorTypeInvalid, Field: "spec", BadValue: field.OmitValueType{}, Detail: "cannot be read: is no JSON"}
	}

	return size{len(object.Spec), countValues(object.Spec)}, nil
}

// countValues counts the values of a JSON text by the commas between them.
func countValues(text []byte) int {
	values, inString := 1, false

	for i := 0; i < len(text); i++ {
		switch {
		case inString && text[i] == '\\':
			i++
		case text[i] == '"':
			inString = !inString
		case !inString && text[i] == ',':
			values++
		}
	}

	return values
}
