// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// linkPlan is what the documents of a config make of links together. Machinery looks at one document at a time, and only within the legacy
// one at two links. On the node the kernel refuses what does not go together, Talos tries again for ever, and the machine may be left
// without a network.
type linkPlan struct {
	// masters are the links that another one was put into, by its name.
	masters map[string]address

	// needs are the links that a link is made of.
	needs map[string][]need

	// tags are the VLANs, by parent and tag.
	tags map[string]merge.ID

	findings []finding
}

// need is a link that another one is made of, and where that is said.
type need struct {
	name string
	at   address
}

// badLinks finds links that cannot be made: one within two others, a tag twice on a link, and links that are made of each other.
func badLinks(documents []config.Document) []finding {
	plan := &linkPlan{masters: map[string]address{}, needs: map[string][]need{}, tags: map[string]merge.ID{}}

	plan.legacy(documents)

	for _, document := range documents {
		plan.add(merge.IDOf(document), document)
	}

	return append(plan.findings, plan.circles()...)
}

func (p *linkPlan) add(id merge.ID, document config.Document) {
	switch typed := document.(type) {
	case *network.BondConfigV1Alpha1:
		p.within(typed.MetaName, id, "/links", typed.BondLinks)
	case *network.BridgeConfigV1Alpha1:
		p.within(typed.MetaName, id, "/links", typed.BridgeLinks)
	case *network.VRFConfigV1Alpha1:
		p.within(typed.MetaName, id, "/links", typed.VRFLinks)
	case *network.VLANConfigV1Alpha1:
		p.tag(id, typed)
	}
}

// legacy takes in the bonds and bridges of the legacy document. Machinery compares them with each other.
func (p *linkPlan) legacy(documents []config.Document) {
	machine, _ := legacyOf(documents)
	if machine.MachineNetwork == nil {
		return
	}

	for i, device := range machine.MachineNetwork.NetworkInterfaces {
		at := fmt.Sprintf("/machine/network/interfaces/%d/", i)

		if device.DeviceBond != nil {
			p.remember(device.DeviceInterface, at+"bond/interfaces", device.DeviceBond.BondInterfaces)
		}

		if device.DeviceBridge != nil {
			p.remember(device.DeviceInterface, at+"bridge/interfaces", device.DeviceBridge.BridgedInterfaces)
		}
	}
}

func (p *linkPlan) remember(link, pointer string, members []string) {
	for i, member := range members {
		at := address{merge.ID{Kind: merge.LegacyKind}, fmt.Sprintf("%s/%d", pointer, i)}
		p.masters[member] = at
		p.needs[link] = append(p.needs[link], need{member, at})
	}
}

func (p *linkPlan) fault(id merge.ID, pointer string, err error) {
	p.findings = append(p.findings, finding{document: id, field: pointer, err: err})
}

// within puts links into another one. The kernel puts a link into one at a time.
func (p *linkPlan) within(link string, id merge.ID, pointer string, members []string) {
	for i, member := range members {
		at := address{id, fmt.Sprintf("%s/%d", pointer, i)}

		switch master, taken := p.masters[member]; {
		case taken && master.id == id:
			p.fault(id, at.pointer, fmt.Errorf("%s is in this list twice: remove one", member))
		case taken:
			p.fault(id, at.pointer, fmt.Errorf("%s is in %s (%s) too, and a link can be in one other: remove it from one of the two", member, master.id, master.pointer))
		default:
			p.masters[member] = at
			p.needs[link] = append(p.needs[link], need{member, at})
		}
	}
}

func (p *linkPlan) tag(id merge.ID, vlan *network.VLANConfigV1Alpha1) {
	p.needs[vlan.MetaName] = append(p.needs[vlan.MetaName], need{vlan.ParentLinkConfig, address{id, "/parent"}})

	key := fmt.Sprintf("%s %s %d", vlan.ParentLinkConfig, vlan.VLANMode().ValueOrZero(), vlan.VLANIDConfig)
	if other, double := p.tags[key]; double && vlan.ParentLinkConfig != "" {
		p.fault(id, "/vlanID", fmt.Errorf("%s has the same tag on %s, and a link carries a tag once: choose another, or remove one of the two", other, vlan.ParentLinkConfig))

		return
	}

	p.tags[key] = id
}

// circles finds links that are made of themselves, each circle once.
func (p *linkPlan) circles() []finding {
	var findings []finding

	done := map[string]bool{}

	var follow func(name string, path []string)

	follow = func(name string, path []string) {
		for _, next := range p.needs[name] {
			if from := slices.Index(path, next.name); from >= 0 {
				findings = append(findings, finding{
					document: next.at.id, field: next.at.pointer,
					err: fmt.Errorf("leads back to the link itself (%s), which can never be made", strings.Join(append(slices.Clone(path[from:]), next.name), " on ")),
				})

				continue
			}

			if !done[next.name] {
				follow(next.name, append(slices.Clone(path), next.name))
			}
		}

		done[name] = true
	}

	for _, name := range slices.Sorted(maps.Keys(p.needs)) {
		if !done[name] {
			follow(name, []string{name})
		}
	}

	return findings
}

// claims are the names that documents of several kinds take from one another.
type claims struct {
	taken    map[string]merge.ID
	findings []finding
}

func (c *claims) claim(id merge.ID, pointer, sort, name string) {
	key := sort + " " + name

	if other, double := c.taken[key]; double && name != "" {
		c.findings = append(c.findings, finding{
			document: id, field: pointer,
			err: fmt.Errorf("%s is of the same name, and a machine has one %s of a name: choose another, or remove one of the two", other, sort),
		})

		return
	}

	c.taken[key] = id
}

// doubleNames finds documents of different kinds that are of one thing. Machinery refuses two links without saying which field is at fault,
// and takes two volumes, which would be mounted over each other.
func doubleNames(documents []config.Document) []finding {
	c := &claims{taken: map[string]merge.ID{}}

	for _, document := range documents {
		id := merge.IDOf(document)

		switch typed := document.(type) {
		case *network.VethConfigV1Alpha1:
			c.claim(id, "/name", "link", typed.MetaName)
			c.claim(id, "/peer/name", "link", typed.VethPeer.VethPeerName)
		case config.NetworkCommonLinkConfig:
			c.claim(id, "/name", "link", typed.Name())
		case *network.Layer2VIPConfigV1Alpha1, *network.HCloudVIPConfigV1Alpha1:
			c.claim(id, "/name", "virtual address", id.Name)
		case *block.UserVolumeConfigV1Alpha1, *block.ExistingVolumeConfigV1Alpha1, *block.ExternalVolumeConfigV1Alpha1:
			c.claim(id, "/name", "volume below /var/mnt", id.Name)
		}
	}

	return c.findings
}
