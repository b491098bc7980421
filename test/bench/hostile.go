// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/hostile"
	"github.com/maesh-dev/ichor/test/scale"
	"github.com/maesh-dev/ichor/test/tools"
)

const (
	maxAnswer       = time.Second
	maxAnswerMemory = 100 // MB, of the manager, and what it adds to the API server's

	// webhookTimeout bounds the wait for the API server to heed the webhooks, on a busy machine.
	webhookTimeout = 2 * time.Minute

	// digestion is what the controllers get to look at a patch that was accepted, which counts for memory.
	digestion = 500 * time.Millisecond
)

// answer is what one hostile patch costs.
type answer struct {
	took            time.Duration
	processor       time.Duration // of both processes, for the answer
	manager, server float64       // MB above rest
	code            int
}

// measureHostile has hostile patches answered in four ways: by the API server alone, as objects of a kind of which it knows nothing; by the same
// with the definition of their own kind, and nothing else of Ichor; by the API server and the manager, as users see it; and by the manager alone,
// asked as the API server asks it.
func measureHostile(ctx context.Context, world *scale.World, s sizes) ([]result, error) {
	fleet, err := world.NewFleet(ctx, "hostile")
	if err != nil {
		return nil, err
	}

	manager, err := world.StartManager(ctx, "hostile")
	if err != nil {
		return nil, err
	}

	b, err := newHostileBench(ctx, world, manager, fleet.Namespace, s)
	if err != nil {
		return nil, err
	}

	plain, err := b.all(ctx, way{"API server, a kind without a schema", plainPatch, b.createPlain}, s.hostileTries)
	if err != nil {
		return nil, err
	}

	alone, err := b.all(ctx, way{"API server alone", hostilePatch, b.create}, s.hostileTries)
	if err != nil {
		return nil, err
	}

	if err = b.waitForWebhooks(ctx); err != nil {
		return nil, err
	}

	whole, err := b.all(ctx, way{"API server and manager", hostilePatch, b.create}, s.hostileTries)
	if err != nil {
		return nil, err
	}

	asked, err := b.all(ctx, way{"manager alone", b.review, b.ask}, s.hostileTries)
	if err != nil {
		return nil, err
	}

	kept, err := b.kept(ctx)
	if err != nil {
		return nil, err
	}

	return append(hostileResults(plain, alone, whole, asked), kept...), manager.Stop()
}

// hostileResults are the worst of all patches, each with its name.
func hostileResults(plain, alone, whole, asked map[string]answer) []result {
	var own, slowest, server, busiest, manages, adds, serves, servesPlain result

	for _, name := range slices.Sorted(maps.Keys(whole)) {
		p, a, w, m := plain[name], alone[name], whole[name], asked[name]
		note := fmt.Sprintf("%s: answered with %d", name, w.code)
		took := func(a answer) float64 { return float64(a.took.Milliseconds()) }

		own = worst(own, limited("hostile patches: manager's slowest answer", took(m), millis, float64(maxAnswer.Milliseconds()), name))
		slowest = worst(slowest, limited("hostile patches: slowest answer", took(w), millis, float64(maxAnswer.Milliseconds()),
			fmt.Sprintf("%s, %.0f ms without the manager", note, took(a))))
		server = worst(server, told("hostile patches: slowest answer of the API server alone", took(a), millis, name))
		busiest = worst(busiest, told("hostile patches: most processor time", float64(w.processor.Milliseconds()), millis, note))
		manages = worst(manages, limited("hostile patches: manager's memory", max(w.manager, m.manager), mega, maxAnswerMemory, note))
		adds = worst(adds, limited("hostile patches: memory that the manager adds to the API server's", max(0, w.server-a.server), mega, maxAnswerMemory,
			note))
		serves = worst(serves, told("hostile patches: API server's memory", max(a.server, w.server), mega, note))
		servesPlain = worst(servesPlain, told("hostile patches: API server's memory without a schema", p.server, mega, name))
	}

	return []result{own, slowest, server, busiest, manages, adds, serves, servesPlain}
}

func worst(a, b result) result {
	if a.measured > b.measured {
		return a
	}

	return b
}

// hostileBench sends patches and looks at the processes that answer.
type hostileBench struct {
	world         *scale.World
	manager       *harness.Provider
	server        int // process
	http, webhook *http.Client
	url, plainURL string
	namespace     string
	specs         map[string]string

	// settling is how long memory must have stopped to shrink at the start and at the end; between two patches, a third of that.
	settling time.Duration

	managerRest, serverRest   scale.Memory // before the patch
	managerFirst, serverFirst scale.Memory // before all
}

func newHostileBench(ctx context.Context, world *scale.World, manager *harness.Provider, namespace string, s sizes) (*hostileBench, error) {
	b := &hostileBench{world: world, manager: manager, namespace: namespace, settling: s.settling, specs: hostile.Specs()}

	maps.DeleteFunc(b.specs, func(name, _ string) bool { return s.hostile != nil && !s.hostile.MatchString(name) })

	if len(b.specs) == 0 {
		return nil, fmt.Errorf("-patches %s: no hostile patch has such a name", s.hostile)
	}

	var err error
	if b.server, err = world.PID(tools.KubeAPIServer); err != nil {
		return nil, err
	}

	config := world.Config()
	if b.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}

	if b.webhook, err = world.WebhookClient(); err != nil {
		return nil, err
	}

	if err = world.InstallCRDs(ctx, plainKind()); err != nil {
		return nil, err
	}

	b.url = fmt.Sprintf("%s/apis/%s/namespaces/%s/talosconfigpatches", config.Host, bootstrapv1.GroupVersion, namespace)
	b.plainURL = fmt.Sprintf("%s/apis/%s/namespaces/%s/talosconfigpatches", config.Host, plainVersion, namespace)

	if err = b.rest(ctx, b.settling); err != nil {
		return nil, err
	}

	b.managerFirst, b.serverFirst = b.managerRest, b.serverRest

	return b, nil
}

