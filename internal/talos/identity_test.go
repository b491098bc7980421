// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

const (
	uuidOne = "4c4c4544-0051-3510-8052-b4c04f4b4d33"
	// uuidOneSwapped is the same as older firmware writes it.
	uuidOneSwapped = "44454c4c-5100-1035-8052-B4C04F4B4D33"
	uuidTwo        = "11111111-2222-3333-4444-555555555555"
)

func internal(addresses ...string) []clusterv1.MachineAddress {
	var all []clusterv1.MachineAddress
	for _, address := range addresses {
		all = append(all, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address})
	}

	return all
}

func TestProve(t *testing.T) {
	t.Parallel()

	addressed := func(addresses ...string) []netip.Addr {
		var all []netip.Addr
		for _, address := range addresses {
			all = append(all, netip.MustParseAddr(address))
		}

		return all
	}

	tests := map[string]struct {
		machine Machine
		facts   facts
		want    proof
		class   error
	}{
		"by the Node's name":                   {Machine{NodeName: "a"}, facts{nodeName: "A"}, byNodeName, nil},
		"another name":                         {Machine{NodeName: "a"}, facts{nodeName: "b"}, 0, ErrAnotherNode},
		"another name, and the same system":    {Machine{NodeName: "a", SystemUUID: uuidOne}, facts{nodeName: "b", uuid: uuidOne}, 0, ErrAnotherNode},
		"the same name on another system":      {Machine{NodeName: "a", SystemUUID: uuidOne}, facts{nodeName: "a", uuid: uuidTwo}, byNodeName, nil},
		"by the system, before it has a name":  {Machine{NodeName: "a", SystemUUID: uuidOne}, facts{uuid: uuidOneSwapped}, byUUID, nil},
		"another system, before it has a name": {Machine{NodeName: "a", SystemUUID: uuidOne}, facts{uuid: uuidTwo}, 0, ErrNotReady},
		"no name yet":                          {Machine{NodeName: "a"}, facts{}, 0, ErrNotReady},
		"a system without a UUID":              {Machine{NodeName: "a", SystemUUID: "00000000-0000-0000-0000-000000000000"}, facts{uuid: "00000000-0000-0000-0000-000000000000"}, 0, ErrNotReady},
		"by address":                           {Machine{Addresses: internal("10.0.0.1")}, facts{addresses: addressed("10.0.0.1", "172.16.0.1")}, byAddress, nil},
		"by dialling, behind NAT":              {Machine{Addresses: internal("192.0.2.1")}, facts{addresses: addressed("172.16.0.1")}, byDialling, nil},
		"addresses of another":                 {Machine{Addresses: internal("10.0.0.1")}, facts{addresses: addressed("10.0.0.9")}, 0, ErrAnotherNode},
		"name of another":                      {Machine{Addresses: internal("10.0.0.1")}, facts{nodeName: "other", addresses: addressed("172.16.0.1")}, 0, ErrAnotherNode},
		"a worker":                             {Machine{ControlPlane: true}, facts{}, 0, ErrAnotherNode},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			test.machine.Name = "m"
			all := []Machine{test.machine, {Name: "other", NodeName: "other", Addresses: internal("10.0.0.9")}}
			n := &Nodes{machines: map[string]*Machine{"m": &all[0], "other": &all[1]}, shared: sharedAddresses(all)}

			got, err := n.prove(&all[0], test.facts)
			if got != test.want || !errors.Is(err, test.class) {
				t.Errorf("got %d, %v, want %d, %v", got, err, test.want, test.class)
			}
		})
	}
}

