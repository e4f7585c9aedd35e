package worker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// maxAvoided is the number of avoided studies that are remembered.
const maxAvoided = 1024

// registry records what the worker is doing. It is safe for concurrent use.
type registry struct {
	mu      sync.Mutex
	running map[messaging.AttemptID]runningAttempt
	// waiting has why the programs of running attempts have not started.
	waiting map[messaging.AttemptID]string
	// begun has the running attempts whose programs have started.
	begun   map[messaging.AttemptID]bool
	avoided map[string]struct{}
	leaving bool
	// spent is the total running time of attempts up to since.
	spent time.Duration
	since time.Time
	// changed holds a value if something has changed since the last heartbeat.
	changed chan struct{}
}

// runningAttempt is an attempt that can be ended.
type runningAttempt struct {
	study  string // its name, for logs
	cancel context.CancelCauseFunc
}

// begin registers an attempt of a study, from before its claim until its result is spooled. The
// returned context ends, with the cause, if the attempt is cancelled or the worker
// leaves; ok is false if the attempt is already running.
func (r *registry) begin(ctx context.Context, study string, id messaging.AttemptID) (_ context.Context, end func(), ok bool) {
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
	r.running[id] = runningAttempt{study, cancel}
	r.touch()
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.account()
		delete(r.running, id)
		delete(r.waiting, id)
		delete(r.begun, id)
		r.touch()
	}, true
}

// account adds up the running time of attempts. The caller MUST hold the lock, and call
// it before the set of running attempts changes.
func (r *registry) account() {
	now := time.Now()
	r.spent += time.Duration(len(r.running)) * now.Sub(r.since)
	r.since = now
}

// busy returns the total running time of attempts so far.
func (r *registry) busy() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account()
	return r.spent
}

// touch says that the status may have changed.
func (r *registry) touch() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// cancel ends an attempt for a cause, and returns the name of its study; it returns false if the
// attempt is not running.
func (r *registry) cancel(id messaging.AttemptID, cause error) (study string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.running[id]
	if ok {
		a.cancel(cause)
	}
	return a.study, ok
}

// runs reports whether an attempt is running.
func (r *registry) runs(id messaging.AttemptID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.running[id]
	return ok
}

// leave ends every attempt, including future ones.
func (r *registry) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = true
	for _, a := range r.running {
		a.cancel(evaluation.ErrLeaving)
	}
	r.touch()
}

// wait records why an attempt's program has not started; an empty cause says that it has.
func (r *registry) wait(id messaging.AttemptID, cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, running := r.running[id]; !running || r.waiting[id] == cause && r.begun[id] == (cause == "") {
		return
	}
	if r.begun[id] = cause == ""; r.begun[id] {
		delete(r.waiting, id)
	} else {
		r.waiting[id] = cause
	}
	r.touch()
}

// count returns how many attempts run.
func (r *registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
}

// tell says in a heartbeat which attempts run, ordered by trial, which of their programs have started, and why others have not.
func (r *registry) tell(h *messaging.Heartbeat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.Running = slices.SortedFunc(maps.Keys(r.running), func(a, b messaging.AttemptID) int {
		return cmp.Or(strings.Compare(a.Study, b.Study), a.Trial-b.Trial)
	})
	for place, id := range h.Running {
		if r.begun[id] {
			h.Begun = append(h.Begun, place)
		}
	}
	h.SetWaiting(r.waiting)
	h.Leaving = r.leaving
}

// avoid stops taking attempts of a study; it returns false if it already had.
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
