package worker

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/base/failpoint"
	"github.com/fantasia-hpo/fantasia/internal/base/mutant"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/spool"
)

const (
	// publishTimeout limits one try to publish a result.
	publishTimeout = 10 * time.Second
	// maxResend limits the pause before a result is sent again.
	maxResend = time.Minute
	// maxSenders is the number of results that are published at once.
	maxSenders = 32
)

// sender publishes spooled results until the leader's receipt for each. It is safe for
// concurrent use.
type sender struct {
	bus    messaging.Worker
	spool  *spool.Spool
	log    *slog.Logger
	resend time.Duration
	limit  int

	mu      sync.Mutex
	work    sync.Cond // of mu: ready has more, or stopped
	change  sync.Cond // of mu: entries or unacked changed
	entries map[messaging.AttemptID]*entry
	ready   []*entry // to be published now, oldest first
	unacked int      // entries that were never acknowledged
	stopped bool
}

// entry is a result to be sent.
type entry struct {
	result *messaging.Result
	span   trace.Span // ends with the first acknowledgement
	sent   bool       // acknowledged by the bus
	retry  *backoff.Backoff
	pause  time.Duration // before it is sent again
	again  *time.Timer   // queues it again after the pause; nil before it was published
}

func newSender(o Options, s *spool.Spool) *sender {
	d := &sender{bus: o.Bus, spool: s, log: o.Logger, resend: o.ResendInterval, limit: o.SpoolLimit, entries: map[messaging.AttemptID]*entry{}}
	d.work.L, d.change.L = &d.mu, &d.mu
	for _, r := range s.Results() {
		if r.Worker != o.Name { // receipts go to the name of the sender
			renamed := *r
			renamed.Worker = o.Name
			r = &renamed
		}
		d.enqueue(r, nil)
	}
	return d
}

// add spools a result and queues it for sending.
func (d *sender) add(r *messaging.Result, span trace.Span) {
	failpoint.Reach(failpoint.WorkerBeforeSpool)
	if err := d.spool.Put(r); err != nil {
		// It is sent from memory anyway.
		d.log.Error("cannot write a result to disk: it is lost if this worker is killed before sending it", telemetry.LogError, err)
	}
	failpoint.Reach(failpoint.WorkerAfterSpool)
	d.enqueue(r, span)
}

func (d *sender) enqueue(r *messaging.Result, span trace.Span) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := &entry{result: r, span: span, retry: backoff.New(messaging.RetryFirst, messaging.RetryMost)}
	d.entries[r.AttemptID] = e
	d.ready = append(d.ready, e)
	d.unacked++
	d.work.Signal()
}

// receipt drops a result that the leader has; it returns false for an unknown one.
func (d *sender) receipt(id messaging.AttemptID) (bool, error) {
	d.mu.Lock()
	for known, e := range d.matching(id) {
		d.acknowledged(e)
		delete(d.entries, known)
		if e.again != nil {
			e.again.Stop()
		}
	}
	d.change.Broadcast()
	d.mu.Unlock()
	failpoint.Reach(failpoint.WorkerBeforeRemove)
	known, err := d.spool.Remove(id)
	failpoint.Reach(failpoint.WorkerAfterRemove)
	return known, err
}

// matching finds the entries of a receipt. A receipt without a nonce applies to every
// result of the attempt. The caller MUST hold the lock.
func (d *sender) matching(id messaging.AttemptID) map[messaging.AttemptID]*entry {
	found := map[messaging.AttemptID]*entry{}
	if e, ok := d.entries[id]; ok {
		found[id] = e
	}
	if id.Nonce == "" {
		for known, e := range d.entries {
			if known.Nonce = ""; known == id {
				found[e.result.AttemptID] = e
			}
		}
	}
	return found
}

// acknowledged records that the bus or the leader has the result. The caller MUST hold the
// lock.
func (d *sender) acknowledged(e *entry) {
	if e.sent {
		return
	}
	e.sent = true
	d.unacked--
	if e.span != nil {
		e.span.End()
	}
}

// run publishes until ctx ends.
func (d *sender) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stopped = true
		d.work.Broadcast()
	})
	defer stop()
	var group sync.WaitGroup
	for range maxSenders {
		group.Go(func() { d.publishAll(ctx) })
	}
	group.Wait()
}

// publishAll publishes queued results, one at a time.
func (d *sender) publishAll(ctx context.Context) {
	for {
		e := d.nextReady()
		if e == nil {
			return
		}
		failpoint.Reach(failpoint.WorkerBeforePublish)
		try, cancel := context.WithTimeout(ctx, publishTimeout)
		err := d.bus.PublishResult(try, e.result)
		cancel()
		failpoint.Reach(failpoint.WorkerAfterPublish)
		d.published(e, err)
	}
}

// nextReady waits for a result to publish; nil if the sender was stopped.
func (d *sender) nextReady() *entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		for len(d.ready) == 0 && !d.stopped {
			d.work.Wait()
		}
		if d.stopped {
			return nil
		}
		e := d.ready[0]
		d.ready = d.ready[1:]
		if d.entries[e.result.AttemptID] == e { // no receipt has arrived
			return e
		}
	}
}

func (d *sender) published(e *entry, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err != nil:
		e.pause = min(e.retry.Next(), d.resend)
		if !d.stopped {
			d.log.Warn("cannot publish a result; retrying",
				telemetry.LogTrial, e.result.Trial, telemetry.LogAttempt, e.result.Attempt, telemetry.LogError, err)
		}
	case !e.sent:
		d.acknowledged(e)
		e.retry.Reset()
		e.pause = d.resend
	default: // no receipt has come in time
		e.pause = min(2*e.pause, max(maxResend, d.resend))
	}
	if d.entries[e.result.AttemptID] == e { // no receipt has arrived
		e.again = time.AfterFunc(e.pause, func() { d.requeue(e) })
	}
	d.change.Broadcast()
}

// requeue queues a result again that has waited too long for a receipt.
func (d *sender) requeue(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped || d.entries[e.result.AttemptID] != e || e.sent && !mutant.On(mutant.Resend) {
		return
	}
	d.ready = append(d.ready, e)
	d.work.Signal()
}

// wait waits for a condition until ctx ends. It calls condition with the lock held.
func (d *sender) wait(ctx context.Context, condition func() bool) error {
	stop := context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.change.Broadcast()
	})
	defer stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for !condition() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.change.Wait()
	}
	return nil
}

// flush waits until the bus has acknowledged every result.
func (d *sender) flush(ctx context.Context) error {
	return d.wait(ctx, func() bool { return d.unacked == 0 })
}

// spoolSpace waits until the spool has space for another result.
func (d *sender) spoolSpace(ctx context.Context) error {
	return d.wait(ctx, func() bool { return len(d.entries) < d.limit })
}

// unsent returns the attempts whose results have no receipt yet.
func (d *sender) unsent() []messaging.AttemptID { return d.waiting(math.MaxInt) }

// waiting returns up to n attempts whose results have no receipt yet.
func (d *sender) waiting(n int) []messaging.AttemptID {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := make([]messaging.AttemptID, 0, min(n, len(d.entries)))
	for id := range d.entries {
		if len(ids) == n {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// has reports whether the attempt's result has no receipt yet.
func (d *sender) has(id messaging.AttemptID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.entries[id]
	return ok
}

// len returns the number of results without a receipt.
func (d *sender) len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.entries)
}
