package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
type input struct {
	// do runs in the loop; its error ends the term.
	do func(ctx context.Context, now time.Time) error
	// refused runs instead where the term has ended; nil where nobody waits.
	refused func()
}

// leader is one term: a single goroutine, the loop, owns the engines and
// everything else here that is not marked otherwise.
type leader struct {
	c       *Coordinator
	log     *slog.Logger
	term    *election.Term
	inbox   chan input    // safe for concurrent use
	over    chan struct{} // closed when nothing in the inbox is answered any more
	carrier *carrier      // safe for concurrent use
	asks    *asks         // safe for concurrent use
	workers sync.WaitGroup

	runs    map[string]*run   // by id
	loaded  map[string]*run   // those of them that have an engine
	names   map[string]string // name to id
	fleet   *fleet
	writer  *ledger.Writer
	readers []messaging.Reader
	// batch is what the next commit stores, held the effects that wait for it,
	// replies the answers to the commands whose changes it holds.
	batch   *ledger.Batch
	held    effects
	replies []func(error)
	looked  *gauges // the last look at all this; nil before the first
	// advising says that a recommendation is being made, adviseAfter when the next
	// one may be.
	advising    bool
	adviseAfter time.Time
}

// newLeader prepares a term; nothing runs yet.
func newLeader(c *Coordinator, term *election.Term) *leader {
	l := &leader{
		c: c, term: term,
		log:    c.o.Logger.With(telemetry.LogEpoch, term.Epoch),
		inbox:  make(chan input, inboxSize),
		over:   make(chan struct{}),
		runs:   map[string]*run{},
		loaded: map[string]*run{},
		names:  map[string]string{},
		fleet:  newFleet(c.o.WorkerLease),
		batch:  &ledger.Batch{},
	}
	l.carrier = newCarrier(l)
	l.asks = newAsks(l)
	return l
}

// lead is one whole term: it returns when ctx ends, when the leadership is lost,
// or when it cannot go on.
func (c *Coordinator) lead(ctx context.Context, term *election.Term) error {
	ctx, cancel := context.WithCancelCause(ctx)
	l := newLeader(c, term)
	defer func() {
		cancel(nil)
		l.workers.Wait()
		l.refuse()
		l.closeReaders()
	}()
	c.metrics.takeovers.Add(ctx, 1)
	if err := l.takeOver(ctx, c.o.HandBack && !c.handedBack.Load()); err != nil {
		return fmt.Errorf("take the shard over: %w", err)
	}
	c.handedBack.Store(true)
	if err := l.start(ctx, cancel); err != nil {
		return err
	}
	c.setTerm(l)
	defer c.setTerm(nil)
	l.log.Info("leading", "studies", len(l.runs))
	err := l.loop(ctx)
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	return err
}

// start starts the goroutines of the term; they end with ctx, and a failure of
// one ends it.
func (l *leader) start(ctx context.Context, cancel context.CancelCauseFunc) error {
	beats, err := l.c.o.Bus.Heartbeats(ctx)
	if err != nil {
		return fmt.Errorf("subscribe to heartbeats: %w", err)
	}
	// Leases count from now: nobody could be heard before.
	l.fleet.listenSince(time.Now())
	spawn := func(what string, f func(context.Context) error) {
		l.workers.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	for _, r := range l.readers {
		spawn("read a stream", func(ctx context.Context) error { return l.read(ctx, r) })
	}
	spawn("hear heartbeats", func(ctx context.Context) error { return l.hear(ctx, beats) })
	spawn("carry effects out", l.carrier.run)
	spawn("ask the broker", l.attend)
	for _, d := range l.c.o.Duties {
		l.workers.Go(func() { l.fulfil(ctx, d) })
	}
	return nil
}

// send hands an input to the loop and reports whether the loop has it; it does
// not where ctx or the term ends first.
func (l *leader) send(ctx context.Context, do func(ctx context.Context, now time.Time) error) bool {
	return l.submit(ctx, input{do: do})
}

func (l *leader) submit(ctx context.Context, in input) bool {
	select {
	case l.inbox <- in:
		return true
	case <-l.over:
		return false
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
			if err := in.do(ctx, time.Now()); err != nil {
				return err
			}
		case <-timer.C:
		}
		if err := l.gather(ctx); err != nil {
			return err
		}
		next := l.tick(time.Now())
		if err := l.commit(ctx); err != nil {
			return err
		}
		l.advise(ctx, time.Now())
		timer.Reset(max(0, min(time.Until(next), tickEvery)))
	}
}

