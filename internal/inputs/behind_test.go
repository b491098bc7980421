// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

func metaOf(name string, uid types.UID, generation int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, Generation: generation}
}

func patch(name string, uid types.UID, generation int64) client.Object {
	return &bootstrapv1.TalosConfigPatch{ObjectMeta: metaOf(name, uid, generation)}
}

func readerOf(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Reader {
	t.Helper()

	scheme := runtime.NewScheme()
	NewWithT(t).Expect(bootstrapv1.AddToScheme(scheme)).To(Succeed())

	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

// at gives the lists of a reader a resource version, which the fake client's have none of.
func at(version string) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		err := c.List(ctx, list, options...)
		list.SetResourceVersion(version)

		return err
	}}
}

// A cache that does not know of an object, or knows it as it was, is behind; one that knows more than the list is not.
func TestBehind(t *testing.T) {
	elsewhere := patch("elsewhere", "e", 1)
	elsewhere.SetNamespace("other")

	for name, test := range map[string]struct {
		cached, live []client.Object

		// version is that of the live list. The fake client begins with 999.
		version, want string
	}{
		"nothing is there":          {nil, nil, "1000", ""},
		"all is known":              {[]client.Object{patch("a", "a", 2)}, []client.Object{patch("a", "a", 2)}, "1000", ""},
		"a patch is new":            {[]client.Object{patch("a", "a", 1)}, []client.Object{patch("a", "a", 1), patch("b", "b", 1)}, "1000", "TalosConfigPatch b"},
		"a patch has changed":       {[]client.Object{patch("a", "a", 1)}, []client.Object{patch("a", "a", 2)}, "1000", "TalosConfigPatch a"},
		"a patch was made anew":     {[]client.Object{patch("a", "a", 3)}, []client.Object{patch("a", "b", 1)}, "1000", "TalosConfigPatch a"},
		"a patch is gone":           {[]client.Object{patch("a", "a", 1)}, nil, "1000", "TalosConfigPatch a"},
		"a patch came since":        {[]client.Object{patch("a", "a", 1)}, nil, "998", ""},
		"a patch has changed since": {[]client.Object{patch("a", "a", 2)}, []client.Object{patch("a", "a", 1)}, "998", ""},
		"settings are new":          {nil, []client.Object{&bootstrapv1.TalosClusterConfig{ObjectMeta: metaOf("c", "c", 1)}}, "1000", "TalosClusterConfig c"},
		"storage is new":            {nil, []client.Object{&bootstrapv1.TalosStorage{ObjectMeta: metaOf("s", "s", 1)}}, "1000", "TalosStorage s"},
		"another namespace's":       {nil, []client.Object{elsewhere}, "1000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reader := NewReader(readerOf(t, interceptor.Funcs{}, test.cached...), readerOf(t, at(test.version), test.live...), nil)

			got, err := reader.Behind(t.Context(), "ns")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
}

// That the API server does not let the manager list says what it is that may not be read.
func TestBehindDenied(t *testing.T) {
	denied := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(bootstrapv1.GroupVersion.WithResource("talosclusterconfigs").GroupResource(), "", errors.New("no"))
	}}

	_, err := NewReader(readerOf(t, interceptor.Funcs{}), readerOf(t, denied), nil).Behind(t.Context(), "ns")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("TalosClusterConfigs: read")))
}

// However many ask at once, a look that has begun before one of them asked does not answer that one, and the next one answers all of them.
func TestLooksAreShared(t *testing.T) {
	const many = 50

	var (
		g       = NewWithT(t)
		looks   = newLooks()
		count   atomic.Int64
		entered = make(chan struct{})
		leave   = make(chan struct{})
		done    sync.WaitGroup
	)

	done.Go(func() {
		_, _ = looks.after("ns", func() (string, error) {
			close(entered)
			<-leave

			return "old", nil
		})
	})
	<-entered

	waiting := make(chan struct{}, many)
	answers := make(chan string, many)

	for range many {
		done.Go(func() {
			waiting <- struct{}{}

			got, err := looks.after("ns", func() (string, error) {
				count.Add(1)

				return "new", nil
			})
			if err == nil {
				answers <- got
			}
		})
	}

	for range many {
		<-waiting
	}

	// Another namespace does not wait.
	got, err := looks.after("other", func() (string, error) { return "other", nil })
	g.Expect(got, err).To(Equal("other"))

	close(leave)
	done.Wait()
	close(answers)

	for answer := range answers {
		g.Expect(answer).To(Equal("new"))
	}

	g.Expect(count.Load()).To(And(BeNumerically(">=", 1), BeNumerically("<", many)), "a few may ask a moment after the others")
}

// The end of somebody else's time is no answer for who has time left.
func TestLooksOfThoseWhoseTimeIsOver(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"an answer":        {nil, "theirs"},
		"a refusal":        {errors.New("no"), "theirs"},
		"their time is up": {fmt.Errorf("list: %w", context.DeadlineExceeded), "ours"},
		"they have ended":  {context.Canceled, "ours"},
	} {
		looks := newLooks()

		// Another look begins after the call, and ends before its turn comes.
		last := looks.of("ns")
		last.number, last.found, last.err = 7, "theirs", test.err

		if got, _ := looks.after("ns", func() (string, error) { return "ours", nil }); got != test.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
