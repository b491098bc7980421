// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	maxAnswerMemory = 100 // MB, of the manager and of the API server

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

func measureHostile(ctx context.Context, s sizes) (results []result, err error) {
	world, err := scale.Start(ctx, scale.Options{})
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, world.Stop()) }()

	fleet, err := world.NewFleet(ctx, "hostile")
	if err != nil {
		return nil, err
	}

	manager, err := world.StartManager(ctx, "hostile")
	if err != nil {
		return nil, err
	}

	b, err := newHostileBench(ctx, world, manager, fleet.Namespace, s.settling)
	if err != nil {
		return nil, err
	}

	specs := hostile.Specs()
	names := slices.Sorted(maps.Keys(specs))

	var slowest, busiest, manages, serves result

	for _, name := range names {
		measured, err := b.patch(ctx, specs[name], s.hostileTries)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		note := fmt.Sprintf("%s: answered with %d", name, measured.code)
		slowest = worst(slowest, limited("hostile patches: slowest answer", float64(measured.took.Milliseconds()), millis, float64(maxAnswer.Milliseconds()), note))
		busiest = worst(busiest, told("hostile patches: most processor time", float64(measured.processor.Milliseconds()), millis, note))
		manages = worst(manages, limited("hostile patches: manager's memory", measured.manager, mega, maxAnswerMemory, note))
		serves = worst(serves, limited("hostile patches: API server's memory", measured.server, mega, maxAnswerMemory, note))

		progress("%s: %v (processors %v), manager %.0f MB, API server %.0f MB, status %d", name,
			measured.took.Round(time.Millisecond), measured.processor, measured.manager, measured.server, measured.code)
	}

	kept, err := b.kept(ctx)
	if err != nil {
		return nil, err
	}

	return append([]result{slowest, busiest, manages, serves}, kept...), manager.Stop()
}

func worst(a, b result) result {
	if a.measured > b.measured {
		return a
	}

	return b
}

// hostileBench sends patches and looks at the processes that answer.
type hostileBench struct {
	world   *scale.World
	manager *harness.Provider
	server  int // process
	http    *http.Client
	url     string

	// settling is how long memory must have stopped to shrink at the start and at the end; between two patches, a third of that.
	settling time.Duration

	managerRest, serverRest   scale.Memory // before the patch
	managerFirst, serverFirst scale.Memory // before all
}

func newHostileBench(ctx context.Context, world *scale.World, manager *harness.Provider, namespace string, settling time.Duration) (*hostileBench, error) {
	b := &hostileBench{world: world, manager: manager, settling: settling}

	var err error
	if b.server, err = world.PID(tools.KubeAPIServer); err != nil {
		return nil, err
	}

	config := world.Config()
	if b.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}

	b.url = fmt.Sprintf("%s/apis/%s/namespaces/%s/talosconfigpatches", config.Host, bootstrapv1.GroupVersion, namespace)

	if err = b.waitForWebhooks(ctx); err != nil {
		return nil, err
	}

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
		return (float64(now.Resident) - float64(first.Resident)) / megabyte
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
		code, text, err := b.post(ctx, hostilePatch(unknownVariable), "?dryRun=All")
		last = text

		return code == http.StatusUnprocessableEntity && bytes.Contains(text, []byte("validation.talosconfigpatch.")), err
	})
	if err != nil {
		return fmt.Errorf("the webhook refuses nothing: %w: the last answer was %.300s", err, last)
	}

	return nil
}

func hostilePatch(spec string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"TalosConfigPatch","metadata":{"name":"hostile"},"spec":%s}`, bootstrapv1.GroupVersion, spec)
}

// patch creates the patch some times, and removes it again: the median of the times, and the most memory.
func (b *hostileBench) patch(ctx context.Context, spec string, tries int) (answer, error) {
	var (
		took, processor []time.Duration
		worst           answer
	)

	if err := b.rest(ctx, b.settling/3); err != nil {
		return answer{}, err
	}

	for range tries {
		one, err := b.once(ctx, hostilePatch(spec))
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

func (b *hostileBench) once(ctx context.Context, patch []byte) (answer, error) {
	err := errors.Join(b.world.CollectGarbage(ctx, b.manager), b.world.CollectServerGarbage(ctx), scale.ForgetPeak(b.manager.PID()), scale.ForgetPeak(b.server))
	if err != nil {
		return answer{}, err
	}

	before, err := b.processorTime()
	if err != nil {
		return answer{}, err
	}

	start := time.Now()

	code, text, err := b.post(ctx, patch, "")
	if err != nil {
		return answer{}, err
	}

	measured := answer{took: time.Since(start), code: code}

	after, err := b.processorTime()
	if err != nil {
		return answer{}, err
	}

	measured.processor = after - before

	switch code {
	case http.StatusCreated, http.StatusUnprocessableEntity, http.StatusForbidden, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
	default:
		return measured, fmt.Errorf("answered with %d: %.300s", code, text)
	}

	if err = scale.Pause(ctx, digestion); err != nil {
		return measured, err
	}

	manager, err := scale.MemoryOf(b.manager.PID())
	if err != nil {
		return measured, err
	}

	server, err := scale.MemoryOf(b.server)
	if err != nil {
		return measured, err
	}

	measured.manager, measured.server = above(manager, b.managerRest), above(server, b.serverRest)

	if code == http.StatusCreated {
		_, _, err = b.request(ctx, http.MethodDelete, b.url+"/hostile", nil)
	}

	return measured, err
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
func above(peak, rest scale.Memory) float64 {
	return max(0, (float64(peak.Peak)-float64(rest.Resident))/megabyte)
}

func (b *hostileBench) post(ctx context.Context, patch []byte, query string) (int, []byte, error) {
	return b.request(ctx, http.MethodPost, b.url+query, patch)
}

func (b *hostileBench) request(ctx context.Context, method, url string, body []byte) (code int, text []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}

	request.Header.Set("Content-Type", "application/json")

	response, err := b.http.Do(request)
	if err != nil {
		return 0, nil, err
	}

	defer func() { err = errors.Join(err, response.Body.Close()) }()

	text, err = io.ReadAll(response.Body)

	return response.StatusCode, text, err
}
