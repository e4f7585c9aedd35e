package coordinator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// maxAsking bounds the calls that wait for trials at once.
const maxAsking = 2000

// ErrBusy says that too many calls wait for trials.
var ErrBusy = study.NewError(study.ErrBusy, "too many clients wait for trials")

// Suggestions are the trials that a client holds: what Suggest returns.
type Suggestions struct {
	// Trials are the trials that the client holds, oldest first.
	Trials []record.Trial
	// State is the study's state, and Reason why it is in it.
	State  study.State
	Reason string
	// Lease is how long the client may be silent about a trial before it is lost.
	Lease time.Duration
}

// clients holds the calls of clients that wait for trials. The loop owns it.
type clients struct {
	studies *studies
	journal *journal
	// runs are the studies with calls that wait: see run.calls.
	runs []*run
}

// asking is one call that waits for trials.
type asking struct {
	run    *run
	client string
	count  int
	until  time.Time
	reply  func(Suggestions, error)
	served bool
	waits  func() // called once it is known that the call must wait; nil afterwards
}

type waitingKey struct{}

// WhenWaiting returns a context with which Suggest calls waits once it must wait for trials. The
// leader's loop calls waits, so it MUST return at once.
func WhenWaiting(ctx context.Context, waits func()) context.Context {
	return context.WithValue(ctx, waitingKey{}, waits)
}

// Waiting calls the function that WhenWaiting has put into a context, if any.
func Waiting(ctx context.Context) {
	if waits, ok := ctx.Value(waitingKey{}).(func()); ok {
		waits()
	}
}

// ask lets a call wait until answer answers it.
func (c *clients) ask(a *asking, now time.Time) error {
	waiting := 0
	for _, r := range c.runs {
		waiting += len(r.calls)
	}
	if waiting >= maxAsking {
		return fmt.Errorf("%w: at most %d", ErrBusy, maxAsking)
	}
	if len(a.run.calls) == 0 {
		c.runs = append(c.runs, a.run)
	}
	a.run.calls = append(a.run.calls, a)
	c.studies.step(a.run, engine.Seek{At: now, Client: a.client, Want: a.count})
	return nil
}

// answer answers the calls that need not wait any longer, once the next commit has made
// their trials durable. It returns when it must be called again; zero for never.
func (c *clients) answer(now time.Time) (next time.Time) {
	for _, r := range c.runs {
		c.answerOf(r, now)
		for _, a := range r.calls {
			if a.waits != nil {
				a.waits()
				a.waits = nil
			}
			if next.IsZero() || a.until.Before(next) {
				next = a.until
			}
		}
	}
	c.forget()
	return next
}

// answerOf is answer for the calls of one study.
func (c *clients) answerOf(r *run, now time.Time) {
	stepped, answered := r.stepped, false
	holds := r.holds()
	r.stepped = false
	for _, a := range r.calls {
		if now.Before(a.until) && (!stepped || holds[a.client] == 0 && r.waitable(c.studies)) {
			continue
		}
		if a.served = c.served(a, now); a.served {
			answered = true
		}
		if r.stepped { // a search has ended, so that others may hold trials
			holds, stepped, r.stepped = r.holds(), true, false
		}
	}
	r.calls = slices.DeleteFunc(r.calls, func(a *asking) bool { return a.served })
	r.stepped = answered // a search that has ended may let others hold fewer or more
}

// forget forgets the studies without calls.
func (c *clients) forget() {
	c.runs = slices.DeleteFunc(c.runs, func(r *run) bool { return len(r.calls) == 0 })
}

// waitable reports whether calls of clients without trials wait: they do while the study runs.
func (r *run) waitable(s *studies) bool { return s.runs[r.spec.ID] == r && r.running() }

// holds returns how many trials each client holds.
func (r *run) holds() map[string]int {
	if r.engine == nil {
		return nil
	}
	return r.engine.Holds()
}

