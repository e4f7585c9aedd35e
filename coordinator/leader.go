package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/publish"
	"github.com/fantasia-hpo/fantasia/internal/base/mutant"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"go.opentelemetry.io/otel/trace"
)

const (
	// tickEvery is the longest time that the loop sleeps before it checks leases.
	tickEvery = time.Second
	// callTimeout bounds one call to the broker or the ledger.
	callTimeout = 10 * time.Second
)

// leader is one term. A single goroutine, the loop, owns its parts and their state,
// except for those marked as safe for concurrent use.
type leader struct {
	c     *Coordinator
	log   *slog.Logger
	term  *election.Term
	inbox *inbox.Inbox // safe for concurrent use

	studies     *studies           // the engines
	journal     *journal           // what they changed since the last commit
	intake      *intake            // what workers publish
	watch       *watch             // which workers are alive
	clients     *clients           // calls that wait for trials
	publisher   *publish.Publisher // messages to workers; safe for concurrent use
	asks        *asks              // requests to the optimisers; safe for concurrent use
	recommender *recommender
	traces      *traces   // spans of ended trials
	observer    *observer // gauges
	trimmer     *trimmer  // deletes messages that nobody needs
	workers     sync.WaitGroup
}

// newLeader prepares a term and starts nothing.
func newLeader(c *Coordinator, term *election.Term) *leader {
	l := &leader{
		c: c, term: term,
		log:   c.o.Logger.With(telemetry.LogEpoch, term.Epoch),
		inbox: inbox.New(),
	}
	workers := lease.NewWorkers(c.o.WorkerLease)
	others := telemetry.Sparse(l.log, time.Now) // for what workers' messages can cause
	l.journal = &journal{
		log: l.log, metrics: c.metrics, batch: &ledger.Batch{}, curves: &ledger.Batch{}, committed: map[messaging.Stream]messaging.Cursor{},
		deadLetters: &deadLetters{log: others, metrics: c.metrics, put: c.o.Bus.Bury, read: c.ledger.Asides, every: c.buryEvery},
	}
	l.studies = &studies{
		log: l.log, journal: l.journal, settings: c.o.Engine, newOptimizer: c.o.NewOptimizer, newFallback: c.o.NewFallback,
		fetch: c.ledger.LoadStudy, changed: workers.Touch,
		runs: map[string]*run{}, loaded: map[string]*run{}, names: map[string]string{},
	}
	l.intake = &intake{log: others, bus: c.o.Bus, studies: l.studies, journal: l.journal, trial: c.ledger.Trial, curve: c.ledger.Curve}
	l.watch = &watch{log: l.log, others: others, room: c.room, workers: workers, studies: l.studies, journal: l.journal}
	l.clients = &clients{studies: l.studies, journal: l.journal}
	l.publisher = publish.New(l.log, c.o.Bus, l.studies, l.inbox.Post)
	l.traces = &traces{tracer: c.o.Tracer, shard: c.o.Shard, metrics: c.metrics}
	l.asks = newAsks(l.studies, l.traces, l.inbox.Post, l.workers.Go)
	l.recommender = &recommender{log: l.log, studies: l.studies, known: c.recommendations, stored: c.recommendStored, post: l.inbox.Post, spawn: l.workers.Go}
	l.trimmer = &trimmer{
		log: l.log, bus: c.o.Bus, studies: l.studies, journal: l.journal, post: l.inbox.Post, rule: c.trim,
		trimmed: map[string]uint64{}, finished: map[string]bool{},
	}
	l.observer = &observer{metrics: c.metrics, studies: l.studies, workers: workers}
	return l
}

// lead runs one whole term. It returns when ctx ends, when leadership is lost, or
// when it cannot continue.
func (c *Coordinator) lead(ctx context.Context, term *election.Term) error {
	asked := ctx // ends when the leader is told to stop or has lost its lease
	ctx, cancel := context.WithCancelCause(ctx)
	l := newLeader(c, term)
	unwatch := c.o.Exports.Watch(l.exported)
	defer func() {
		defer unwatch()
		cancel(nil)
		l.workers.Wait()
		if errors.Is(context.Cause(asked), context.Canceled) {
			l.flush(ctx)
		}
		l.journal.reply(ErrNotLeader) // before later senders are refused
		l.inbox.Close()
		l.intake.close()
	}()
	c.metrics.takeovers.Add(ctx, 1)
	if err := l.takeOver(ctx, c.o.HandBack && !c.handedBack.Load()); err != nil {
		err = fmt.Errorf("take the shard over: %w", err)
		c.obstacle.Store(&err)
		return err
	}
	c.obstacle.Store(nil)
	c.handedBack.Store(true)
	if err := l.start(ctx, cancel); err != nil {
		return err
	}
	c.setTerm(l)
	defer c.setTerm(nil)
	l.log.Info("leading", "studies", len(l.studies.runs))
	err := l.loop(ctx)
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	return err
}

