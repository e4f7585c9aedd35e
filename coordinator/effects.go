package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// effects are what is to be done once the records that led to it are durable.
type effects struct {
	publish  []*messaging.Assignment
	withdraw []*messaging.Assignment
	controls []messaging.Control
	purge    []string
	archives []engine.Archive
	ended    []endedTrial
	asks     []askOf
}

type endedTrial struct {
	run   *run
	trial record.Trial
}

type askOf struct {
	run *run
	ask *engine.Ask
}

// take adds an output's effects.
func (e *effects) take(r *run, out *engine.Output, f *fleet) {
	e.publish = append(e.publish, out.Publish...)
	e.withdraw = append(e.withdraw, out.Withdraw...)
	for _, c := range out.Cancels {
		e.controls = append(e.controls, messaging.Control{Kind: messaging.ControlCancel, Worker: c.Worker, AttemptID: c.Attempt, Reason: c.Reason})
	}
	for _, a := range out.Avoids {
		f.avoid(a.Worker, r.spec.ID)
		e.controls = append(e.controls, avoid(a.Worker, r.spec.ID, a.Reason))
	}
	for _, p := range out.Receipts {
		e.controls = append(e.controls, receipt(p.Worker, p.Attempt, p.Disposition))
	}
	e.archives = append(e.archives, out.Archives...)
	for _, t := range out.Ended {
		e.ended = append(e.ended, endedTrial{r, t})
	}
	if out.Ask != nil {
		e.asks = append(e.asks, askOf{r, out.Ask})
	}
}

func receipt(worker string, id messaging.AttemptID, d engine.Disposition) messaging.Control {
	return messaging.Control{Kind: messaging.ControlReceipt, Worker: worker, AttemptID: id, Disposition: string(d)}
}

func avoid(worker, study, reason string) messaging.Control {
	return messaging.Control{Kind: messaging.ControlAvoid, Worker: worker, AttemptID: messaging.AttemptID{Study: study}, Reason: reason}
}

// carrier carries effects out, in order, in a goroutine of its own, so that a
// slow broker does not hold the loop up. Its queue is bounded by the number of
// open attempts. Safe for concurrent use.
type carrier struct {
	l     *leader
	ready chan struct{}

	mu     sync.Mutex
	queued effects
}

func newCarrier(l *leader) *carrier { return &carrier{l: l, ready: make(chan struct{}, 1)} }

// add queues effects.
func (c *carrier) add(e *effects) {
	if len(e.publish)+len(e.withdraw)+len(e.controls)+len(e.purge) == 0 {
		return
	}
	c.mu.Lock()
	c.queued.publish = append(c.queued.publish, e.publish...)
	c.queued.withdraw = append(c.queued.withdraw, e.withdraw...)
	c.queued.controls = append(c.queued.controls, e.controls...)
	c.queued.purge = append(c.queued.purge, e.purge...)
	c.mu.Unlock()
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

func (c *carrier) next() effects {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.queued
	c.queued = effects{}
	return e
}

// run carries out what is queued until ctx ends. It fails only where another
// leader has fenced this one: everything else is tried again by the outbox, by
// the workers' next heartbeat, or by their next sending.
func (c *carrier) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.ready:
		}
		if err := c.carry(ctx, c.next()); err != nil {
			return err
		}
	}
}

func (c *carrier) carry(ctx context.Context, e effects) error {
	for _, control := range e.controls {
		if err := c.l.c.o.Bus.Control(ctx, &control); err != nil {
			c.l.log.Debug("a control message was not sent", telemetry.LogWorker, control.Worker, telemetry.LogError, err)
		}
	}
	for _, a := range e.withdraw {
		if err := c.withdraw(ctx, a); err != nil {
			return err
		}
	}
	if err := c.publish(ctx, e.publish); err != nil {
		return err
	}
	for _, study := range e.purge {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := c.l.c.o.Bus.Purge(call, study, true)
		cancel()
		if err != nil {
			c.l.log.Warn("the messages of a deleted study were not purged", telemetry.LogStudy, study, telemetry.LogError, err)
		}
	}
	return nil
}

// publish sends assignments out and tells their engines.
func (c *carrier) publish(ctx context.Context, as []*messaging.Assignment) error {
	if len(as) == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	err := c.l.c.o.Bus.Assign(call, as)
	cancel()
	switch {
	case errors.Is(err, messaging.ErrFenced):
		return fmt.Errorf("publish assignments: %w", err)
	case err != nil:
		c.l.log.Warn("assignments were not published; they will be again", "assignments", len(as), telemetry.LogError, err)
		return nil
	}
	c.l.send(ctx, func(l *leader, now time.Time) error {
		if l == nil {
			return nil
		}
		for _, a := range as {
			if r := l.runs[a.Study]; r != nil && r.engine != nil {
				l.step(r, engine.Published{At: now, Attempt: a.AttemptID})
			}
		}
		return nil
	})
	return nil
}

// withdraw takes a queued attempt back by claiming it.
func (c *carrier) withdraw(ctx context.Context, a *messaging.Assignment) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	err := c.l.c.o.Bus.Withdraw(call, a)
	cancel()
	if err != nil && !errors.Is(err, messaging.ErrClaimed) {
		if errors.Is(err, messaging.ErrFenced) {
			return fmt.Errorf("withdraw an assignment: %w", err)
		}
		// Whoever claims it is told to cancel.
		c.l.log.Warn("a queued attempt was not withdrawn", telemetry.LogTrial, a.Trial, telemetry.LogError, err)
		return nil
	}
	ok := err == nil
	c.l.send(ctx, func(l *leader, now time.Time) error {
		if l == nil {
			return nil
		}
		if r := l.runs[a.Study]; r != nil && r.engine != nil {
			l.step(r, engine.Withdrawn{At: now, Attempt: a.AttemptID, OK: ok})
		}
		return nil
	})
	return nil
}

// archive puts a result that is not folded into the dead-letter queue. It is
// done before the cursor moves, so that a crash archives twice rather than never.
func (l *leader) archive(ctx context.Context, subject, reason string, raw []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := l.c.o.Bus.Archive(ctx, subject, reason, raw); err != nil {
		return fmt.Errorf("put a message into the dead-letter queue: %w", err)
	}
	return nil
}

// archiveResults archives the results that a step did not fold.
func (l *leader) archiveResults(ctx context.Context, archives []engine.Archive) error {
	for _, a := range archives {
		raw, err := json.Marshal(a.Result)
		if err != nil {
			return fmt.Errorf("encode a late result: %w", err)
		}
		if err := l.archive(ctx, a.Result.Subject(l.c.o.Shard), a.Reason, raw); err != nil {
			return err
		}
	}
	return nil
}
