// SPDX-License-Identifier: Apache-2.0

package longhornsim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

const (
	webhookName = "longhorn-webhook-validator"
	webhookPath = "/v1/webhook/validation"
)

// webhook is Longhorn's validating webhook.
type webhook struct {
	sim     *Sim
	decoder admission.Decoder
	server  *http.Server
	name    string

	mu sync.Mutex
	// down refuses to answer; syncing is how many more changes of nodes are told to come later.
	down    bool
	syncing int
}

// serving is the certificate of all webhooks of the process. To make a key takes longer than all else of a start.
var serving struct {
	sync.Mutex

	certificate []byte
	pair        tls.Certificate
}

func servingCertificate() ([]byte, tls.Certificate, error) {
	serving.Lock()
	defer serving.Unlock()

	if serving.certificate != nil {
		return serving.certificate, serving.pair, nil
	}

	certificate, key, err := cert.GenerateSelfSignedCertKey("longhorn-admission-webhook", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, tls.Certificate{}, err
	}

	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, tls.Certificate{}, err
	}

	serving.certificate, serving.pair = certificate, pair

	return certificate, pair, nil
}

// startWebhook serves the webhook on a loopback address, and has the API server ask it. What Longhorn itself writes is not
// asked about: the model keeps its own rules.
func (s *Sim) startWebhook(ctx context.Context) (*webhook, error) {
	certificate, pair, err := servingCertificate()
	if err != nil {
		return nil, err
	}

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	w := &webhook{sim: s, decoder: admission.NewDecoder(scheme()), name: webhookName}
	if s.options.Namespace != DefaultNamespace {
		w.name += "-" + s.options.Namespace
	}

	handler, err := admission.StandaloneWebhook(&admission.Webhook{Handler: w}, admission.StandaloneOptions{})
	if err != nil {
		return nil, err
	}

	w.server = &http.Server{
		Handler: w.unlessDown(handler), ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}

	go func() { _ = w.server.ServeTLS(listener, "", "") }() // ends with stop

	configuration := w.configuration("https://"+listener.Addr().String()+webhookPath, certificate)

	// One of a simulation before it leads nowhere.
	if err := client.IgnoreNotFound(s.client.Delete(ctx, configuration.DeepCopy())); err != nil {
		return w, err
	}

	return w, s.client.Create(ctx, configuration)
}

func (w *webhook) configuration(url string, ca []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	rule := func(group, version, resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
			},
		}
	}

	const (
		create = admissionregistrationv1.Create
		update = admissionregistrationv1.Update
		remove = admissionregistrationv1.Delete
	)

	group, version := lh.GroupVersion.Group, lh.GroupVersion.Version
	hook := admissionregistrationv1.ValidatingWebhook{
		Name:                    "validator.longhorn.io",
		ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new(url), CABundle: ca},
		FailurePolicy:           new(admissionregistrationv1.Fail),
		MatchPolicy:             new(admissionregistrationv1.Exact),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
		TimeoutSeconds:          new(int32(10)),
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "not-longhorn", Expression: fmt.Sprintf("request.userInfo.username != %q", w.sim.userName()),
		}},
	}

	objects := hook
	objects.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.sim.options.Namespace}}
	objects.Rules = []admissionregistrationv1.RuleWithOperations{
		rule(group, version, "nodes", create, update, remove),
		rule(group, version, "replicas", create, update, remove),
		rule(group, version, "volumes", create, update),
		rule(group, version, "volumeattachments", create, update),
		rule(group, version, "instancemanagers", create, update),
		rule(group, version, "settings", create, update, remove),
	}

	nodes := hook
	nodes.Name = "node.validator.longhorn.io"
	nodes.ObjectSelector = &metav1.LabelSelector{MatchLabels: w.sim.options.NodeLabels}
	nodes.Rules = []admissionregistrationv1.RuleWithOperations{rule("", "v1", "nodes", update)}

	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{objects, nodes},
	}
}