// served answers a call if it need not wait any longer, and reports whether it did.
func (c *clients) served(a *asking, now time.Time) bool {
	r := a.run
	switch {
	case c.studies.runs[r.spec.ID] != r:
		a.reply(Suggestions{}, fmt.Errorf("study %q: %w", r.name(), ledger.ErrNotFound))
		return true
	case r.engine == nil:
		a.reply(Suggestions{}, r.broken)
		return true
	}
	held, more := r.engine.Held(a.client, a.count)
	enough := len(held) == a.count || len(held) > 0 && !more || !r.running()
	if !enough && now.Before(a.until) {
		return false
	}
	a.served = true
	if len(held) < a.count {
		c.endSearch(a, now)
	}
	for i := range held {
		r.clients.Hear(attemptOf(r, &held[i]), now)
	}
	answer := Suggestions{Trials: held, State: r.status.State, Reason: r.status.Reason}
	c.journal.replies = append(c.journal.replies, func(err error) { a.reply(answer, err) })
	return true
}

// endSearch tells the engine that a call has ended, unless its client has another one.
func (c *clients) endSearch(a *asking, now time.Time) {
	if !slices.ContainsFunc(a.run.calls, func(b *asking) bool { return !b.served && a.client == b.client }) {
		c.studies.step(a.run, engine.Seek{At: now, Client: a.client})
	}
}

// withdraw ends a call whose caller is gone.
func (c *clients) withdraw(a *asking, now time.Time) {
	if a.run == nil { // it was refused
		return
	}
	if i := slices.Index(a.run.calls, a); i >= 0 {
		a.run.calls = slices.Delete(a.run.calls, i, i+1)
		c.forget()
		c.endSearch(a, now)
	}
}

// attemptOf returns the id of a trial's last attempt.
func attemptOf(r *run, t *record.Trial) messaging.AttemptID {
	a := t.Last()
	return messaging.AttemptID{Study: r.spec.ID, Trial: t.Number, Attempt: a.Number, Nonce: a.Nonce}
}

// Suggest waits until a client holds count trials of a study, at most for wait. It
// returns at once if the client holds some and can hold no more for now. The error wraps
// ErrNotLeader, ErrBusy, ErrNoRoom, ledger.ErrNotFound, or engine.ErrRefused if the study has a
// command, or is a *quota.Exceeded.
func (c *Coordinator) Suggest(ctx context.Context, nameOrID, client string, count int, wait time.Duration) (Suggestions, error) {
	l := c.term.Load()
	if l == nil {
		return Suggestions{}, ErrNotLeader
	}
	if err := c.room.lacking(); err != nil {
		return Suggestions{}, err
	}
	type reply struct {
		Suggestions
		error
	}
	done := make(chan reply, 1)
	shares := quota.From(ctx)
	a := &asking{waits: func() { Waiting(ctx) }, client: client, count: count, reply: func(s Suggestions, err error) { done <- reply{s, err} }}
	sent := l.inbox.Submit(ctx, inbox.Work{
		Refused: func() { done <- reply{error: ErrNotLeader} },
		Do: func(ctx context.Context, now time.Time) error {
			r, err := l.clientsOf(ctx, nameOrID, now)
			if err == nil {
				a.run, a.until = r, now.Add(wait)
				err = l.admitCall(shares, a)
			}
			if err == nil {
				err = l.clients.ask(a, now)
			}
			if err != nil {
				done <- reply{error: endedTerm(ctx, err)}
			}
			return nil
		},
	})
	if !sent && ctx.Err() == nil {
		return Suggestions{}, ErrNotLeader
	}
	select {
	case got := <-done:
		got.Lease = c.o.WorkerLease
		return got.Suggestions, got.error
	case <-l.inbox.Over():
	case <-ctx.Done():
		l.inbox.Submit(context.WithoutCancel(ctx), inbox.Work{Do: func(_ context.Context, now time.Time) error { l.clients.withdraw(a, now); return nil }})
		return Suggestions{}, context.Cause(ctx)
	}
	select {
	case got := <-done:
		got.Lease = c.o.WorkerLease
		return got.Suggestions, got.error
	default:
		return Suggestions{}, ErrNotLeader
	}
}