// gather applies what waits in the inbox until the batch is large enough.
func (l *leader) gather(ctx context.Context) error {
	for !l.batch.Full() {
		select {
		case in := <-l.inbox:
			if err := in.do(ctx, time.Now()); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// commit makes the batch durable, and only then lets its effects out. Results
// that are not folded are archived before, while the cursor is still behind them.
func (l *leader) commit(ctx context.Context) error {
	err := l.archiveResults(ctx, l.held.archives)
	if err == nil {
		err = l.store(ctx)
	}
	if err != nil {
		l.reply(err)
		return err
	}
	now := time.Now()
	for _, t := range l.held.ended {
		l.emit(ctx, t.run, t.trial, now)
	}
	l.held.committed = now
	l.carrier.add(&l.held)
	for _, a := range l.held.asks {
		if a.run.engine != nil { // it may have been broken since
			l.asks.start(ctx, a.run, a.ask)
		}
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
		if err == nil {
			l.batch = &ledger.Batch{}
			return nil
		}
		if !errors.Is(err, ledger.ErrNoSpace) {
			return fmt.Errorf("commit to the ledger: %w", err)
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
	for _, f := range l.replies {
		f(err)
	}
	l.replies = nil
}

// refuse answers the commands that came too late for this term. Whoever sends
// one afterwards learns from over that nobody will answer.
func (l *leader) refuse() {
	l.reply(ErrNotLeader)
	close(l.over)
	for {
		select {
		case in := <-l.inbox:
			if in.refused != nil {
				in.refused()
			}
		default:
			return
		}
	}
}

// step applies an event to a study, takes what it asks for into the batch, and
// returns it. A study that an event before has broken is left alone.
func (l *leader) step(r *run, ev engine.Event) engine.Output {
	if r.engine == nil {
		return engine.Output{}
	}
	out := r.engine.Step(ev)
	r.wake = out.Wake
	l.take(r, &out)
	if r.engine == nil { // nothing of it was taken
		return engine.Output{}
	}
	return out
}

// take puts an output's records into the batch and holds its effects back. A
// study with a record that the ledger does not take is broken: it stays as it was
// committed last, and the others go on.
func (l *leader) take(r *run, out *engine.Output) {
	records := recordsOf(r.spec.ID, out)
	if err := records.Err(); err != nil {
		l.breaks(r, err)
		l.rest(r)
		r.stopAsking()
		return
	}
	l.batch.Add(records)
	if out.Study != nil {
		r.spec = *out.Study
	}
	if out.Status != nil {
		r.status = *out.Status
	}
	for _, w := range out.Warnings {
		l.log.Warn(w, telemetry.LogStudy, r.name())
	}
	for _, a := range out.Avoids {
		r.avoid(a.Worker, a.Reason)
		l.fleet.touch(r.pool())
	}
	l.c.metrics.took(out)
	l.held.take(r, out)
	if r.status.State.Terminal() {
		r.stopAsking()
	}
}

// recordsOf are the records of an output.
func recordsOf(id string, out *engine.Output) *ledger.Batch {
	b := &ledger.Batch{}
	for i := range out.Trials {
		b.PutTrial(id, &out.Trials[i])
	}
	if out.Study != nil {
		b.PutStudy(out.Study)
	}
	if out.Model != nil {
		b.PutModel(id, out.Model)
	}
	if out.Status != nil {
		b.PutStatus(id, out.Status)
	}
	return b
}
