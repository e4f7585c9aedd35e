package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// inboxSize bounds what waits for the loop; senders block beyond it.
	inboxSize = 1024
	// tickEvery is the longest that the loop sleeps: leases are checked then.
	tickEvery = time.Second
	// callTimeout bounds one call of the broker or the ledger.
	callTimeout = 10 * time.Second
)

// input is one thing that the loop has to do, together with whatever else waits.
type input func(l *leader, now time.Time) error

// leader is one term: a single goroutine, the loop, owns the engines and
// everything else here that is not marked otherwise.
type leader struct {
	c       *Coordinator
	log     *slog.Logger
	term    *election.Term
	inbox   chan input // safe for concurrent use
	carrier *carrier   // safe for concurrent use
	asks    *asks      // safe for concurrent use
	workers sync.WaitGroup

	runs    map[string]*run
	names   map[string]string // name to id
	fleet   *fleet
	writer  *ledger.Writer
	batch   *ledger.Batch
	cursors map[messaging.Stream]messaging.Cursor
	// held are effects that wait for the batch's commit, replied the commands'.
	held    effects
	replied []func(error)
}

// newLeader prepares a term; nothing runs yet.
func newLeader(c *Coordinator, term *election.Term) *leader {
	l := &leader{
		c: c, term: term,
		log:     c.o.Logger.With(telemetry.LogEpoch, term.Epoch),
		inbox:   make(chan input, inboxSize),
		runs:    map[string]*run{},
		names:   map[string]string{},
		fleet:   newFleet(c.o.WorkerLease),
		batch:   &ledger.Batch{},
		cursors: map[messaging.Stream]messaging.Cursor{},
	}
	l.carrier = newCarrier(l)
	l.asks = newAsks(l)
	return l
}

// lead is one whole term: it returns when ctx ends, when the leadership is lost,
// or when it cannot go on.
func (c *Coordinator) lead(ctx context.Context, term *election.Term) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := newLeader(c, term)
	c.metrics.takeovers.Add(ctx, 1)
	first := c.terms.Add(1) == 1
	readers, err := l.takeOver(ctx, first && c.o.HandBack)
	if err != nil {
		return fmt.Errorf("take the shard over: %w", err)
	}
	l.start(ctx, cancel, readers)
	defer func() {
		cancel(nil)
		l.workers.Wait()
		l.refuse()
	}()
	c.setTerm(l)
	defer c.setTerm(nil)
	l.log.Info("leading", "studies", len(l.runs))
	err = l.loop(ctx)
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	return err
}

// start starts the goroutines of the term; they end with ctx, and a failure of
// one ends it.
func (l *leader) start(ctx context.Context, cancel context.CancelCauseFunc, readers []messaging.Reader) {
	spawn := func(what string, f func(context.Context) error) {
		l.workers.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	for _, r := range readers {
		spawn("read a stream", func(ctx context.Context) error { return l.read(ctx, r) })
	}
	spawn("hear heartbeats", l.hear)
	spawn("carry effects out", l.carrier.run)
}

// send hands an input to the loop and reports whether the term still lives.
func (l *leader) send(ctx context.Context, in input) bool {
	select {
	case l.inbox <- in:
		return true
	case <-ctx.Done():
		return false
	}
}

// loop applies whatever has come in, commits what it changed in one group, and
// then releases its effects.
func (l *leader) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case in := <-l.inbox:
			if err := in(l, time.Now()); err != nil {
				return err
			}
		case <-timer.C:
		}
		if err := l.gather(); err != nil {
			return err
		}
		next, err := l.tick(time.Now())
		if err != nil {
			return err
		}
		if err := l.commit(ctx); err != nil {
			return err
		}
		timer.Reset(max(0, min(time.Until(next), tickEvery)))
	}
}

