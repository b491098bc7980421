// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/talossim"
)

// lifeSecrets are of a cluster, and what is made with them.
type lifeSecrets struct {
	objects    []*corev1.Secret
	config     []byte
	serving    tls.Certificate
	kubeconfig []byte
}

func newLifeSecrets(t *testing.T) *lifeSecrets {
	t.Helper()

	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: lifeNamespace, Name: lifeCluster},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 1}},
	}

	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}

	bundle, err := secrets.New(clock.RealClock{}, version.Newest(), secrets.WithECDSAServiceAccountKey())
	must(err)

	out := &lifeSecrets{}

	bundleSecret, err := secrets.BundleSecret(cluster, bundle, version.Newest())
	must(err)

	authorities, err := secrets.AuthoritySecrets(cluster, bundle)
	must(err)

	talosconfig, err := secrets.Talosconfig(bundle, lifeCluster, nil, time.Hour, time.Now())
	must(err)

	talosconfigSecret, err := secrets.TalosconfigSecret(cluster, talosconfig)
	must(err)

	out.objects = append(append(authorities, talosconfigSecret), bundleSecret)
	out.serving = servingOf(t, bundle.Certs.K8s.Crt, bundle.Certs.K8s.Key)

	authority, err := certs.DecodeCertPEM(bundle.Certs.K8s.Crt)
	must(err)

	key, err := certs.DecodePrivateKeyPEM(bundle.Certs.K8s.Key)
	must(err)

	administrator, err := kubeconfig.New(lifeCluster, serverOf(cluster), authority, key)
	must(err)

	out.kubeconfig, err = clientcmd.Write(*administrator)
	must(err)

	input, err := generate.NewInput(lifeCluster, serverOf(cluster), "1.36.1",
		generate.WithVersionContract(version.Newest().Machinery()), generate.WithSecretsBundle(bundle))
	must(err)

	provider, err := input.Config(machinetype.TypeControlPlane)
	must(err)

	out.config, err = provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	must(err)

	return out
}

// servingOf is a certificate for a server on the loopback address.
func servingOf(t *testing.T, authorityPEM, keyPEM []byte) tls.Certificate {
	t.Helper()

	authority, err := certs.DecodeCertPEM(authorityPEM)
	if err != nil {
		t.Fatal(err)
	}

	signer, err := certs.DecodePrivateKeyPEM(keyPEM)
	if err != nil {
		t.Fatal(err)
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	wanted := certs.Config{
		CommonName: "kube-apiserver", AltNames: certs.AltNames{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}

	certificate, err := wanted.NewSignedCert(key, authority, signer)
	if err != nil {
		t.Fatal(err)
	}

	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// lifeObjects are what a user creates, and the definitions that providers have installed.
func lifeObjects(endpoint clusterv1.APIEndpoint, replicas int32) []client.Object {
	contract := map[string]string{"cluster.x-k8s.io/v1beta2": "v1alpha1"}
	template := clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "SimMachineTemplate", Name: lifePlane}
	ours := clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: talosControlPlaneKind, Name: lifePlane}

	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: lifeNamespace, Name: lifeCluster},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: endpoint, ControlPlaneRef: ours},
	}

	tcp := &controlplanev1.TalosControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: lifeNamespace, Name: lifePlane},
		Spec:       controlplanev1.TalosControlPlaneSpec{Replicas: &replicas, Version: "v1.36.1"},
	}
	tcp.Spec.MachineTemplate.Spec.InfrastructureRef = template
	tcp.Spec.Rollout.Strategy.Type = controlplanev1.RollingUpdateRollout

	return []client.Object{
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "simmachines." + infrav1.GroupVersion.Group, Labels: contract}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "simmachinetemplates." + infrav1.GroupVersion.Group, Labels: contract}},
		cluster,
		&infrav1.SimMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: lifeNamespace, Name: lifePlane}},
		tcp,
	}
}

// core plays everybody else: Cluster API's core manager, the bootstrap provider, the infrastructure provider, and the Kubernetes API server.
func (l *life) core() {
	l.t.Helper()
	l.ownCluster()

	answering := false

	for _, node := range l.nodes {
		answering = answering || node.On() && node.EtcdMemberID() != 0
	}

	l.serves.Store(answering && (!l.storm || l.rng.IntN(3) > 0))

	for _, machine := range l.machines() {
		switch {
		case !machine.DeletionTimestamp.IsZero():
			// What is known of a machine that there is, is still told.
			if l.nodes[machine.Name] != nil {
				l.provision(&machine)
			}

			l.remove(&machine)
		case l.owned(&machine):
			l.provision(&machine)
		}
	}
}

// ownCluster has the infrastructure of the Cluster be there, and the control plane belong to it.
func (l *life) ownCluster() {
	cluster := &clusterv1.Cluster{}
	l.must(l.store.Get(l.ctx, client.ObjectKey{Namespace: lifeNamespace, Name: lifeCluster}, cluster))

	tcp := l.controlPlane()
	initialized := tcp.Status.Initialization.ControlPlaneInitialized

	if before := cluster.DeepCopy(); cluster.Status.Initialization.InfrastructureProvisioned == nil || (initialized != nil && cluster.Status.Initialization.ControlPlaneInitialized == nil) {
		cluster.Status.Initialization.InfrastructureProvisioned = new(true)
		cluster.Status.Initialization.ControlPlaneInitialized = initialized
		l.must(l.store.Status().Patch(l.ctx, cluster, client.MergeFrom(before)))
	}

	if before := tcp.DeepCopy(); len(tcp.OwnerReferences) == 0 {
		tcp.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cluster, clusterv1.GroupVersion.WithKind(clusterKind))}
		l.must(l.store.Patch(l.ctx, tcp, client.MergeFrom(before)))
	}
}

