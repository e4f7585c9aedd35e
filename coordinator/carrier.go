package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// retryEvery is how long after a failure the broker is tried again, long
	// before the outbox would.
	retryEvery = time.Second
	// assignGroup is how many assignments are published at once; buses take a
	// thousand.
	assignGroup = 500
)

// controlBus is what a carrier needs of a bus.
type controlBus interface {
	Assign(ctx context.Context, as []*messaging.Assignment) error
	Withdraw(ctx context.Context, a *messaging.Assignment) error
	Control(ctx context.Context, c *messaging.Control) error
	Purge(ctx context.Context, study string, all bool) error
}

// carrier carries effects out, in order, in a goroutine of its own, so that a
// slow broker does not hold the loop up. What waits is held once each, and so is
// bounded by the number of attempts. Safe for concurrent use.
type carrier struct {
	log     *slog.Logger
	bus     controlBus
	studies *studies // in the loop alone
	post    post
	ready   chan struct{}

	mu     sync.Mutex
	queued errands
}

// errands are what waits to be carried out.
type errands struct {
	controls queue[controlKey, messaging.Control]
	withdraw queue[messaging.AttemptID, *messaging.Assignment]
	publish  queue[messaging.AttemptID, outgoing]
	purge    queue[string, string]
}

// outgoing is an assignment, and since when the ledger has it.
type outgoing struct {
	*messaging.Assignment
	committed time.Time
}

// controlKey tells control messages apart: a later one of the same key says the same.
type controlKey struct {
	kind   messaging.ControlKind
	worker string
	id     messaging.AttemptID
}

func newCarrier(log *slog.Logger, bus controlBus, studies *studies, post post) *carrier {
	return &carrier{log: log, bus: bus, studies: studies, post: post, ready: make(chan struct{}, 1)}
}

// add queues effects.
func (c *carrier) add(e *effects) {
	if len(e.publish)+len(e.withdraw)+len(e.controls)+len(e.purge) == 0 {
		return
	}
	c.mu.Lock()
	for _, x := range e.controls {
		c.queued.controls.add(controlKey{x.Kind, x.Worker, x.AttemptID}, x)
	}
	for _, a := range e.withdraw {
		c.queued.withdraw.add(a.AttemptID, a)
	}
	for _, a := range e.publish {
		if a.committed.IsZero() {
			a.committed = e.committed
		}
		c.queued.publish.add(a.AttemptID, a)
	}
	for _, study := range e.purge {
		c.queued.purge.add(study, study)
	}
	c.mu.Unlock()
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

func (c *carrier) next() errands {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.queued
	c.queued = errands{}
	return e
}

// run carries out what is queued until ctx ends. It fails only where another
// leader has fenced this one. Assignments and purges that fail are tried again;
// control messages are, by the workers' next heartbeat or their next sending.
func (c *carrier) run(ctx context.Context) error {
	var failed errands
	retry := time.NewTimer(retryEvery)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.ready:
			e := c.next()
			if err := c.carry(ctx, &e, &failed); err != nil {
				return err
			}
		case <-retry.C:
			c.again(ctx, &failed)
			retry.Reset(retryEvery)
		}
	}
}

// carry carries errands out, and keeps those that are to be tried again.
func (c *carrier) carry(ctx context.Context, e, failed *errands) error {
	for _, control := range e.controls.take() {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := c.bus.Control(call, &control)
		cancel()
		if err != nil {
			c.log.Debug("a control message was not sent", telemetry.LogWorker, control.Worker, telemetry.LogError, err)
		}
	}
	for _, a := range e.withdraw.take() {
		if err := c.withdraw(ctx, a); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(e.publish.take(), assignGroup) {
		if err := c.publish(ctx, part, failed); err != nil {
			return err
		}
	}
	for _, study := range e.purge.take() {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := c.bus.Purge(call, study, true)
		cancel()
		if err != nil {
			c.log.Warn("the messages of a deleted study are still to be purged", telemetry.LogStudy, study, telemetry.LogError, err)
			failed.purge.add(study, study)
		}
	}
	return nil
}

// publish sends assignments out and tells their engines.
func (c *carrier) publish(ctx context.Context, as []outgoing, failed *errands) error {
	assignments := make([]*messaging.Assignment, len(as))
	for i := range as {
		assignments[i] = as[i].Assignment
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	err := c.bus.Assign(call, assignments)
	cancel()
	acknowledged := time.Now()
	switch {
	case err == nil:
		c.post(ctx, func(context.Context, time.Time) error { c.published(as, acknowledged); return nil })
		return nil
	case errors.Is(err, messaging.ErrFenced):
		return fmt.Errorf("publish assignments: %w", err)
	case errors.Is(err, messaging.ErrInvalid) || errors.Is(err, messaging.ErrTooLarge):
		return c.publishSound(ctx, as, failed, err)
	case ctx.Err() == nil:
		c.log.Warn("assignments were not published; they will be again", "assignments", len(as), telemetry.LogError, err)
		for _, a := range as {
			failed.publish.add(a.AttemptID, a)
		}
	}
	return nil
}

// publishSound publishes each assignment by itself, since one of them cannot be:
// the others must not wait for it.
func (c *carrier) publishSound(ctx context.Context, as []outgoing, failed *errands, err error) error {
	if len(as) == 1 {
		c.log.Error("an assignment cannot be sent", telemetry.LogStudy, as[0].StudyName, telemetry.LogTrial, as[0].Trial, telemetry.LogError, err)
		return nil
	}
	for i := range as {
		if err := c.publish(ctx, as[i:i+1], failed); err != nil {
			return err
		}
	}
	return nil
}

// published tells the engines that their assignments have reached the broker.
func (c *carrier) published(as []outgoing, acknowledged time.Time) {
	for _, a := range as {
		c.studies.stepIn(a.Study, engine.Published{At: acknowledged, Committed: a.committed, Attempt: a.AttemptID})
	}
}

// again queues what failed once more, but for what nobody waits for by now. The
// loop knows which.
func (c *carrier) again(ctx context.Context, failed *errands) {
	if failed.publish.len()+failed.purge.len() == 0 {
		return
	}
	e := effects{publish: failed.publish.take(), purge: failed.purge.take()}
	c.post(ctx, func(context.Context, time.Time) error {
		e.publish = slices.DeleteFunc(e.publish, func(a outgoing) bool { return !c.studies.waits(a.Study, a.Trial, a.Nonce) })
		c.add(&e)
		return nil
	})
}

// withdraw takes a queued attempt back by claiming it.
func (c *carrier) withdraw(ctx context.Context, a *messaging.Assignment) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	err := c.bus.Withdraw(call, a)
	cancel()
	switch {
	case errors.Is(err, messaging.ErrFenced):
		return fmt.Errorf("withdraw an assignment: %w", err)
	case err != nil && !errors.Is(err, messaging.ErrClaimed):
		// Whoever claims it is told to cancel.
		c.log.Warn("a queued attempt was not withdrawn", telemetry.LogTrial, a.Trial, telemetry.LogError, err)
		return nil
	}
	ok := err == nil
	c.post(ctx, func(_ context.Context, now time.Time) error {
		c.studies.stepIn(a.Study, engine.Withdrawn{At: now, Attempt: a.AttemptID, OK: ok})
		return nil
	})
	return nil
}
