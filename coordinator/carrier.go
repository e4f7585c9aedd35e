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
	"github.com/fantasia-hpo/fantasia/internal/base/failpoint"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// retryEvery is how long the carrier waits before it retries the broker after
	// a failure. The outbox alone would retry much later.
	retryEvery = time.Second
	// assignGroup is how many assignments are published at once; a bus accepts up
	// to a thousand.
	assignGroup = 500
)

// controlBus is the part of the bus that a carrier needs.
type controlBus interface {
	Assign(ctx context.Context, as []*messaging.Assignment) error
	Withdraw(ctx context.Context, a *messaging.Assignment) error
	Control(ctx context.Context, c *messaging.Control) error
	Purge(ctx context.Context, study string, all bool) error
}

// carrier carries out effects, in order, in its own goroutine, so that a slow
// broker does not delay the loop. Its queues hold each effect once, so the number
// of attempts bounds their size. Safe for concurrent use.
type carrier struct {
	log     *slog.Logger
	bus     controlBus
	studies *studies // used in the loop only
	post    post
	ready   chan struct{}

	mu     sync.Mutex
	queued errands
}

// errands are the effects that wait to be carried out.
type errands struct {
	controls queue[controlKey, messaging.Control]
	withdraw queue[messaging.AttemptID, *messaging.Assignment]
	publish  queue[messaging.AttemptID, outgoing]
	purge    queue[string, string]
}

// outgoing is an assignment and the time when the ledger had it.
type outgoing struct {
	*messaging.Assignment
	committed time.Time
}

// controlKey identifies a control message: a later one with the same key replaces
// the earlier one.
type controlKey struct {
	kind   messaging.ControlKind
	worker string
	id     messaging.AttemptID
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

// run carries out queued effects until ctx ends. It fails only if another leader
// has fenced this one. It retries failed assignments and purges. It does not retry
// control messages: the next heartbeat or repeated result causes them again.
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

// carry carries out errands and adds those to retry to failed.
func (c *carrier) carry(ctx context.Context, e, failed *errands) error {
	for _, control := range e.controls.takeAll() {
		if control.Kind == messaging.ControlReceipt {
			failpoint.Reach(failpoint.LeaderBeforeReceipt)
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := c.bus.Control(call, &control)
		cancel()
		if control.Kind == messaging.ControlReceipt {
			failpoint.Reach(failpoint.LeaderAfterReceipt)
		}
		if err != nil {
			c.log.Debug("could not send a control message", telemetry.LogWorker, control.Worker, telemetry.LogError, err)
		}
	}
	for _, a := range e.withdraw.takeAll() {
		if err := c.withdraw(ctx, a); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(e.publish.takeAll(), assignGroup) {
		if err := c.publish(ctx, part, failed); err != nil {
			return err
		}
	}
	for _, study := range e.purge.takeAll() {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := c.bus.Purge(call, study, true)
		cancel()
		if err != nil {
			c.log.Warn("could not purge the messages of a deleted study; retrying", telemetry.LogStudy, study, telemetry.LogError, err)
			failed.purge.add(study, study)
		}
	}
	return nil
}

// publish publishes assignments and tells their engines.
func (c *carrier) publish(ctx context.Context, as []outgoing, failed *errands) error {
	assignments := make([]*messaging.Assignment, len(as))
	for i := range as {
		assignments[i] = as[i].Assignment
	}
	failpoint.Reach(failpoint.LeaderBeforePublish)
	call, cancel := context.WithTimeout(ctx, callTimeout)
	err := c.bus.Assign(call, assignments)
	cancel()
	failpoint.Reach(failpoint.LeaderAfterPublish)
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
		c.log.Warn("could not publish assignments; retrying", "assignments", len(as), telemetry.LogError, err)
		for _, a := range as {
			failed.publish.add(a.AttemptID, a)
		}
	}
	return nil
}

// publishSound publishes each assignment on its own after the bus has refused the
// group, so that one invalid assignment does not block the others.
func (c *carrier) publishSound(ctx context.Context, as []outgoing, failed *errands, err error) error {
	if len(as) == 1 {
		c.log.Error("the bus refused an assignment", telemetry.LogStudy, as[0].StudyName, telemetry.LogTrial, as[0].Trial, telemetry.LogError, err)
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

// again queues failed errands once more. The loop drops the assignments that no
// longer wait for a claim.
func (c *carrier) again(ctx context.Context, failed *errands) {
	if failed.publish.len()+failed.purge.len() == 0 {
		return
	}
	e := effects{publish: failed.publish.takeAll(), purge: failed.purge.takeAll()}
	c.post(ctx, func(context.Context, time.Time) error {
		e.publish = slices.DeleteFunc(e.publish, func(a outgoing) bool { return !c.studies.waits(a.Study, a.Trial, a.Nonce) })
		c.add(&e)
		return nil
	})
}

// withdraw takes back a queued attempt by claiming it.
func (c *carrier) withdraw(ctx context.Context, a *messaging.Assignment) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	err := c.bus.Withdraw(call, a)
	cancel()
	switch {
	case errors.Is(err, messaging.ErrFenced):
		return fmt.Errorf("withdraw an assignment: %w", err)
	case err != nil && !errors.Is(err, messaging.ErrClaimed):
		// A worker that claims the attempt will be told to cancel it.
		c.log.Warn("could not withdraw a queued attempt", telemetry.LogTrial, a.Trial, telemetry.LogError, err)
		return nil
	}
	ok := err == nil
	c.post(ctx, func(_ context.Context, now time.Time) error {
		c.studies.stepIn(a.Study, engine.Withdrawn{At: now, Attempt: a.AttemptID, OK: ok})
		return nil
	})
	return nil
}
