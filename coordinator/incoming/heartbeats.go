package incoming

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/commit"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Heartbeats receives the workers' heartbeats, which renew their leases: see package lease. The loop
// owns it, except for Hear.
//
// Heartbeats are not stored, so they have no cursor and one may be lost. What a heartbeat decides
// MUST therefore also follow from the next one: it says all that its worker runs, and each one has
// what is not wanted any more cancelled again.
type Heartbeats struct {
	log     *slog.Logger // for what a worker can cause as often as it likes
	workers *lease.Workers
	studies *studies.Studies
	group   *commit.Group
}

// NewHeartbeats returns what renews the leases of workers.
func NewHeartbeats(log *slog.Logger, w *lease.Workers, s *studies.Studies, g *commit.Group) *Heartbeats {
	return &Heartbeats{log: log, workers: w, studies: s, group: g}
}

// Hear posts the workers' heartbeats to the loop until ctx ends. It fails if none can come any more: the
// term must end then, since all workers would soon count as silent.
func (h *Heartbeats) Hear(ctx context.Context, beats <-chan messaging.Heartbeat, post inbox.Post) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case b, ok := <-beats:
			if !ok {
				return errors.New("the subscription has ended")
			}
			if !post(ctx, func(_ context.Context, now time.Time) error { h.apply(b, now); return nil }) {
				return nil
			}
		}
	}
}

// apply renews a worker's leases and cancels attempts that are no longer wanted. A worker of a broken
// study is told nothing: its attempts may be wanted again once a leader can load the study.
func (h *Heartbeats) apply(b messaging.Heartbeat, now time.Time) {
	news := h.workers.Beat(b, now)
	if news.Shared {
		h.log.Warn("two workers use the same name: give each its own name or state directory", telemetry.LogWorker, b.Worker)
	}
	if news.Fresh { // a new process does not know what the last one was told
		for _, r := range h.studies.Ordered() {
			if reason, ok := r.Avoided[b.Worker]; ok && r.Running() {
				h.group.Messages().Avoid(b.Worker, r.Spec.ID, reason)
			}
		}
	}
	begun := make([]bool, len(b.Running))
	for _, place := range b.Begun {
		begun[place] = true
	}
	for place, id := range b.Running {
		switch r := h.studies.Get(id.Study); {
		case r == nil:
			h.group.Messages().Cancel(b.Worker, id, noSuchStudy)
		case r.Engine != nil:
			h.studies.Step(r, engine.Alive{At: now, Worker: b.Worker, Attempt: id, Begun: begun[place]})
		case r.Broken == nil: // the study has ended and is at rest
			h.group.Messages().Cancel(b.Worker, id, r.Ending())
		}
	}
}
