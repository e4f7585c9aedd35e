// Package publish sends what the leader has decided: assignments, withdrawals, receipts and other
// control messages to workers, and the deletion of messages that nobody needs.
//
// A caller MUST add messages only once the records that say so are durable. Otherwise a leader
// that dies could have handed out a trial of which its successor knows nothing.
//
// What is queued is in memory only, and is lost with the leader. That is safe because the records
// say all of it: the next leader publishes the assignments that nobody claims, cancels what workers
// report that is not wanted, and answers the results that are sent again.
package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/base/failpoint"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// callTimeout bounds one call to the broker.
	callTimeout = 10 * time.Second
	// assignGroup is how many assignments are published at once; a bus accepts up
	// to a thousand.
	assignGroup = 500
)

// Bus is the part of the bus that a Publisher needs.
type Bus interface {
	Assign(ctx context.Context, as []*messaging.Assignment) error
	Withdraw(ctx context.Context, a *messaging.Assignment) error
	Control(ctx context.Context, c *messaging.Control) error
	Purge(ctx context.Context, study string, all bool) error
}

// Studies are told what has reached the broker. They are used in the loop only.
type Studies interface {
	// StepIn applies an event to the study with an id, if it is loaded.
	StepIn(id string, ev engine.Event)
	// Waits reports whether an assignment still waits for a claim.
	Waits(id string, trial int, nonce string) bool
}

// Publisher sends messages in order, in its own goroutine, so that a slow broker does not delay
// the loop. Its queues hold each message once, so the number of attempts bounds their size. Safe
// for concurrent use. What the broker answers goes back to the engines through the loop, as events.
type Publisher struct {
	log     *slog.Logger
	bus     Bus
	studies Studies
	post    inbox.Post
	ready   chan struct{} // has a value while something is queued

	mu     sync.Mutex
	queued queues
}

// queues are the messages that wait to be sent.
type queues struct {
	controls    queue[controlKey, messaging.Control]
	withdrawn   queue[messaging.AttemptID, *messaging.Assignment]
	assignments queue[messaging.AttemptID, Assignment]
	purged      queue[string, string]
}

// controlKey identifies a control message: a later one with the same key replaces
// the earlier one.
type controlKey struct {
	kind   messaging.ControlKind
	worker string
	id     messaging.AttemptID
}

// New returns a publisher for one term; Run sends what Add has queued.
func New(log *slog.Logger, bus Bus, studies Studies, post inbox.Post) *Publisher {
	return &Publisher{log: log, bus: bus, studies: studies, post: post, ready: make(chan struct{}, 1)}
}

// Add queues messages whose records became durable at a time. It never waits for the broker. An assignment
// that is tried again keeps the time of its first Add, from which its delay is measured.
func (p *Publisher) Add(m *Messages, committed time.Time) {
	if len(m.Assignments)+len(m.Withdrawn)+len(m.Controls)+len(m.Purged) == 0 {
		return
	}
	p.mu.Lock()
	for _, c := range m.Controls {
		p.queued.controls.add(controlKey{c.Kind, c.Worker, c.AttemptID}, c)
	}
	for _, a := range m.Withdrawn {
		p.queued.withdrawn.add(a.AttemptID, a)
	}
	for _, a := range m.Assignments {
		if a.committed.IsZero() {
			a.committed = committed
		}
		p.queued.assignments.add(a.AttemptID, a)
	}
	for _, study := range m.Purged {
		p.queued.purged.add(study, study)
	}
	p.mu.Unlock()
	select {
	case p.ready <- struct{}{}:
	default: // Run is to look already, and takes all that is queued then
	}
}

// takeQueued returns what is queued, and empties the queues.
func (p *Publisher) takeQueued() queues {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queued
	p.queued = queues{}
	return q
}

