// SPDX-License-Identifier: Apache-2.0

package validating

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// A large request waits, unread, until those before it have been answered; ordinary ones go on beside one that is large.
func TestRoom(t *testing.T) {
	g := NewWithT(t)

	entered, leave := make(chan int64, 4), make(chan struct{})
	room := NewRoom()
	handler := room.within(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		entered <- request.ContentLength

		if request.Header.Get("Wait") != "" {
			<-leave
		}

		_, _ = io.Copy(io.Discard, request.Body)
	}))

	ask := func(ctx context.Context, size int, wait string) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(make([]byte, size)))
		request.Header.Set("Wait", wait)

		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)

		return answer
	}

	const large = 3 << 20

	first := make(chan *httptest.ResponseRecorder, 1)

	go func() { first <- ask(t.Context(), large, "yes") }()

	g.Eventually(entered).Should(Receive(Equal(int64(large))))

	g.Expect(ask(t.Context(), 1000, "").Code).To(Equal(http.StatusOK), "an ordinary request beside it")
	g.Expect(entered).To(Receive(Equal(int64(1000))))

	queued, leaveQueue := context.WithCancel(t.Context())
	last := make(chan *httptest.ResponseRecorder, 1)

	go func() { last <- ask(queued, large, "") }()

	// There is room for a byte, and nobody gets it any more once a request waits.
	g.Eventually(func() bool {
		free := room.large.TryAcquire(1)
		if free {
			room.large.Release(1)
		}

		return free
	}).Should(BeFalse())

	for range 10 {
		g.Expect(ask(t.Context(), maxOrdinary, "").Code).To(Equal(http.StatusOK), "an ordinary request waits for no large one, nor for one that waits")
		g.Expect(entered).To(Receive(Equal(int64(maxOrdinary))))
	}

	g.Expect(last).NotTo(Receive())
	leaveQueue()
	g.Eventually(last).Should(Receive(HaveField("Code", http.StatusServiceUnavailable)))

	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	refused := ask(impatient, large, "")
	g.Expect(refused.Code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(refused.Body.String()).To(ContainSubstring("too many objects are being checked: try again"))
	g.Expect(entered).NotTo(Receive(), "it was not read")

	close(leave)
	g.Eventually(first).Should(Receive(HaveField("Code", http.StatusOK)))
	g.Expect(ask(t.Context(), large, "").Code).To(Equal(http.StatusOK), "there is room again")
	g.Expect(ask(t.Context(), 7<<20, "").Code).To(Equal(http.StatusOK), "what is larger than the room has it for itself")
}

// Who announces a large request and sends nothing keeps the room for no more than a moment; who has sent all is given time.
func TestRoomIsNotKeptBySilence(t *testing.T) {
	const large = 1 << 20

	for name, start := range map[string]func(*httptest.Server){
		"HTTP/1.1": (*httptest.Server).StartTLS,
		"HTTP/2":   func(server *httptest.Server) { server.EnableHTTP2 = true; server.StartTLS() },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			room := NewRoom()
			g.Expect(room.readTimeout).To(And(Equal(readTimeout), BeNumerically("<=", 2*time.Second)), "a fraction of what the API server waits")
			room.readTimeout = 500 * time.Millisecond

			failed, entered := make(chan error, 1), make(chan struct{}, 1)
			server := httptest.NewUnstartedServer(room.within(http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
				if request.Header.Get("Silent") != "" {
					entered <- struct{}{}

					_, err := io.ReadAll(request.Body)
					failed <- err

					return
				}

				body, err := io.ReadAll(request.Body)

				select {
				case <-request.Context().Done():
					err = request.Context().Err()
				case <-time.After(2 * room.readTimeout):
				}

				_, _ = fmt.Fprintf(out, "%d %v", len(body), err)
			})))
			start(server)
			t.Cleanup(server.Close)

			silence, end := io.Pipe()
			t.Cleanup(func() { _ = end.Close() })

			silent, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, silence)
			g.Expect(err).NotTo(HaveOccurred())

			silent.ContentLength = maxLargeAtOnce
			silent.Header.Set("Silent", "yes")

			go func() {
				if answer, err := server.Client().Do(silent); err == nil {
					_ = answer.Body.Close()
				}
			}()

			g.Eventually(entered, 5*time.Second).Should(Receive())

			for range 2 { // the second over the same connection
				answer, err := server.Client().Post(server.URL, "", bytes.NewReader(make([]byte, large)))
				g.Expect(err).NotTo(HaveOccurred())

				text, err := io.ReadAll(answer.Body)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(answer.Body.Close()).To(Succeed())
				g.Expect(string(text)).To(Equal(fmt.Sprintf("%d <nil>", large)))
			}

			g.Expect(failed).To(Receive(MatchError(os.ErrDeadlineExceeded)))
		})
	}
}

// What is too large may not become larger, and may become smaller step by step.
func TestCheckSize(t *testing.T) {
	object := func(values, letters int) []byte {
		if values == 0 {
			return nil
		}

		return []byte(`{"metadata":{"annotations":{"a":",,,"}},"spec":["` + strings.Repeat("a", letters) + `"` + strings.Repeat(",1", values-1) + `]}`)
	}

	type spec struct{ values, letters int }

	tests := map[string]struct {
		before, after spec
		want          string
	}{
		"at most":                       {spec{}, spec{maxValues, 0}, ""},
		"too many":                      {spec{}, spec{maxValues + 1, 0}, "has 20001 values, at most 20000 are allowed"},
		"too long":                      {spec{}, spec{1, maxSpec}, "has 1048580 bytes, at most 1048576 are allowed"},
		"becomes too many":              {spec{maxValues, 0}, spec{maxValues + 1, 0}, "has 20001 values, at most 20000 are allowed"},
		"fewer, still too many":         {spec{30_000, 0}, spec{29_999, 0}, ""},
		"as many, still too many":       {spec{30_000, 0}, spec{30_000, 1}, ""},
		"more, was too many":            {spec{30_000, 0}, spec{30_001, 0}, "has 30001 values, at most 20000 are allowed"},
		"shorter, still too long":       {spec{1, maxSpec + 10}, spec{1, maxSpec + 9}, ""},
		"longer, was too long":          {spec{1, maxSpec}, spec{1, maxSpec + 1}, "has 1048581 bytes, at most 1048576 are allowed"},
		"shorter, but becomes too many": {spec{1, maxSpec + 10}, spec{maxValues + 1, 0}, "has 20001 values, at most 20000 are allowed"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			request := admission.Request{}
			request.Object.Raw = object(test.after.values, test.after.letters)
			request.OldObject.Raw = object(test.before.values, test.before.letters)

			if err := checkSize(request); test.want == "" {
				g.Expect(err).To(BeNil())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			}
		})
	}
}
