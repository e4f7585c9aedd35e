package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/calls"
	"github.com/fantasia-hpo/fantasia/coordinator/commit"
	"github.com/fantasia-hpo/fantasia/coordinator/deadletter"
	"github.com/fantasia-hpo/fantasia/coordinator/disk"
	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/incoming"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/metrics"
	"github.com/fantasia-hpo/fantasia/coordinator/publish"
	"github.com/fantasia-hpo/fantasia/coordinator/spans"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/coordinator/suggest"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"go.opentelemetry.io/otel/trace"
)

// callTimeout bounds one call to the broker or the ledger.
const callTimeout = 10 * time.Second

// leader is one term: the parts that a leader is made of. A single goroutine, the loop, owns them
// and their state, except for what they say is safe for concurrent use: see loop.go.
type leader struct {
	c      *Coordinator
	log    *slog.Logger
	term   *election.Term
	writer *ledger.Writer // of the ledger; nil until the term has fenced it
	inbox  *inbox.Inbox   // the way into the loop

	studies     *studies.Studies     // the engines
	group       *commit.Group        // what they changed since the last commit
	letters     *deadletter.Queue    // where messages go that change nothing
	streams     *incoming.Streams    // claims, results and measurements of workers
	heartbeats  *incoming.Heartbeats // of workers
	trimmer     *incoming.Trimmer    // deletes messages that nobody needs
	workers     *lease.Workers       // which workers are alive
	calls       *calls.Calls         // calls of clients that wait for trials
	publisher   *publish.Publisher   // messages to workers
	requests    *suggest.Requests    // requests to the optimisers
	recommender *suggest.Recommender
	spans       *spans.Spans // of ended trials

	spaceLacked bool            // there was no space in etcd when the engines were last told
	gauges      *metrics.Gauges // the last ones; nil before the first
	goroutines  sync.WaitGroup
}

// newLeader prepares a term and starts nothing. Every term gets parts of its own, so that nothing of an
// earlier term, which may have missed what other leaders did, is used again.
func newLeader(c *Coordinator, term *election.Term) *leader {
	log := c.o.Logger.With(telemetry.LogEpoch, term.Epoch)
	others := telemetry.Sparse(log, time.Now) // for what workers' messages can cause
	l := &leader{
		c: c, term: term, log: log, inbox: inbox.New(),
		workers: lease.NewWorkers(c.o.WorkerLease), spans: spans.New(c.o.Tracer, c.o.Shard),
	}
	l.letters = deadletter.New(others, c.metrics, c.o.Bus.Bury, c.ledger.Asides)
	l.group = commit.New(log, c.metrics, l.letters)
	l.studies = studies.NewStudies(studies.Options{
		Log: log, Group: l.group, Settings: c.o.Engine, NewOptimizer: c.o.NewOptimizer, NewFallback: c.o.NewFallback,
		Fetch: c.ledger.LoadStudy, Changed: l.workers.Touch,
	})
	l.streams = incoming.NewStreams(others, c.o.Bus, c.ledger, l.studies, l.group)
	l.heartbeats = incoming.NewHeartbeats(others, l.workers, l.studies, l.group)
	l.trimmer = incoming.NewTrimmer(log, c.o.Bus, l.studies, l.group, l.inbox.Post, c.trim)
	l.calls = calls.New(l.studies, l.group)
	l.publisher = publish.New(log, c.o.Bus, l.studies, l.inbox.Post)
	l.requests = suggest.NewRequests(l.studies, l.spans, c.metrics, l.inbox.Post, l.goroutines.Go)
	l.recommender = suggest.NewRecommender(suggest.RecommenderOptions{
		Log: log, Studies: l.studies, NewOptimizer: c.o.NewOptimizer, Known: c.recommendations, Stored: c.recommendStored,
		Post: l.inbox.Post, Spawn: l.goroutines.Go,
	})
	return l
}

// lead runs one whole term. It returns when ctx ends, when leadership is lost, or
// when it cannot continue.
//
// A term ends in this order. Its goroutines end first, since they hand work to the loop that has
// ended. If the leader was told to stop, and so still holds its lease, it stores the last curves. Then
// those who wait for an answer are told that this replica does not lead, and only then is
// the inbox closed: whoever finds it closed may rely on having been answered if its work was done.
func (c *Coordinator) lead(ctx context.Context, term *election.Term) error {
	asked := ctx // ends when the leader is told to stop or has lost its lease
	ctx, cancel := context.WithCancelCause(ctx)
	l := newLeader(c, term)
	unwatch := c.o.Exports.Watch(l.exported)
	defer func() {
		defer unwatch()
		cancel(nil)
		l.goroutines.Wait()
		if errors.Is(context.Cause(asked), context.Canceled) {
			l.flush(ctx)
		}
		l.group.Reply(ErrNotLeader) // before later senders are refused
		l.inbox.Close()
		l.streams.Close()
	}()
	c.metrics.TookOver(ctx)
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
	l.log.Info("leading", "studies", l.studies.Len())
	err := l.loop(ctx)
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	return err
}

// start starts the goroutines of the term. They end with ctx; if one fails, it
// cancels ctx, and with it the term: a leader that hears or publishes no more must make room for another.
// Duties are an exception. What they do matters less than that somebody leads.
func (l *leader) start(ctx context.Context, cancel context.CancelCauseFunc) error {
	beats, err := l.c.o.Bus.Heartbeats(ctx)
	if err != nil {
		return fmt.Errorf("subscribe to heartbeats: %w", err)
	}
	// Leases count from now, since no heartbeat could be received before.
	l.workers.ListenSince(time.Now())
	spawn := func(what string, f func(context.Context) error) {
		l.goroutines.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	for _, follow := range l.streams.Followers(l.inbox.Post) {
		spawn("read a stream", follow)
	}
	spawn("hear heartbeats", func(ctx context.Context) error { return l.heartbeats.Hear(ctx, beats, l.inbox.Post) })
	spawn("publish", l.publisher.Run)
	spawn("ask the broker", l.watchBroker)
	spawn("bury what was set aside", func(ctx context.Context) error {
		return l.letters.Retry(ctx, l.c.buryEvery, l.inbox.Post, l.group.ForgetAside)
	})
	spawn("trim the streams", l.trimmer.Run)
	spawn("look at etcd's history", disk.NewHistory(l.log, l.c.ledger.History).Run)
	spawn("look how full etcd is", func(ctx context.Context) error { return l.c.space.Run(ctx, l.c.spaceEvery) })
	for _, d := range l.c.o.Duties {
		l.goroutines.Go(func() { l.fulfil(ctx, d) })
	}
	return nil
}

// exported wakes the loop when spans of trials were exported, so that the ledger knows it
// soon.
func (l *leader) exported(ids []trace.SpanID) {
	if l.spans.Done(ids) {
		l.inbox.Wake()
	}
}

// flush exports the last spans and commits the waiting curves at the end of a term. Both only save the next
// leader work, so they have little time, and their failure is no error.
func (l *leader) flush(ctx context.Context) {
	if l.writer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commit.FlushTime)
	defer cancel()
	if !l.spans.Idle() {
		export, done := context.WithTimeout(ctx, exportTime)
		if err := l.c.o.Exports.Flush(export); err != nil {
			l.log.Debug("could not export the last spans; the next leader exports them", telemetry.LogError, err)
		}
		done()
	}
	if err := l.group.Flush(ctx, l.spans.Through()); err != nil {
		l.log.Debug("could not store the last measurements; the next leader reads them again", telemetry.LogError, err)
	}
}
