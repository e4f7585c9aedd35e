package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/calls"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

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

// Suggest waits until a client holds count trials of a study, at most for wait. It
// returns at once if the client holds some and can hold no more for now. The error wraps
// ErrNotLeader, calls.ErrBusy, disk.ErrNearlyFull, ledger.ErrNotFound, or engine.ErrRefused if the study has a
// command, or is a *quota.Exceeded.
func (c *Coordinator) Suggest(ctx context.Context, nameOrID, client string, count int, wait time.Duration) (Suggestions, error) {
	l := c.term.Load()
	if l == nil {
		return Suggestions{}, ErrNotLeader
	}
	if err := c.space.Lacking(); err != nil {
		return Suggestions{}, err
	}
	type reply struct {
		calls.Answer
		error
	}
	done := make(chan reply, 1)
	shares := quota.From(ctx)
	a := &calls.Call{
		Client: client, Count: count, Waits: func() { Waiting(ctx) },
		Reply: func(s calls.Answer, err error) { done <- reply{s, err} },
	}
	sent := l.inbox.Submit(ctx, inbox.Work{
		Refused: func() { done <- reply{error: ErrNotLeader} },
		Do: func(ctx context.Context, now time.Time) error {
			r, err := l.clientsOf(ctx, nameOrID, now)
			if err == nil {
				a.Study, a.Until = r, now.Add(wait)
				err = l.calls.AdmitCall(shares, a)
			}
			if err == nil {
				err = l.calls.Add(a, now)
			}
			if err != nil {
				done <- reply{error: endedTerm(ctx, err)}
			}
			return nil
		},
	})
	got, err := await(ctx, l, sent, done)
	if err != nil {
		// The caller is gone. Withdraw comes to the loop after Add, or trials would be made for nobody.
		if ctx.Err() != nil {
			l.inbox.Submit(context.WithoutCancel(ctx), inbox.Work{Do: func(_ context.Context, now time.Time) error {
				l.calls.Withdraw(a, now)
				return nil
			}})
		}
		return Suggestions{}, err
	}
	return Suggestions{Trials: got.Trials, State: got.State, Reason: got.Reason, Lease: c.o.WorkerLease}, got.error
}

// clientsOf returns a study whose trials clients ask for, with its engine. A study with a command is refused: its
// workers and a client would evaluate the same trials.
func (l *leader) clientsOf(ctx context.Context, nameOrID string, now time.Time) (*studies.Study, error) {
	r, err := l.studies.Find(nameOrID)
	if err != nil {
		return nil, err
	}
	if !r.ByClients() {
		return nil, engine.HasCommand(&r.Spec.Definition.Spec)
	}
	_, err = l.studies.EngineOf(ctx, r, now)
	return r, err
}

// whole returns a study with its engine.
func (l *leader) whole(ctx context.Context, nameOrID string, now time.Time) (*studies.Study, error) {
	r, err := l.studies.Find(nameOrID)
	if err == nil {
		_, err = l.studies.EngineOf(ctx, r, now)
	}
	return r, err
}

// HeldAttempt is an attempt that a client evaluates: its trial's number and its own, which is 0
// for the last one that the client was given.
type HeldAttempt struct{ Trial, Attempt int }

// Heartbeat renews a client's leases of trials, and says what to do with each. If one of them is not known, none
// of those after it is renewed, and the caller gets the error.
func (c *Coordinator) Heartbeat(ctx context.Context, nameOrID, client string, held []HeldAttempt) ([]engine.Instruction, error) {
	return query(ctx, c, func(ctx context.Context, l *leader, now time.Time) (list []engine.Instruction, err error) {
		r, err := l.clientsOf(ctx, nameOrID, now)
		if err != nil {
			return nil, err
		}
		for _, h := range held {
			i, err := instruct(r, client, h, now)
			if err != nil {
				return nil, err
			}
			list = append(list, i)
		}
		return list, nil
	})
}