// clientsOf returns a study whose trials clients ask for, with its engine.
func (l *leader) clientsOf(ctx context.Context, nameOrID string, now time.Time) (*run, error) {
	r, err := l.studies.find(nameOrID)
	if err != nil {
		return nil, err
	}
	if !r.byClients() {
		return nil, engine.HasCommand(&r.spec.Definition.Spec)
	}
	_, err = l.studies.engineOf(ctx, r, now)
	return r, err
}

// Held is an attempt that a client evaluates: its trial's number and its own, which is 0
// for the last one that the client was given.
type Held struct{ Trial, Attempt int }

// Heartbeat renews a client's leases of trials, and says what to do with each.
func (c *Coordinator) Heartbeat(ctx context.Context, nameOrID, client string, held []Held) ([]engine.Instruction, error) {
	return query(ctx, c, func(ctx context.Context, l *leader, now time.Time) (list []engine.Instruction, err error) {
		r, err := l.clientsOf(ctx, nameOrID, now)
		if err != nil {
			return nil, err
		}
		for _, h := range held {
			i, err := r.instruct(client, h, now)
			if err != nil {
				return nil, err
			}
			list = append(list, i)
		}
		return list, nil
	})
}

// instruct returns what a client should do with a trial, and renews its lease if it holds
// the trial.
func (r *run) instruct(client string, held Held, now time.Time) (engine.Instruction, error) {
	next, err := r.engine.Instruct(client, held.Trial, held.Attempt)
	if err != nil || next.Do == engine.Abandon {
		return next, err
	}
	id, err := r.engine.Attempt(client, held.Trial, held.Attempt)
	if err != nil {
		return next, err
	}
	r.clients.Hear(id, now)
	return next, nil
}

// Report is what a client's evaluation has reached at a step.
type Report struct {
	Step    int64
	Metrics map[string]float64
}

// Measure adds what a client's evaluation has reached, and returns what to do with the trial
// once the reports are durable. If one is refused, those before it are kept.
func (c *Coordinator) Measure(ctx context.Context, nameOrID, client string, held Held, reports []Report) (engine.Instruction, error) {
	return query(ctx, c, func(ctx context.Context, l *leader, now time.Time) (next engine.Instruction, err error) {
		r, err := l.clientsOf(ctx, nameOrID, now)
		if err != nil {
			return next, err
		}
		if next, err = r.instruct(client, held, now); err != nil || next.Do == engine.Abandon {
			return next, err
		}
		id, err := r.engine.Attempt(client, held.Trial, held.Attempt)
		if err != nil {
			return next, err
		}
		if err := l.intake.restore(ctx, r, id, now); err != nil {
			return next, err
		}
		defer l.journal.takeCurves() // no stream has the reports: they must be durable before the answer
		for _, report := range reports {
			if err := r.engine.Contradicts(held.Trial, report.Step, report.Metrics); err != nil {
				return next, err
			}
			l.studies.step(r, engine.Measured{At: now, Measurement: &messaging.Measurement{
				Version: messaging.SchemaVersion, AttemptID: id, Worker: client, Step: report.Step, Metrics: report.Metrics, At: now,
			}})
			if r.broken != nil {
				return next, r.broken
			}
		}
		return r.instruct(client, held, now)
	})
}

// Tell applies an event of a client or a user to a study, and returns the trial that it
// is about. The error wraps one of the kinds of engine.Answer, or is a *quota.Exceeded.
func (c *Coordinator) Tell(ctx context.Context, nameOrID string, event func(now time.Time) engine.Event) (record.Trial, error) {
	shares := quota.From(ctx)
	return query(ctx, c, func(ctx context.Context, l *leader, now time.Time) (told record.Trial, err error) {
		r, err := l.studies.find(nameOrID)
		if err != nil {
			return told, err
		}
		if _, err := l.studies.engineOf(ctx, r, now); err != nil {
			return told, err
		}
		ev := event(now)
		if err := l.admitEvent(shares, r, ev); err != nil {
			return told, err
		}
		out := l.studies.step(r, ev)
		switch {
		case r.broken != nil:
			return told, r.broken
		case out.Answer == nil:
			return told, fmt.Errorf("study %s did not answer", r.name())
		}
		return out.Answer.Trial, out.Answer.Err
	})
}