// start starts the goroutines of the term. They end with ctx; if one fails, it
// cancels ctx.
func (l *leader) start(ctx context.Context, cancel context.CancelCauseFunc) error {
	beats, err := l.c.o.Bus.Heartbeats(ctx)
	if err != nil {
		return fmt.Errorf("subscribe to heartbeats: %w", err)
	}
	// Leases count from now, since no heartbeat could be received before.
	l.watch.workers.ListenSince(time.Now())
	spawn := func(what string, f func(context.Context) error) {
		l.workers.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	for _, r := range l.intake.readers {
		spawn("read a stream", func(ctx context.Context) error { return l.intake.follow(ctx, r, l.inbox.Post) })
	}
	spawn("hear heartbeats", func(ctx context.Context) error { return l.watch.hear(ctx, beats, l.inbox.Post) })
	spawn("publish", l.publisher.Run)
	spawn("ask the broker", func(ctx context.Context) error {
		return l.watch.attend(ctx, l.c.o.LeaseTTL, l.c.o.Bus.Healthy, l.inbox.Post)
	})
	spawn("bury what was set aside", func(ctx context.Context) error {
		return l.journal.deadLetters.retry(ctx, l.inbox.Post, func(key string) { l.journal.batch.DeleteAside(key) })
	})
	spawn("trim the streams", l.trimmer.run)
	spawn("look at etcd's history", (&history{log: l.log, read: l.c.ledger.History}).run)
	spawn("look how full etcd is", l.c.room.run)
	for _, d := range l.c.o.Duties {
		l.workers.Go(func() { l.fulfil(ctx, d) })
	}
	return nil
}

// loop applies all waiting input, commits the changes in one group, and then
// releases their effects.
func (l *leader) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case w := <-l.inbox.Waiting():
			if err := w.Do(ctx, time.Now()); err != nil {
				return err
			}
		case <-timer.C:
		}
		if err := l.gather(ctx); err != nil {
			return err
		}
		next := l.tick(time.Now())
		if due := l.clients.answer(time.Now()); !due.IsZero() && due.Before(next) {
			next = due
		}
		l.journal.exported(l.traces.exported.through())
		if err := l.commit(ctx); err != nil {
			return err
		}
		l.recommender.next(ctx, time.Now())
		if due := l.journal.due(); !due.IsZero() && due.Before(next) {
			next = due
		}
		timer.Reset(max(0, min(time.Until(next), tickEvery)))
	}
}

// gather applies the waiting input until the inbox is empty or the batch is full.
func (l *leader) gather(ctx context.Context) error {
	for !l.journal.full() {
		select {
		case w := <-l.inbox.Waiting():
			if err := w.Do(ctx, time.Now()); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// commit makes the changes durable, and only then releases their effects.
func (l *leader) commit(ctx context.Context) error {
	if !mutant.On(mutant.CommitFirst) {
		l.publisher.Add(&l.journal.held.Messages, time.Time{})
	}
	if !mutant.On(mutant.Answer) {
		l.journal.reply(nil)
	}
	released, err := l.journal.commit(ctx)
	if err != nil {
		return err
	}
	for _, t := range released.ended {
		l.traces.emit(ctx, t.run, t.trial, released.committed)
	}
	l.publisher.Add(&released.Messages, released.committed)
	for _, a := range released.asks {
		if a.run.engine != nil { // it may have been broken since
			l.asks.start(ctx, a.run, a.ask)
		}
	}
	for _, a := range released.fallbacks {
		if a.run.engine != nil {
			l.asks.fallBack(ctx, a.run, a.ask)
		}
	}
	l.journal.reply(nil)
	return nil
}

// exported wakes the loop when spans of trials were exported, so that the ledger knows it
// soon.
func (l *leader) exported(ids []trace.SpanID) {
	if l.traces.exported.done(ids) {
		l.inbox.Wake()
	}
}

// flush exports the last spans and commits the waiting curves at the end of a term.
func (l *leader) flush(ctx context.Context) {
	if l.journal.writer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	if !l.traces.exported.idle() {
		export, done := context.WithTimeout(ctx, exportTime)
		if err := l.c.o.Exports.Flush(export); err != nil {
			l.log.Debug("could not export the last spans; the next leader exports them", telemetry.LogError, err)
		}
		done()
	}
	if err := l.journal.flush(ctx, l.traces.exported.through()); err != nil {
		l.log.Debug("could not store the last measurements; the next leader reads them again", telemetry.LogError, err)
	}
}