// gather applies what waits in the inbox until the batch is large enough.
func (l *leader) gather() error {
	for !l.batch.Full() {
		select {
		case in := <-l.inbox:
			if err := in(l, time.Now()); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// commit makes the batch durable, and only then lets its effects out.
func (l *leader) commit(ctx context.Context) error {
	if err := l.archiveResults(ctx, l.held.archives); err != nil {
		l.reply(err)
		return err
	}
	if err := l.store(ctx); err != nil {
		l.reply(err)
		return fmt.Errorf("commit to the ledger: %w", err)
	}
	now := time.Now()
	for _, t := range l.held.ended {
		l.c.emit(ctx, t.run, t.trial, now)
	}
	l.carrier.add(&l.held)
	for _, a := range l.held.asks {
		l.asks.start(ctx, a.run, a.ask)
	}
	l.held = effects{}
	l.reply(nil)
	return nil
}

// store commits the batch. While etcd has no space left it waits: nothing is
// suggested or receipted meanwhile, and nothing is lost.
func (l *leader) store(ctx context.Context) error {
	if l.batch.Len() == 0 {
		return nil
	}
	for {
		start := time.Now()
		err := l.writer.Commit(ctx, l.batch)
		l.c.metrics.commit.Record(ctx, time.Since(start).Seconds())
		if !errors.Is(err, ledger.ErrNoSpace) {
			l.batch = &ledger.Batch{}
			return err
		}
		l.log.Error("paused until etcd has space", telemetry.LogError, err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tickEvery):
		}
	}
}

// reply answers the commands whose changes were in the batch.
func (l *leader) reply(err error) {
	for _, f := range l.replied {
		f(err)
	}
	l.replied = nil
}

// refuse answers the commands that came too late for this term.
func (l *leader) refuse() {
	l.reply(ErrNotLeader)
	for {
		select {
		case in := <-l.inbox:
			_ = in(nil, time.Time{})
		default:
			return
		}
	}
}

// tick lets time pass for every running study and checks the workers' leases. It
// returns when it has to be called again at the latest.
func (l *leader) tick(now time.Time) (next time.Time, err error) {
	next = now.Add(tickEvery)
	checkLeases := l.fleet.due(now)
	if checkLeases {
		l.look()
	}
	for _, r := range l.ordered() {
		if !r.running() {
			continue
		}
		if checkLeases {
			for _, lost := range l.fleet.lost(r.engine.Open(), now) {
				l.log.Warn("an attempt is lost", telemetry.LogStudy, r.name(), telemetry.LogTrial, lost.Attempt.Trial,
					telemetry.LogAttempt, lost.Attempt.Attempt, telemetry.LogReason, lost.Reason)
				l.step(r, lost)
			}
		}
		if l.fleet.changed(r) {
			slots, free := l.fleet.capacity(r)
			l.step(r, engine.Capacity{At: now, Slots: slots, Free: free})
		}
		if r.due(now) {
			l.step(r, engine.Tick{At: now})
		}
		if !r.wake.IsZero() && r.wake.Before(next) {
			next = r.wake
		}
	}
	return next, nil
}

// ordered returns the studies in the order of their ids, which is the order in
// which they were created.
func (l *leader) ordered() []*run {
	rs := make([]*run, 0, len(l.runs))
	for _, r := range l.runs {
		rs = append(rs, r)
	}
	slices.SortFunc(rs, func(a, b *run) int {
		switch {
		case a.spec.ID < b.spec.ID:
			return -1
		case a.spec.ID > b.spec.ID:
			return 1
		default:
			return 0
		}
	})
	return rs
}

// step applies an event to a study and takes what it asks for into the batch.
func (l *leader) step(r *run, ev engine.Event) {
	out := r.engine.Step(ev)
	r.wake = out.Wake
	l.take(r, out)
}

// take puts an output's records into the batch and holds its effects back.
func (l *leader) take(r *run, out engine.Output) {
	id := r.spec.ID
	for i := range out.Trials {
		l.batch.PutTrial(id, &out.Trials[i])
	}
	if out.Study != nil {
		r.spec = *out.Study
		l.batch.PutStudy(out.Study)
	}
	if out.Model != nil {
		l.batch.PutModel(id, out.Model)
	}
	if out.Status != nil {
		l.batch.PutStatus(id, out.Status)
		r.status = *out.Status
	}
	for _, w := range out.Warnings {
		l.log.Warn(w, telemetry.LogStudy, r.name())
	}
	l.held.take(r, &out, l.fleet)
}
