package worker

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// maxAvoided bounds how many studies are remembered as avoided.
const maxAvoided = 1024

// registry knows what the worker does now. Safe for concurrent use.
type registry struct {
	mu      sync.Mutex
	running map[messaging.AttemptID]context.CancelCauseFunc
	avoided map[string]struct{}
	leaving bool
	// spent is how long attempts have run, all together, until the time since.
	spent time.Duration
	since time.Time
	// changed has room for one: something changed since the last heartbeat.
	changed chan struct{}
}

func newRegistry() *registry {
	return &registry{
		running: map[messaging.AttemptID]context.CancelCauseFunc{}, avoided: map[string]struct{}{},
		changed: make(chan struct{}, 1), since: time.Now(),
	}
}

// begin registers an attempt, from before its claim to after its result is
// spooled. The context ends, with the cause, when it is cancelled or the worker
// leaves; ok is false where the attempt is running already.
func (r *registry) begin(ctx context.Context, id messaging.AttemptID) (_ context.Context, end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.running[id]; ok {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if r.leaving {
		cancel(evaluation.ErrLeaving)
	}
	r.account()
	r.running[id] = cancel
	r.touch()
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.account()
		delete(r.running, id)
		r.touch()
	}, true
}

// account adds up the time that attempts have run. The caller holds the lock and
// calls it before what runs changes.
func (r *registry) account() {
	now := time.Now()
	r.spent += time.Duration(len(r.running)) * now.Sub(r.since)
	r.since = now
}

// busy is how long attempts have run so far, all together.
func (r *registry) busy() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account()
	return r.spent
}

// touch asks for a heartbeat.
func (r *registry) touch() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// cancel ends an attempt for a cause; false where it does not run.
func (r *registry) cancel(id messaging.AttemptID, cause error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	cancel, ok := r.running[id]
	if ok {
		cancel(cause)
	}
	return ok
}

// runs reports whether an attempt is running.
func (r *registry) runs(id messaging.AttemptID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.running[id]
	return ok
}

// leave ends every attempt, those of the future too.
func (r *registry) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = true
	for _, cancel := range r.running {
		cancel(evaluation.ErrLeaving)
	}
	r.touch()
}

// snapshot returns the attempts that run, in order of their trials.
func (r *registry) snapshot() (running []messaging.AttemptID, leaving bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.running {
		running = append(running, id)
	}
	slices.SortFunc(running, func(a, b messaging.AttemptID) int {
		if c := strings.Compare(a.Study, b.Study); c != 0 {
			return c
		}
		return a.Trial - b.Trial
	})
	return running, r.leaving
}

// avoid takes no more attempts of a study; false where that is known.
func (r *registry) avoid(study string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.avoided[study]; ok || len(r.avoided) >= maxAvoided {
		return false
	}
	r.avoided[study] = struct{}{}
	return true
}

func (r *registry) avoids(study string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.avoided[study]
	return ok
}