// owned has a Machine own what belongs to it. The first of them has the cluster's secrets made, too.
func (l *life) owned(machine *clusterv1.Machine) bool {
	if len(machine.Finalizers) == 0 {
		before := machine.DeepCopy()
		machine.Finalizers = []string{clusterv1.MachineFinalizer}
		l.must(l.store.Patch(l.ctx, machine, client.MergeFrom(before)))
	}

	key := client.ObjectKeyFromObject(machine)

	for _, object := range []client.Object{&bootstrapv1.TalosConfig{}, &infrav1.SimMachine{}} {
		if err := l.store.Get(l.ctx, key, object); err != nil {
			l.must(client.IgnoreNotFound(err))

			return false
		}

		if before, ok := object.DeepCopyObject().(client.Object); ok && metav1.GetControllerOf(object) == nil {
			object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind(machineKind))})
			l.must(l.store.Patch(l.ctx, object, client.MergeFrom(before)))
		}
	}

	l.makeSecrets()

	return true
}

// makeSecrets makes the Secrets of the cluster, once. In most lives a user has made the kubeconfig: the key in it takes longer than all the
// rest.
func (l *life) makeSecrets() {
	last := l.secrets.objects[len(l.secrets.objects)-1]

	err := l.store.Get(l.ctx, client.ObjectKeyFromObject(last), &corev1.Secret{})
	if err == nil {
		return
	}

	l.must(client.IgnoreNotFound(err))

	cluster := &clusterv1.Cluster{}
	l.must(l.store.Get(l.ctx, client.ObjectKey{Namespace: lifeNamespace, Name: lifeCluster}, cluster))

	for _, object := range l.secrets.objects {
		made := object.DeepCopy()
		for i := range made.OwnerReferences {
			made.OwnerReferences[i].UID = cluster.UID
		}

		l.create(made)
	}

	if l.rng.IntN(8) == 0 {
		return
	}

	config, err := clientcmd.Load(l.secrets.kubeconfig)
	l.must(err)

	config.Clusters[lifeCluster].Server = "https://" + l.endpoint.String()

	content, err := clientcmd.Write(*config)
	l.must(err)

	l.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: lifeNamespace, Name: secret.Name(lifeCluster, secret.Kubeconfig)},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{secret.KubeconfigDataName: content},
	})
}

// provision brings a machine up, and says what is known of it, each some time after the other.
func (l *life) provision(machine *clusterv1.Machine) {
	node := l.nodes[machine.Name]

	if node == nil {
		if l.storm && l.rng.IntN(2) == 0 {
			return
		}

		var err error

		node, err = l.sim.Start(l.ctx, talossim.NodeOptions{Name: machine.Name}, l.secrets.config)
		l.must(err)

		l.nodes[machine.Name] = node
	}

	if len(machine.Status.Addresses) > 0 {
		l.link(machine)

		return
	}

	if l.storm && l.rng.IntN(2) == 0 {
		return
	}

	before := machine.DeepCopy()

	if machine.Spec.ProviderID == "" {
		machine.Spec.ProviderID = "sim:///" + machine.Name
		l.must(l.store.Patch(l.ctx, machine, client.MergeFrom(before)))

		before = machine.DeepCopy()
	}

	machine.Status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: node.Address()}}
	l.must(l.store.Status().Patch(l.ctx, machine, client.MergeFrom(before)))
}

// link finds the Node of a Machine.
func (l *life) link(machine *clusterv1.Machine) {
	node := l.nodes[machine.Name]
	if node == nil || node.EtcdMemberID() == 0 || machine.Status.NodeRef.Name != "" || !l.serves.Load() || (l.storm && l.rng.IntN(3) > 0) {
		return
	}

	before := machine.DeepCopy()
	machine.Status.NodeRef.Name = machine.Name
	l.must(l.store.Status().Patch(l.ctx, machine, client.MergeFrom(before)))
}

// remove takes a Machine through the stages of its deletion.
func (l *life) remove(machine *clusterv1.Machine) {
	if _, held := machine.Annotations[controlplanev1.PreTerminateHookAnnotation]; held {
		before := machine.DeepCopy()
		conditions.Set(machine, metav1.Condition{
			Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
		})
		l.must(l.store.Status().Patch(l.ctx, machine, client.MergeFrom(before)))

		return
	}

	// A platform takes its time, in which the machine goes on.
	if l.storm && l.rng.IntN(2) == 0 {
		return
	}

	if node := l.nodes[machine.Name]; node != nil {
		l.must(node.Destroy())
		delete(l.nodes, machine.Name)
	}

	for _, object := range []client.Object{&bootstrapv1.TalosConfig{}, &infrav1.SimMachine{}} {
		object.SetNamespace(machine.Namespace)
		object.SetName(machine.Name)
		l.must(client.IgnoreNotFound(l.store.Delete(l.ctx, object)))
	}

	before := machine.DeepCopy()
	machine.Finalizers = nil
	l.must(client.IgnoreNotFound(l.store.Patch(l.ctx, machine, client.MergeFrom(before))))
}
