// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/harness"
)

const (
	// observer is who asks.
	observer = "ichor-observer"

	// tokenLife is longer than anything that is measured.
	tokenLife = 6 * time.Hour
)

// Diagnostics reads the protected endpoint of managers that run as processes of their own: their metrics and their profiles, of
// which an unprotected endpoint has none.
type Diagnostics struct {
	client *http.Client
	token  string
}

// NewDiagnostics makes a ServiceAccount that may read them all. The manager must have its rights, which it needs to know who asks.
func NewDiagnostics(ctx context.Context, c client.Client) (*Diagnostics, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Bootstrap.Namespace, Name: observer}}

	for _, object := range []client.Object{
		account,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: observer}, Rules: []rbacv1.PolicyRule{
			{NonResourceURLs: []string{"/metrics", "/debug/pprof/*"}, Verbs: []string{"get"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: observer},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: observer},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Bootstrap.Namespace, Name: observer}},
		},
	} {
		if err := c.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("rights to read diagnostics: %w", err)
		}
	}

	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLife.Seconds()))}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("token to read diagnostics: %w", err)
	}

	return &Diagnostics{
		// The manager makes a certificate of its own when it starts.
		client: &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // see above
		}},
		token: request.Status.Token,
	}, nil
}

// Get reads a path. An answer other than 200 is an error.
func (d *Diagnostics) Get(ctx context.Context, manager *harness.Provider, path string) (content []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+manager.DiagnosticsAddress+path, nil)
	if err != nil {
		return nil, err
	}

	request.Header.Set("Authorization", "Bearer "+d.token)

	response, err := d.client.Do(request)
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, response.Body.Close()) }()

	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", request.URL, response.Status)
	}

	return io.ReadAll(response.Body)
}
