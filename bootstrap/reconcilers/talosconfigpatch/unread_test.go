// SPDX-License-Identifier: Apache-2.0

package talosconfigpatch

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// unreadable is a live reader that is not let read Secrets, and counts.
type unreadable struct {
	client.Reader

	denied bool
	reads  int
}

func (u *unreadable) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, isSecret := object.(*corev1.Secret); isSecret && u.denied {
		u.reads++

		return apierrors.NewForbidden(corev1.Resource("secrets"), key.Name, errors.New("hunter2"))
	}

	return u.Reader.Get(ctx, key, object, options...)
}

// A Secret that cannot be read is told of the patches on the machines that need it, and of no other: what is known of the others, and of the other machines
// of those patches, is reported all the same. It is asked for once, however many machines need it, and again soon.
func TestUnreadSecretConcernsItsMachines(t *testing.T) {
	tunnel, elsewhere, everywhere := sysctl("tunnel", ""), sysctl("elsewhere", "kernel.a"), sysctl("everywhere", "kernel.b")
	tunnel.Spec.Documents = []machineconfigv1alpha1.Document{{
		Kind: machineconfigv1alpha1.KindWireguardConfig,
		WireguardConfig: &machineconfigv1alpha1.WireguardConfig{
			Name: "wg0", PrivateKeySecretRef: &machineconfigv1alpha1.SecretKeyReference{Name: "wireguard", Key: "private"},
		},
	}}
	tunnel.Spec.MachineSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "node.cluster.x-k8s.io/slot", Operator: metav1.LabelSelectorOpIn, Values: []string{"w-0000", "w-0001"}},
	}}
	elsewhere.Spec.MachineSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node.cluster.x-k8s.io/slot": "w-0002"}}

	w := newWorld(t, 3, tunnel, elsewhere, everywhere, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "wireguard", UID: "wireguard"},
		Data:       map[string][]byte{"private": []byte("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")},
	})
	live := &unreadable{Reader: w.client, denied: true}
	w.r.Inputs = inputs.NewReader(w.client, live, w.client)

	made, _ := w.survey(tunnel)
	w.Expect(live.reads).To(Equal(1))

	says := func(made *survey, conditionType string) map[string]string {
		got := map[string]string{}

		for name, found := range made.patches {
			patch, unread := sysctl(name, "kernel.a"), ""
			if found.unread != nil {
				unread = "it may not be read"
			}

			report(patch, found, unread, nil)

			condition := conditions.Get(patch, conditionType)
			got[name] = string(condition.Status) + " " + condition.Reason + " " + condition.Message
		}

		return got
	}

	w.Expect(made.patches["tunnel"].unread).To(MatchError(ContainSubstring("Secret wireguard: read")))
	w.Expect(says(made, "Valid")).To(Equal(map[string]string{
		"tunnel": "Unknown NotRead it may not be read", "elsewhere": "True Valid ", "everywhere": "Unknown NotRead it may not be read",
	}))
	w.Expect(says(made, "Effective")).To(Equal(map[string]string{
		"tunnel": "Unknown NotRead it may not be read", "elsewhere": "True Effective ", "everywhere": "Unknown NotRead it may not be read",
	}))
	w.Expect(says(made, "Ready")).To(Equal(map[string]string{
		"tunnel": "Unknown NotRead it may not be read", "elsewhere": "True Ready ", "everywhere": "Unknown NotRead it may not be read",
	}))
	w.Expect(made.patches["everywhere"].selected).To(BeEquivalentTo(3))
	w.Expect(made.patches["everywhere"].rendered).To(BeEquivalentTo(1))

	// Nothing tells when it can be read again.
	live.denied = false
	again, _ := w.survey(elsewhere)
	w.Expect(again).To(BeIdenticalTo(made))
	w.clock.SetTime(w.clock.Now().Add(settle))

	again, wait := w.survey(elsewhere)
	w.Expect(wait).To(BeZero())
	w.Expect(again.patches["tunnel"].unread).NotTo(HaveOccurred())
	w.Expect(says(again, "Valid")).To(HaveKeyWithValue("tunnel", "True Valid "))
	w.Expect(again.patches["everywhere"].rendered).To(BeEquivalentTo(3))
}

// What is wrong with a patch itself is told whatever else cannot be read.
func TestFaultIsToldBesideWhatIsUnread(t *testing.T) {
	found := &findings{parsed: machineconfig.ParsePatch(sysctl("a", "kernel.a")), selected: 2, rendered: 1, failed: 1, groups: 1, unread: errors.New("down")}
	found.own.Add("Machine w-1", "it is wrong")

	patch := sysctl("a", "kernel.a")
	report(patch, found, "it may not be read", nil)

	g := NewWithT(t)
	g.Expect(conditions.Get(patch, "Valid")).To(And(HaveField("Reason", "Invalid"), HaveField("Message", "Machine w-1: it is wrong; it may not be read")))
	g.Expect(conditions.IsFalse(patch, "Ready")).To(BeTrue())
}