// rest waits until both processes have given back what the patch before has cost, and remembers what they need at rest.
func (b *hostileBench) rest(ctx context.Context, settling time.Duration) (err error) {
	if b.serverRest, err = b.world.SettledServerMemory(ctx, settling); err != nil {
		return err
	}

	b.managerRest, err = b.world.SettledMemory(ctx, b.manager, settling)

	return err
}

// kept is by how much more both need at rest after everything.
func (b *hostileBench) kept(ctx context.Context) ([]result, error) {
	if err := b.rest(ctx, b.settling); err != nil {
		return nil, err
	}

	more := func(first, now scale.Memory) float64 {
		return (float64(now.Own()) - float64(first.Own())) / megabyte
	}

	return []result{
		limited("hostile patches: manager's memory kept", more(b.managerFirst, b.managerRest), mega, maxAnswerMemory, "at rest, after all of them"),
		told("hostile patches: API server's memory kept", more(b.serverFirst, b.serverRest), mega, "at rest, after all of them"),
	}, nil
}

// waitForWebhooks installs them and tries until the API server asks them. What is refused is something that no schema can: a webhook is
// asked after the schema. The first answers also warm both sides.
func (b *hostileBench) waitForWebhooks(ctx context.Context) error {
	if err := b.world.InstallWebhooks(ctx); err != nil {
		return err
	}

	const unknownVariable = `{"layer":"Cluster","clusterName":"a","documents":[{"kind":"UserVolumeConfig",` +
		`"userVolumeConfig":{"name":"v","provisioning":{"diskSelector":{"match":"nothing == 1"}}}}]}`

	var last []byte

	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, webhookTimeout, true, func(ctx context.Context) (bool, error) {
		code, text, err := b.post(ctx, b.url+"?dryRun=All", hostilePatch(unknownVariable))
		last = text

		return code == http.StatusUnprocessableEntity && bytes.Contains(text, []byte("validation.talosconfigpatch.")), err
	})
	if err != nil {
		return fmt.Errorf("the webhook refuses nothing: %w: the last answer was %.300s", err, last)
	}

	return nil
}

// all has all patches answered in one way.
func (b *hostileBench) all(ctx context.Context, by way, tries int) (map[string]answer, error) {
	answers := map[string]answer{}

	for _, name := range slices.Sorted(maps.Keys(b.specs)) {
		measured, err := b.patch(ctx, by.body(b.specs[name]), tries, by.ask)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", by.name, name, err)
		}

		answers[name] = measured

		progress("%s: %s: %v (processors %v), manager %.0f MB, API server %.0f MB, status %d", by.name, name,
			measured.took.Round(time.Millisecond), measured.processor, measured.manager, measured.server, measured.code)
	}

	return answers, nil
}

// patch has the patch answered some times: the median of the times, and the most memory.
func (b *hostileBench) patch(ctx context.Context, patch []byte, tries int, ask func(context.Context, []byte) (int, error)) (answer, error) {
	var (
		took, processor []time.Duration
		worst           answer
	)

	if err := b.rest(ctx, b.settling/3); err != nil {
		return answer{}, err
	}

	for range tries {
		one, err := b.once(ctx, patch, ask)
		if err != nil {
			return answer{}, err
		}

		took, processor = append(took, one.took), append(processor, one.processor)
		worst.code = one.code
		worst.manager, worst.server = max(worst.manager, one.manager), max(worst.server, one.server)
	}

	worst.took, worst.processor = median(took), median(processor)

	return worst, nil
}

func (b *hostileBench) once(ctx context.Context, patch []byte, ask func(context.Context, []byte) (int, error)) (answer, error) {
	if err := errors.Join(b.world.CollectGarbage(ctx, b.manager), b.world.CollectServerGarbage(ctx)); err != nil {
		return answer{}, err
	}

	managerPeak, serverPeak := scale.WatchPeak(b.manager.PID()), scale.WatchPeak(b.server)

	before, err := b.processorTime()
	if err != nil {
		return answer{}, err
	}

	start := time.Now()

	code, err := ask(ctx, patch)
	if err != nil {
		return answer{}, err
	}

	measured := answer{took: time.Since(start), code: code}

	after, err := b.processorTime()
	if err != nil {
		return answer{}, err
	}

	measured.processor = after - before

	if err = scale.Pause(ctx, digestion); err != nil {
		return measured, err
	}

	manager, err := managerPeak.End()
	if err != nil {
		return measured, err
	}

	server, err := serverPeak.End()
	if err != nil {
		return measured, err
	}

	measured.manager, measured.server = above(manager, b.managerRest), above(server, b.serverRest)

	return measured, b.remove(ctx, code)
}

// processorTime is that of both processes so far.
func (b *hostileBench) processorTime() (time.Duration, error) {
	manager, err := scale.ProcessorTime(b.manager.PID())
	if err != nil {
		return 0, err
	}

	server, err := scale.ProcessorTime(b.server)

	return manager + server, err
}

// above is by how much the peak is above rest, in MB.
func above(peak uint64, rest scale.Memory) float64 {
	return max(0, (float64(peak)-float64(rest.Own()))/megabyte)
}