// TestSeparate is about one node that answers for several Machines.
func TestSeparate(t *testing.T) {
	t.Parallel()

	seen := func(name, boot string, by proof) Node {
		return Node{Machine: name, BootID: boot, Hostname: "h", proof: by, Address: "x"}
	}

	tests := map[string]struct {
		nodes []Node
		want  map[string]string
	}{
		"the one with a proof keeps it": {
			[]Node{seen("a", "1", byNodeName), seen("b", "1", byAddress), seen("c", "2", byAddress)},
			map[string]string{"a": "", "b": "machine b: the node of Machine a answers at x", "c": ""},
		},
		"nobody keeps it without": {
			[]Node{seen("a", "1", byDialling), seen("b", "1", byDialling)},
			map[string]string{
				"a": "machine a: one node (h) answers for the Machines a, b, and nothing proves whose it is",
				"b": "machine b: one node (h) answers for the Machines a, b, and nothing proves whose it is",
			},
		},
		"before Talos 1.14, by hostname, system and addresses": {
			[]Node{
				{Machine: "a", SystemUUID: uuidOne, Hostname: "h", addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}},
				{Machine: "b", SystemUUID: uuidOne, Hostname: "h", addresses: []netip.Addr{netip.MustParseAddr("10.0.0.2")}},
			},
			map[string]string{"a": "", "b": ""},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			found := map[string]Node{}
			for _, node := range test.nodes {
				found[node.Machine] = node
			}

			(&Nodes{}).separate(found)

			got := map[string]string{}

			for name, node := range found {
				got[name] = ""
				if node.Err != nil {
					got[name] = node.Err.Error()
				}
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// That ways were left out is told as long as the node may be on one of them.
func TestLeftOut(t *testing.T) {
	t.Parallel()

	const why = "1 more"

	for class, want := range map[error]string{ErrSlow: "no; 1 more", ErrAnotherNode: "no; 1 more", ErrMaintenance: "no", ErrRefused: "no"} {
		err := leftOut(&nodeError{class, "no"}, why)
		if err.Error() != want || !errors.Is(err, class) {
			t.Errorf("%v: %q, want %q", class, err, want)
		}
	}

	if err := leftOut(&nodeError{ErrSlow, "no"}, ""); err.Error() != "no" {
		t.Errorf("none was left out: %q", err)
	}
}

func TestCandidates(t *testing.T) {
	t.Parallel()

	external := clusterv1.MachineAddress{Type: clusterv1.MachineExternalIP, Address: "198.51.100.7"}
	name := clusterv1.MachineAddress{Type: clusterv1.MachineInternalDNS, Address: "M.example."}

	tests := map[string]struct {
		reach     Reach
		addresses []clusterv1.MachineAddress
		want      []string
		why       string
	}{
		"internal before external, each once, names not": {
			addresses: append(internal("10.0.0.1", "10.0.0.1", "fd00::1"), external, name),
			want:      []string{"10.0.0.1:50000", "[fd00::1]:50000", "198.51.100.7:50000"},
		},
		"types in the user's order": {
			reach:     Reach{API: bootstrapv1.TalosAPISpec{AddressTypes: []clusterv1.MachineAddressType{clusterv1.MachineInternalDNS, clusterv1.MachineExternalIP}}},
			addresses: append(internal("10.0.0.1"), external, name),
			want:      []string{"m.example:50000", "198.51.100.7:50000"},
		},
		"networks": {
			reach:     Reach{API: bootstrapv1.TalosAPISpec{CIDRs: []string{"10.0.0.0/8", "fd00::/8"}}},
			addresses: append(internal("192.168.0.1", "10.0.0.1", "::ffff:10.0.0.2", "fd00::1"), external),
			want:      []string{"10.0.0.1:50000", "10.0.0.2:50000", "[fd00::1]:50000"},
		},
		"neither the endpoint nor what another has": {
			reach:     Reach{Endpoint: "10.0.0.100"},
			addresses: internal("10.0.0.100", "10.0.0.9", "169.254.1.1", "10.0.0.1"),
			want:      []string{"10.0.0.1:50000"},
		},
		"through load balancers": {
			reach:     Reach{API: bootstrapv1.TalosAPISpec{Endpoints: []string{"lb.example", "[fd00::9]:444"}}},
			addresses: internal("10.0.0.1"),
			want:      []string{"10.0.0.1 through lb.example:50000", "10.0.0.1 through [fd00::9]:444"},
		},
		"each load balancer and each address once before any again": {
			reach:     Reach{API: bootstrapv1.TalosAPISpec{Endpoints: []string{"a", "b"}}},
			addresses: internal("10.0.0.1", "10.0.0.2"),
			want:      []string{"10.0.0.1 through a:50000", "10.0.0.2 through b:50000", "10.0.0.1 through b:50000", "10.0.0.2 through a:50000"},
		},
		"more load balancers than are tried, and the right address is the second": {
			reach:     Reach{API: bootstrapv1.TalosAPISpec{Endpoints: []string{"a", "b", "c", "d", "e", "f", "g"}}},
			addresses: internal("10.244.0.1", "10.0.0.1"),
			want: []string{
				"10.244.0.1 through a:50000", "10.0.0.1 through b:50000", "10.244.0.1 through c:50000", "10.0.0.1 through d:50000",
				"10.244.0.1 through e:50000", "10.0.0.1 through f:50000",
			},
			why: "ways to it that were not tried: 8 (spec.talosAPI.cidrs of the TalosClusterConfig says which addresses are used)",
		},
		"each pair once": {
			reach:     Reach{API: bootstrapv1.TalosAPISpec{Endpoints: []string{"a", "b", "c"}}},
			addresses: internal("10.0.0.1", "10.0.0.2"),
			want: []string{
				"10.0.0.1 through a:50000", "10.0.0.2 through b:50000", "10.0.0.1 through c:50000",
				"10.0.0.2 through a:50000", "10.0.0.1 through b:50000", "10.0.0.2 through c:50000",
			},
		},
		"more addresses than are tried": {
			addresses: internal("10.244.0.1", "10.244.0.2", "10.244.0.3", "10.244.0.4", "10.244.0.5", "10.244.0.6", "10.0.0.1"),
			want:      []string{"10.244.0.1:50000", "10.244.0.2:50000", "10.244.0.3:50000", "10.244.0.4:50000", "10.244.0.5:50000", "10.244.0.6:50000"},
			why:       "ways to it that were not tried: 1 (spec.talosAPI.cidrs of the TalosClusterConfig says which addresses are used)",
		},
		"the endpoint, when the user names it": {
			reach:     Reach{Endpoint: "10.0.0.1", API: bootstrapv1.TalosAPISpec{Endpoints: []string{"10.0.0.1"}}},
			addresses: internal("10.0.0.1"),
			want:      []string{"10.0.0.1 through 10.0.0.1:50000"},
		},
		"none": {why: "it has no address yet (its infrastructure machine reports none in status.addresses; some platforms need a guest agent for that)"},
		"none that can be used": {
			reach:     Reach{Endpoint: "10.0.0.100"},
			addresses: internal("10.0.0.100", "10.0.0.9", "name"),
			why: "it has no address of its own that can be used: 10.0.0.100 is the control-plane endpoint (if it is the machine's alone, name it in spec.talosAPI.endpoints of the TalosClusterConfig), " +
				"10.0.0.9 is the address of Machine other, too, name is no IP address",
		},
		"none of the types": {
			addresses: []clusterv1.MachineAddress{name},
			why:       "it has no address of the types InternalIP, ExternalIP; spec.talosAPI.addressTypes of the TalosClusterConfig says which are used",
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			all := []Machine{{Name: "m", Addresses: test.addresses}, {Name: "other", Addresses: internal("10.0.0.9")}}

			ways, why := test.reach.candidates(&all[0], sharedAddresses(all))

			var got []string
			for _, way := range ways {
				got = append(got, way.String())
			}

			if diff := cmp.Diff(test.want, got); diff != "" || why != test.why {
				t.Errorf("why %q (-want +got):\n%s", why, diff)
			}
		})
	}
}