// send sends messages and adds those to try again to failed. Its error means that this leader is fenced. Purges
// come last, so that they also delete an assignment of the deleted study that is sent with them.
func (p *Publisher) send(ctx context.Context, q, failed *queues) error {
	for _, c := range q.controls.takeAll() {
		p.control(ctx, &c)
	}
	for _, a := range q.withdrawn.takeAll() {
		if err := p.withdraw(ctx, a); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(q.assignments.takeAll(), assignGroup) {
		if err := p.assign(ctx, part, failed); err != nil {
			return err
		}
	}
	for _, study := range q.purged.takeAll() {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := p.bus.Purge(call, study, true)
		cancel()
		if err != nil {
			p.log.Warn("could not purge the messages of a deleted study; retrying", telemetry.LogStudy, study, telemetry.LogError, err)
			failed.purged.add(study, study)
		}
	}
	return nil
}

// control sends a control message once: if it is lost, the worker's next heartbeat, or the result
// that it sends again, causes another.
func (p *Publisher) control(ctx context.Context, c *messaging.Control) {
	if c.Kind == messaging.ControlReceipt {
		failpoint.Reach(failpoint.LeaderBeforeReceipt)
		defer func() { failpoint.Reach(failpoint.LeaderAfterReceipt) }() // deferred itself, it would be linked into releases
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := p.bus.Control(call, c); err != nil {
		p.log.Debug("could not send a control message", telemetry.LogWorker, c.Worker, telemetry.LogError, err)
	}
}

// assign publishes assignments and tells their engines. After an error some of them may have been stored, and
// they are published again: a second copy replaces the first in the queue, or finds the attempt claimed.
func (p *Publisher) assign(ctx context.Context, as []Assignment, failed *queues) error {
	assignments := each.Of(as, func(a Assignment) *messaging.Assignment { return a.Assignment })
	failpoint.Reach(failpoint.LeaderBeforePublish)
	call, cancel := context.WithTimeout(ctx, callTimeout)
	err := p.bus.Assign(call, assignments)
	cancel()
	failpoint.Reach(failpoint.LeaderAfterPublish)
	acknowledged := time.Now()
	switch {
	case err == nil:
		p.post(ctx, func(context.Context, time.Time) error { p.published(as, acknowledged); return nil })
		return nil
	case errors.Is(err, messaging.ErrFenced):
		return fmt.Errorf("publish assignments: %w", err)
	case errors.Is(err, messaging.ErrInvalid) || errors.Is(err, messaging.ErrTooLarge):
		return p.assignEach(ctx, as, failed, err)
	case ctx.Err() == nil: // at the end of a term there is nothing to try again
		p.log.Warn("could not publish assignments; retrying", "assignments", len(as), telemetry.LogError, err)
		for _, a := range as {
			failed.assignments.add(a.AttemptID, a)
		}
	}
	return nil
}

// assignEach publishes each assignment on its own after the bus has refused the
// group, so that one invalid assignment does not block the others.
func (p *Publisher) assignEach(ctx context.Context, as []Assignment, failed *queues, err error) error {
	if len(as) == 1 {
		p.log.Error("the bus refused an assignment", telemetry.LogStudy, as[0].StudyName,
			telemetry.LogTrial, as[0].Trial, telemetry.LogError, err)
		return nil
	}
	for i := range as {
		if err := p.assign(ctx, as[i:i+1], failed); err != nil {
			return err
		}
	}
	return nil
}

// published tells the engines that their assignments have reached the broker.
func (p *Publisher) published(as []Assignment, acknowledged time.Time) {
	for _, a := range as {
		p.studies.StepIn(a.Study, engine.Published{At: acknowledged, Committed: a.committed, Attempt: a.AttemptID})
	}
}

// withdraw takes back a queued attempt by claiming it: the stream keeps one claim of an attempt, so no worker
// can run it after that. If a worker came first, its claim is in the stream, and tells the loop who it is.
func (p *Publisher) withdraw(ctx context.Context, a *messaging.Assignment) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	err := p.bus.Withdraw(call, a)
	cancel()
	switch {
	case errors.Is(err, messaging.ErrFenced):
		return fmt.Errorf("withdraw an assignment: %w", err)
	case err != nil && !errors.Is(err, messaging.ErrClaimed):
		// A worker that claims the attempt will be told to cancel it.
		p.log.Warn("could not withdraw a queued attempt", telemetry.LogTrial, a.Trial, telemetry.LogError, err)
		return nil
	}
	ok := err == nil
	p.post(ctx, func(_ context.Context, now time.Time) error {
		p.studies.StepIn(a.Study, engine.Withdrawn{At: now, Attempt: a.AttemptID, OK: ok})
		return nil
	})
	return nil
}

// queue holds values in the order in which their keys were first added; adding a
// key again replaces its value. The zero queue is empty and ready for use.
type queue[K comparable, V any] struct {
	keys   []K
	values map[K]V
}

func (q *queue[K, V]) add(key K, value V) {
	if q.values == nil {
		q.values = map[K]V{}
	}
	if _, ok := q.values[key]; !ok {
		q.keys = append(q.keys, key)
	}
	q.values[key] = value
}

func (q *queue[K, V]) len() int { return len(q.keys) }

// takeAll returns the values and empties the queue.
func (q *queue[K, V]) takeAll() []V {
	list := each.Of(q.keys, func(key K) V { return q.values[key] })
	*q = queue[K, V]{}
	return list
}
