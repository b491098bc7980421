// SPDX-License-Identifier: Apache-2.0

package validating

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// A large request waits, unread, until those before it have been answered; ordinary ones go on beside one that is large.
func TestRoom(t *testing.T) {
	g := NewWithT(t)

	entered, leave := make(chan int64, 4), make(chan struct{})
	handler := NewRoom().within(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
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

	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	refused := ask(impatient, large, "")
	g.Expect(refused.Code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(refused.Body.String()).To(ContainSubstring("too many large objects are being checked: try again"))
	g.Expect(entered).NotTo(Receive(), "it was not read")

	close(leave)
	g.Eventually(first).Should(Receive(HaveField("Code", http.StatusOK)))
	g.Expect(ask(t.Context(), large, "").Code).To(Equal(http.StatusOK), "there is room again")
	g.Expect(ask(t.Context(), 7<<20, "").Code).To(Equal(http.StatusOK), "what is larger than the room has it for itself")
}
