package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/base/mutant"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// healthEvery is how often a leader asks whether the broker answers.
const healthEvery = time.Second

// watch keeps the fleet up to date and tells the engines about their workers. The
// loop owns it, except for hear and attend.
type watch struct {
	log     *slog.Logger
	room    *room
	lacking bool         // there was no room in etcd when the engines were last told
	others  *slog.Logger // for what a worker can cause as often as it likes
	workers *lease.Workers
	studies *studies
	journal *journal
}

// hear posts the workers' heartbeats to the loop.
func (w *watch) hear(ctx context.Context, beats <-chan messaging.Heartbeat, post inbox.Post) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case h, ok := <-beats:
			if !ok {
				return errors.New("the subscription has ended")
			}
			if !post(ctx, func(_ context.Context, now time.Time) error { w.heartbeat(h, now); return nil }) {
				return nil
			}
		}
	}
}

// heartbeat renews a worker's leases and cancels attempts that are no longer wanted.
func (w *watch) heartbeat(h messaging.Heartbeat, now time.Time) {
	news := w.workers.Beat(h, now)
	if news.Shared {
		w.others.Warn("two workers use the same name: give each its own name or state directory", telemetry.LogWorker, h.Worker)
	}
	if news.Fresh { // a new process does not know what the last one was told
		for _, r := range w.studies.ordered() {
			if reason, ok := r.avoided[h.Worker]; ok && r.running() {
				w.journal.held.Avoid(h.Worker, r.spec.ID, reason)
			}
		}
	}
	for _, id := range h.Running {
		switch r := w.studies.runs[id.Study]; {
		case r == nil:
			w.journal.held.Cancel(h.Worker, id, noSuchStudy)
		case r.engine != nil:
			w.studies.step(r, engine.Alive{At: now, Worker: h.Worker, Attempt: id})
		case r.broken == nil:
			w.journal.held.Cancel(h.Worker, id, r.ending())
		}
	}
}

// expire ends the attempts of a study whose workers or clients are gone.
func (w *watch) expire(r *run, now time.Time) {
	if !mutant.On(mutant.WorkerLease) {
		return
	}
	var expired []engine.Lost
	if r.byClients() {
		expired = w.workers.ExpiredOf(&r.clients, r.engine.Open(), now)
	} else {
		expired = w.workers.Expired(r.engine.Open(), now)
	}
	for _, lost := range expired {
		w.log.Warn("lost an attempt", telemetry.LogStudy, r.name(), telemetry.LogTrial, lost.Attempt.Trial,
			telemetry.LogAttempt, lost.Attempt.Attempt, telemetry.LogReason, lost.Reason)
		w.studies.step(r, lost)
	}
}

// changed reports whether a study's pool has changed since the last call.
func (w *watch) changed(r *run) bool {
	before := r.told
	r.told = w.workers.Version(r.pool())
	return r.told != before
}

// tellCapacity tells a study's engine about its pool if that has changed.
func (w *watch) tellCapacity(r *run, now time.Time) {
	if w.changed(r) {
		slots, free := w.workers.Slots(r.pool(), r.avoided)
		w.studies.step(r, engine.Capacity{At: now, Slots: slots, Free: free, Hold: w.lacking})
	}
}

// lookForRoom makes every study be told its capacity again if there is room in etcd again, or no
// longer.
func (w *watch) lookForRoom() {
	if lacking := w.room.isLacking(); lacking != w.lacking {
		w.lacking = lacking
		w.workers.TouchAll()
	}
}

// retellCapacity makes the studies that share a pool be told its capacity again. An engine
// estimates the free slots by the claims and results of its own study. So it does not see that
// another one has taken a slot, and a worker whose slots are all taken again at once sends no
// heartbeat that says so before its interval is over.
func (w *watch) retellCapacity() {
	running := map[string]int{}
	for _, r := range w.studies.loaded {
		if !r.running() || r.byClients() {
			continue
		}
		if running[r.pool()]++; running[r.pool()] == 2 {
			w.workers.Touch(r.pool())
		}
	}
}

// attend checks once a second whether the broker answers. During an outage no
// heartbeat can arrive, so no worker is given up. A leader that cannot reach the
// broker for two of its leases steps down, since another replica may reach it.
func (w *watch) attend(ctx context.Context, lease time.Duration, healthy func(context.Context) error, post inbox.Post) error {
	var since time.Time // of the outage; zero for none
	for range backoff.Ticks(ctx, healthEvery) {
		call, cancel := context.WithTimeout(ctx, lease)
		asked := time.Now()
		err := healthy(call)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && since.IsZero():
			continue
		case err == nil:
			w.log.Info("the broker answers again", "after", time.Since(since))
			since = time.Time{}
		case since.IsZero():
			w.log.Warn("the broker does not answer", telemetry.LogError, err)
			since = asked
		case time.Since(since) > 2*lease:
			return fmt.Errorf("no answer for %v: %w", time.Since(since).Round(time.Second), err)
		}
		post(ctx, func(_ context.Context, now time.Time) error { w.workers.ListenSince(now); return nil })
	}
	return nil
}