// unlessDown cuts connections while the webhook is down, as a Service does whose pods are gone.
func (w *webhook) unlessDown(next http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		w.mu.Lock()
		down := w.down
		w.mu.Unlock()

		if down {
			panic(http.ErrAbortHandler)
		}

		next.ServeHTTP(response, request)
	})
}

func (w *webhook) stop(c client.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.name}}

	return errors.Join(client.IgnoreNotFound(c.Delete(ctx, configuration)), w.server.Close())
}

// Handle answers as Longhorn does: Forbidden for what may be granted later, Invalid for what may not.
func (w *webhook) Handle(ctx context.Context, request admission.Request) admission.Response {
	state, err := w.sim.ownState(ctx)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}

	err = w.judge(state, request)

	var refusal *model.RefusalError

	switch {
	case err == nil:
		return admission.Allowed("")
	case errors.As(err, &refusal) && refusal.Later:
		return answer(http.StatusForbidden, metav1.StatusReasonForbidden, refusal.Message)
	case errors.As(err, &refusal):
		return answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, refusal.Message)
	}

	return admission.Errored(http.StatusBadRequest, err)
}

func answer(code int32, reason metav1.StatusReason, message string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message},
	}}
}

func (w *webhook) judge(state *model.State, request admission.Request) error {
	creates, deletes := request.Operation == admissionv1.Create, request.Operation == admissionv1.Delete

	switch {
	case request.Resource.Group == "":
		old, kube, err := decode[corev1.Node](w.decoder, request)
		if err != nil {
			return err
		}

		return state.CheckKubernetesNode(old, kube)
	case request.Resource.Resource == "nodes":
		return w.judgeNode(state, request)
	case request.Resource.Resource == "replicas":
		old, r, err := decode[lh.Replica](w.decoder, request)

		switch {
		case err != nil:
			return err
		case deletes:
			return state.CheckReplicaDeletion(old)
		}

		return state.CheckReplica(old, r)
	case request.Resource.Resource == "volumes":
		old, v, err := decode[lh.Volume](w.decoder, request)
		if err != nil {
			return err
		}

		return state.CheckVolume(old, v)
	case request.Resource.Resource == "volumeattachments":
		old, va, err := decode[lh.VolumeAttachment](w.decoder, request)
		if err != nil {
			return err
		}

		return state.CheckAttachment(old, va)
	case request.Resource.Resource == "instancemanagers":
		_, im, err := decode[lh.InstanceManager](w.decoder, request)
		if err != nil {
			return err
		}

		return state.CheckInstanceManager(im)
	case deletes:
		return state.CheckSettingDeletion(request.Name)
	}

	_, setting, err := decode[lh.Setting](w.decoder, request)
	if err != nil {
		return err
	}

	return state.CheckSetting(setting.Name, setting.Value, creates)
}

func (w *webhook) judgeNode(state *model.State, request admission.Request) error {
	old, n, err := decode[lh.Node](w.decoder, request)
	if err != nil {
		return err
	}

	switch request.Operation {
	case admissionv1.Create:
		return state.CheckNodeCreation(n)
	case admissionv1.Delete:
		return state.CheckNodeDeletion(old)
	case admissionv1.Update, admissionv1.Connect:
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if w.syncing > 0 {
		w.syncing--
		old.Status.DiskStatus = map[string]lh.DiskStatus{"": {}}
	}

	return state.CheckNodeUpdate(old, n)
}

// decode returns the object before and after a request; what there is not is nil.
func decode[T any, P interface {
	*T
	client.Object
}](decoder admission.Decoder, request admission.Request) (before, after P, err error) {
	if len(request.OldObject.Raw) > 0 {
		before = new(T)
		err = decoder.DecodeRaw(request.OldObject, before)
	}

	if len(request.Object.Raw) > 0 && err == nil {
		after = new(T)
		err = decoder.DecodeRaw(request.Object, after)
	}

	return before, after, err
}