// instruct returns what a client should do with a trial, and renews its lease if it holds
// the trial. A client that is to give the trial up renews nothing: the trial may be another one's by now.
func instruct(r *studies.Study, client string, held HeldAttempt, now time.Time) (engine.Instruction, error) {
	next, err := r.Engine.Instruct(client, held.Trial, held.Attempt)
	if err != nil || next.Do == engine.Abandon {
		return next, err
	}
	id, err := r.Engine.Attempt(client, held.Trial, held.Attempt)
	if err != nil {
		return next, err
	}
	r.Clients.Hear(id, now)
	return next, nil
}

// Report is what a client's evaluation has reached at a step.
type Report struct {
	Step    int64
	Metrics map[string]float64
}

// Measure adds what a client's evaluation has reached, and returns what to do with the trial
// once the reports are durable. If one is refused, those before it are kept.
// The error may be a *quota.Exceeded. A client that repeats a call after an error does no harm: the engine ignores
// steps that it has, unless their values are others.
func (c *Coordinator) Measure(ctx context.Context, nameOrID, client string, held HeldAttempt, reports []Report) (
	engine.Instruction, error) {
	shares, metrics := quota.From(ctx), 0
	for _, report := range reports {
		metrics += len(report.Metrics)
	}
	return query(ctx, c, func(ctx context.Context, l *leader, now time.Time) (next engine.Instruction, err error) {
		r, err := l.clientsOf(ctx, nameOrID, now)
		if err != nil {
			return next, err
		}
		if err := l.calls.AdmitReports(shares, r, metrics); err != nil {
			return next, err
		}
		if next, err = instruct(r, client, held, now); err != nil || next.Do == engine.Abandon {
			return next, err
		}
		id, err := r.Engine.Attempt(client, held.Trial, held.Attempt)
		if err != nil {
			return next, err
		}
		if err := l.streams.Restore(ctx, r, id, now); err != nil {
			return next, err
		}
		defer l.group.IncludeCurves() // no stream has the reports: they must be durable before the answer
		var ignored []string
		for _, report := range reports {
			if err := r.Engine.Contradicts(id, report.Step, report.Metrics); err != nil {
				return next, err
			}
			l.studies.Step(r, engine.Measured{At: now, Measurement: &messaging.Measurement{
				Version: messaging.SchemaVersion, AttemptID: id, Worker: client, Step: report.Step, Metrics: report.Metrics, At: now,
			}})
			if r.Broken != nil {
				return next, r.Broken
			}
			ignored = append(ignored, r.Engine.Ignored(id, report.Step, report.Metrics)...)
		}
		next, err = instruct(r, client, held, now)
		next.Ignored = listed(ignored)
		return next, err
	})
}

// listed returns the first of many lines, and how many more there are: a call may bring thousands of reports.
func listed(lines []string) []string {
	const most = 10
	if more := len(lines) - most + 1; more > 1 {
		return append(lines[:most-1:most-1], fmt.Sprintf("and %d more values", more))
	}
	return lines
}

// Tell applies an event of a client or a user to a study, and returns the trial that it
// is about. It returns after the commit, so what it returns is durable. event is called in the loop, with the
// leader's time. The error wraps one of the kinds of engine.Answer, or is a *quota.Exceeded.
func (c *Coordinator) Tell(ctx context.Context, nameOrID string, event func(now time.Time) engine.Event) (record.Trial, error) {
	shares := quota.From(ctx)
	return query(ctx, c, func(ctx context.Context, l *leader, now time.Time) (told record.Trial, err error) {
		r, err := l.whole(ctx, nameOrID, now)
		if err != nil {
			return told, err
		}
		ev := event(now)
		if err := l.calls.AdmitEvent(shares, r, ev); err != nil {
			return told, err
		}
		out := l.studies.Step(r, ev)
		switch {
		case r.Broken != nil:
			return told, r.Broken
		case out.Answer == nil:
			return told, fmt.Errorf("study %s did not answer", r.Name())
		}
		return out.Answer.Trial, out.Answer.Err
	})
}
