// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// syncTimeout bounds the wait for the cache, on a machine that does other things too.
const syncTimeout = time.Minute

// nodeName is where all Pods are bound to. There is no such Node.
const nodeName = "test-world"

// Options say what is run and where.
type Options struct {
	// Config has the rights of an administrator.
	Config *rest.Config

	// Dir is for files of Pods, LogDir for what they write, in NAMESPACE_POD.log.
	Dir, LogDir string

	// Images are what can be run, by the last path element of the image's name, with the tag for one version alone. Pods with others stay
	// without a process.
	Images map[string]Image

	// ReservePort finds a port for which no other test waits. ReserveExclusive waits for a certain one, and returns what frees it.
	ReservePort      func() (int, error)
	ReserveExclusive func(ctx context.Context, port int) (release func() error, err error)
}

// Runner runs Pods.
type Runner struct {
	client.Client
	options   Options
	clientset *kubernetes.Clientset
	cancel    context.CancelFunc
	ended     chan error

	mu   sync.Mutex
	pods map[types.UID]*pod
}

// Start begins to run Pods.
func Start(ctx context.Context, options Options) (*Runner, error) {
	clientset, err := kubernetes.NewForConfig(options.Config)
	if err != nil {
		return nil, fmt.Errorf("pods: %w", err)
	}

	mgr, err := ctrl.NewManager(options.Config, ctrl.Options{
		Scheme:  clientgoscheme.Scheme,
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, fmt.Errorf("pods: %w", err)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Runner{
		Client: mgr.GetClient(), options: options, clientset: clientset, cancel: cancel,
		ended: make(chan error, 1), pods: map[types.UID]*pod{},
	}

	err = ctrl.NewControllerManagedBy(mgr).
		Named("kubelet").
		For(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, SkipNameValidation: new(true)}).
		Complete(r)
	if err != nil {
		cancel()

		return nil, fmt.Errorf("pods: %w", err)
	}

	// Services are read from the cache, too.
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.Service{}); err != nil {
		cancel()

		return nil, fmt.Errorf("pods: %w", err)
	}

	go func() { r.ended <- mgr.Start(ctx) }()

	synced, stopWaiting := context.WithTimeout(ctx, syncTimeout)
	defer stopWaiting()

	if !mgr.GetCache().WaitForCacheSync(synced) {
		cancel()

		return nil, fmt.Errorf("pods: the cache does not fill: %w", <-r.ended)
	}

	return r, nil
}

// Stop ends all processes. The Pods stay as they are.
func (r *Runner) Stop() error {
	r.cancel()
	errs := []error{<-r.ended}

	r.mu.Lock()
	defer r.mu.Unlock()

	for _, p := range r.pods {
		errs = append(errs, p.stop())
	}

	r.pods = map[types.UID]*pod{}

	return errors.Join(errs...)
}

// Kill ends the process of a Pod at once, as when it crashes. It is started again after a while.
func (r *Runner) Kill(ctx context.Context, name client.ObjectKey) error {
	object := &corev1.Pod{}
	if err := r.Get(ctx, name, object); err != nil {
		return err
	}

	r.mu.Lock()
	p, ok := r.pods[object.UID]
	r.mu.Unlock()

	if !ok {
		return fmt.Errorf("pod %s has no process", name)
	}

	return p.kill()
}

// Reconcile has the process of a Pod be what the Pod says.
func (r *Runner) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &corev1.Pod{}

	err := r.Get(ctx, request.NamespacedName, object)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}

	// A Pod that was deleted without grace is gone before its process, and another of its name may have come.
	r.endOthers(ctx, request.NamespacedName, object.UID)

	if err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // It is gone, and its process has been ended.
	}

	if object.DeletionTimestamp != nil {
		return ctrl.Result{}, r.end(ctx, object)
	}

	if object.Spec.NodeName == "" {
		// The change of the Pod leads back here.
		return ctrl.Result{}, client.IgnoreNotFound(r.SubResource("binding").Create(ctx, object, &corev1.Binding{
			Target: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: nodeName},
		}))
	}

	p, err := r.podOf(object)
	if err != nil {
		return ctrl.Result{}, err
	}

	return ctrl.Result{RequeueAfter: p.next()}, r.report(ctx, object, p.run(ctx, object))
}

// podOf is the pod of an object, made when it is seen first.
func (r *Runner) podOf(object *corev1.Pod) (*pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if p, ok := r.pods[object.UID]; ok {
		return p, nil
	}

	p, err := newPod(r, object)
	if err != nil {
		return nil, err
	}

	r.pods[object.UID] = p

	return p, nil
}

// endOthers stops the processes of Pods that had a name, but for the Pod that has it now.
func (r *Runner) endOthers(ctx context.Context, name client.ObjectKey, now types.UID) {
	r.mu.Lock()

	var gone []types.UID

	for uid, p := range r.pods {
		if p.name == name && uid != now {
			gone = append(gone, uid)
		}
	}
	r.mu.Unlock()

	for _, uid := range gone {
		r.endProcess(ctx, uid)
	}
}

// endProcess stops the process of a Pod, if there is one.
func (r *Runner) endProcess(ctx context.Context, uid types.UID) {
	r.mu.Lock()
	p, ok := r.pods[uid]
	delete(r.pods, uid)
	r.mu.Unlock()

	if !ok {
		return
	}

	if err := p.stop(); err != nil {
		ctrl.LoggerFrom(ctx).Info("The process had ended before", "error", err.Error())
	}
}

// end stops the process of a Pod that is deleted, and lets the Pod go.
func (r *Runner) end(ctx context.Context, object *corev1.Pod) error {
	r.endProcess(ctx, object.UID)

	return client.IgnoreNotFound(r.Delete(ctx, object, client.GracePeriodSeconds(0), client.Preconditions{UID: &object.UID}))
}
