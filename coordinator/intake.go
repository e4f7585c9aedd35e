package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// read feeds a stream's entries to the loop, in their order, until ctx ends.
func (l *leader) read(ctx context.Context, r messaging.Reader) (err error) {
	defer func() {
		if e := r.Close(); e != nil && err == nil {
			err = fmt.Errorf("close a reader: %w", e)
		}
	}()
	for {
		entry, err := r.Next(ctx)
		if err != nil {
			return fmt.Errorf("wait for the next entry: %w", err)
		}
		if !l.send(ctx, func(l *leader, now time.Time) error {
			if l == nil {
				return nil
			}
			return l.entry(ctx, &entry, now)
		}) {
			return nil
		}
	}
}

// entry applies one entry and moves its stream's cursor with it.
func (l *leader) entry(ctx context.Context, e *messaging.Entry, now time.Time) error {
	var err error
	switch {
	case e.Err != nil:
		err = l.poison(ctx, e)
	case e.Claim != nil:
		err = l.claim(ctx, e.Claim, now)
	case e.Result != nil:
		err = l.result(ctx, e.Result, now)
	}
	if err != nil {
		return err
	}
	l.cursors[e.Stream] = e.Cursor
	l.batch.PutCursor(e.Stream, e.Cursor)
	return nil
}

// poison archives what nobody can read, and receipts it where its sender is
// known, so that the sender stops.
func (l *leader) poison(ctx context.Context, e *messaging.Entry) error {
	l.log.Warn("a message cannot be read", "subject", e.Subject, telemetry.LogError, e.Err)
	if err := l.archive(ctx, e.Subject, e.Err.Error(), e.Raw); err != nil {
		return err
	}
	if e.Stream == messaging.StreamResult && e.Worker != "" {
		l.held.controls = append(l.held.controls, receipt(e.Worker, e.ID, engine.Poison))
	}
	return nil
}

func (l *leader) claim(ctx context.Context, c *messaging.Claim, now time.Time) error {
	r := l.runs[c.Study]
	if r == nil {
		l.cancel(c.Worker, c.AttemptID, "the study does not exist")
		return nil
	}
	if _, err := l.engineOf(ctx, r, now); err != nil {
		return err
	}
	l.step(r, engine.Claimed{At: now, Claim: c})
	return nil
}

func (l *leader) result(ctx context.Context, res *messaging.Result, now time.Time) error {
	r := l.runs[res.Study]
	if r == nil {
		l.held.archives = append(l.held.archives, engine.Archive{Result: res, Reason: "the study does not exist"})
		l.held.controls = append(l.held.controls, receipt(res.Worker, res.AttemptID, engine.Unknown))
		return nil
	}
	if _, err := l.engineOf(ctx, r, now); err != nil {
		return err
	}
	l.step(r, engine.Finished{At: now, Result: res})
	return nil
}

func (l *leader) cancel(worker string, id messaging.AttemptID, reason string) {
	if worker == messaging.LeaderName {
		return
	}
	l.held.controls = append(l.held.controls, messaging.Control{Kind: messaging.ControlCancel, Worker: worker, AttemptID: id, Reason: reason})
}

// hear feeds the workers' heartbeats to the loop.
func (l *leader) hear(ctx context.Context) error {
	beats, err := l.c.o.Bus.Heartbeats(ctx)
	if err != nil {
		return fmt.Errorf("subscribe to heartbeats: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case h, ok := <-beats:
			if !ok {
				return fmt.Errorf("the subscription to heartbeats has ended: %w", context.Cause(ctx))
			}
			if !l.send(ctx, func(l *leader, now time.Time) error {
				if l != nil {
					l.heartbeat(ctx, h, now)
				}
				return nil
			}) {
				return nil
			}
		}
	}
}

// heartbeat renews a worker's leases and ends what it runs in vain.
func (l *leader) heartbeat(ctx context.Context, h messaging.Heartbeat, now time.Time) {
	if l.fleet.beat(h, now) {
		for study := range l.fleet.workers[h.Worker].avoided {
			l.held.controls = append(l.held.controls, avoid(h.Worker, study, "it failed there three times in a row"))
		}
	}
	for _, id := range h.Running {
		r := l.runs[id.Study]
		if r == nil {
			l.cancel(h.Worker, id, "the study does not exist")
			continue
		}
		if _, err := l.engineOf(ctx, r, now); err != nil {
			l.log.Warn("a heartbeat was not applied", telemetry.LogWorker, h.Worker, telemetry.LogError, err)
			continue
		}
		l.step(r, engine.Alive{At: now, Worker: h.Worker, Attempt: id})
	}
}
