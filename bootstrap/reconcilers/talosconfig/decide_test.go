// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// contract: the order of what is waited for, and whose a Secret of the name is.
func TestDecide(t *testing.T) {
	secretOf := func(refs ...metav1.OwnerReference) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: "w1", OwnerReferences: refs, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
		}, Data: map[string][]byte{dataKey: []byte("x")}}
	}
	reference := func(kind, name, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "bootstrap.ichor.maesh.dev/v1alpha1", Kind: kind, Name: name, UID: types.UID("uid-" + uid), Controller: new(true)}
	}

	own := secretOf(reference("TalosConfig", "w1", "now"))
	unlabelled := secretOf(reference("TalosConfig", "w1", "now"))
	unlabelled.Labels = nil
	former := secretOf(reference("TalosConfig", "w1", "before"))
	orphan, handmade := secretOf(), secretOf()
	orphan.Annotations = map[string]string{bootstrapv1.RenderedHashAnnotation: strings.Repeat("0a", 32)}
	foreign := secretOf(reference("TalosConfig", "w1", "before"))
	foreign.OwnerReferences[0].APIVersion = "bootstrap.cluster.x-k8s.io/v1alpha3"
	other := secretOf(reference("TalosConfig", "w2", "another"))

	emptied, formerEmptied := own.DeepCopy(), former.DeepCopy()
	emptied.Data[dataKey], formerEmptied.Data = nil, nil

	const another = "Secret w1 is another now, which belongs to TalosConfig w2 (UID uid-another); the machine has joined and does not read it again"

	const empty = `Secret w1 has no value for the key "value" any more; the machine has joined and does not read it again`

	tests := map[string]struct {
		change func(*observation)
		want   string
	}{
		"everything is there":                        {func(*observation) {}, "render"},
		"no owner":                                   {func(o *observation) { o.owner = nil }, "wait WaitingForOwner"},
		"no cluster":                                 {func(o *observation) { o.cluster = nil }, "wait WaitingForCluster"},
		"no infrastructure":                          {func(o *observation) { o.cluster.Status.Initialization.InfrastructureProvisioned = nil }, "wait WaitingForClusterInfrastructureReady"},
		"no endpoint":                                {func(o *observation) { o.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{} }, "wait WaitingForControlPlaneEndpoint"},
		"endpoint without port":                      {func(o *observation) { o.cluster.Spec.ControlPlaneEndpoint.Port = 0 }, "wait WaitingForControlPlaneEndpoint"},
		"cluster is going":                           {func(o *observation) { o.cluster.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, "wait NotAvailable"},
		"machine is going":                           {func(o *observation) { o.owner.object.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) }, "wait NotAvailable"},
		"own Secret":                                 {func(o *observation) { o.secret = own }, "keep"},
		"own Secret, and the cluster is gone":        {func(o *observation) { o.secret, o.cluster = own, nil }, "keep"},
		"own Secret, and the machine has joined":     {func(o *observation) { o.secret, o.owner.joined = own, true }, "keep"},
		"pool's own Secret":                          {func(o *observation) { o.secret, o.owner = own, poolOfTest() }, "refresh"},
		"pool's own Secret, and the cluster is gone": {func(o *observation) { o.secret, o.owner, o.cluster = own, poolOfTest(), nil }, "keep"},
		"pool's own Secret, and no endpoint": {func(o *observation) {
			o.secret, o.owner, o.cluster.Spec.ControlPlaneEndpoint = own, poolOfTest(), clusterv1.APIEndpoint{}
		}, "keep"},
		"pool's own Secret, and the pool is going": {func(o *observation) {
			o.secret, o.owner = own, poolOfTest()
			o.owner.object.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		}, "keep"},
		"pool without Secret":                          {func(o *observation) { o.owner = poolOfTest() }, "render"},
		"own Secret without its label":                 {func(o *observation) { o.secret = unlabelled }, "claim"},
		"Secret deleted before the machine joined":     {func(o *observation) { o.owner.dataSecretName = "w1" }, "render again"},
		"Secret deleted before CAPI has seen it":       {func(o *observation) { o.config.Status.Initialization.DataSecretCreated = new(true) }, "render again"},
		"Secret deleted after the machine joined":      {func(o *observation) { o.owner.dataSecretName, o.owner.joined = "w1", true }, "forgo: Secret w1 does not exist; the machine has joined and does not read it again"},
		"bootstrap data of another name":               {func(o *observation) { o.owner.dataSecretName = "handmade" }, "adopt handmade"},
		"Secret without owner, machine boots of it":    {func(o *observation) { o.secret, o.owner.dataSecretName = orphan, "w1" }, "claim"},
		"the same, of a pool":                          {func(o *observation) { o.secret, o.owner = orphan, poolOfTest(); o.owner.dataSecretName = "w1" }, "claim"},
		"Secret that a user wrote for the machine":     {func(o *observation) { o.secret, o.owner.dataSecretName = handmade, "w1" }, "adopt w1"},
		"Secret that a user wrote for the pool":        {func(o *observation) { o.secret, o.owner = handmade, poolOfTest(); o.owner.dataSecretName = "w1" }, "adopt w1"},
		"Secret of another provider's kind":            {func(o *observation) { o.secret, o.owner.dataSecretName = foreign, "w1" }, "refuse ForeignSecret"},
		"name of a cluster's own Secret":               {func(o *observation) { o.config.Name = "c-ca" }, "refuse NameReserved"},
		"name of another cluster's bundle":             {func(o *observation) { o.config.Name = "b-talos" }, "refuse NameReserved"},
		"name of a kubeconfig":                         {func(o *observation) { o.config.Name = "b-kubeconfig" }, "refuse NameReserved"},
		"such a name, and there is nothing to make":    {func(o *observation) { o.config.Name, o.owner.joined = "b-talos", true }, "forgo: Secret b-talos does not exist; the machine has joined and does not read it again"},
		"Secret without owner, machine does not":       {func(o *observation) { o.secret = orphan }, "refuse ForeignSecret"},
		"Secret of former self, machine boots of it":   {func(o *observation) { o.secret, o.owner.dataSecretName = former, "w1" }, "claim"},
		"Secret of an earlier machine of the name":     {func(o *observation) { o.secret = former }, "refuse ForeignSecret"},
		"own Secret, emptied":                          {func(o *observation) { o.secret = emptied }, "keep"},
		"own Secret, emptied when the machine runs":    {func(o *observation) { o.secret, o.owner.joined = emptied, true }, "forgo: " + empty},
		"the same of former self":                      {func(o *observation) { o.secret, o.owner.dataSecretName, o.owner.joined = formerEmptied, "w1", true }, "forgo: " + empty},
		"former self's, when the machine runs":         {func(o *observation) { o.secret, o.owner.dataSecretName, o.owner.joined = former, "w1", true }, "claim"},
		"another's, when the machine runs":             {func(o *observation) { o.secret, o.owner.dataSecretName, o.owner.joined = other, "w1", true }, "forgo: " + another},
		"another's, which the machine never booted of": {func(o *observation) { o.secret, o.owner.joined = other, true }, "refuse ForeignSecret"},
		"Secret of another TalosConfig":                {func(o *observation) { o.secret, o.owner.dataSecretName = other, "w1" }, "refuse ForeignSecret"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seen := completeObservation()
			test.change(&seen)

			if diff := cmp.Diff(test.want, describeStep(decide(seen))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// completeObservation is one in which everything is ready for a first render.
func completeObservation() observation {
	return observation{
		config: &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "uid-now"}},
		owner:  machineOwner(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w1"}, Spec: clusterv1.MachineSpec{ClusterName: "c"}}),
		cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c"},
			Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "c.example.com", Port: 6443}},
			Status:     clusterv1.ClusterStatus{Initialization: clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: new(true)}},
		},
	}
}

func poolOfTest() *owner {
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}
	pool.Spec.ClusterName = "c"

	return poolOwner(pool)
}

func describeStep(s step) string {
	switch s := s.(type) {
	case wait:
		return "wait " + s.reason
	case render:
		if s.again {
			return "render again"
		}

		return "render"
	case keep:
		return "keep"
	case refresh:
		return "refresh"
	case claim:
		return "claim"
	case adopt:
		return "adopt " + s.name
	case refuse:
		return "refuse " + s.reason
	case forgo:
		return "forgo: " + s.message
	}

	return "unknown"
}
