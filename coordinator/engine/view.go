package engine

import (
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// OpenAttempt is an attempt that a worker has claimed.
type OpenAttempt struct {
	Attempt messaging.AttemptID
	Worker  string
	// Claimed is when this leader read the claim, by its own clock, or when it loaded
	// the study if the attempt was claimed before.
	Claimed time.Time
	// Running says that a heartbeat has reported the evaluation.
	Running bool
}

// Status returns the study's current status.
func (e *Engine) Status() record.Status {
	s := record.Status{Occupied: e.attempts.occupied, Avoided: e.health.avoided}
	e.life.write(&s)
	e.trials.write(&s)
	e.history.write(&s)
	return s
}

// Spec returns the study's current specification.
func (e *Engine) Spec() record.Study { return e.spec.Study }

// Model returns the optimiser's state as committed.
func (e *Engine) Model() record.Model { return e.model }

// Trial returns the trial with a number, counted from 1; false if there is none.
func (e *Engine) Trial(n int) (record.Trial, bool) {
	t := e.trials.numbered(n)
	if t == nil {
		return record.Trial{}, false
	}
	return t.copy(), true
}

// Best returns the completed trial within all limits with the best value, the earliest of equal
// ones; false if there is none, or if there are several objectives. Trials whose point is not in
// the study's space do not count.
func (e *Engine) Best() (record.Trial, bool) {
	if e.history.best == nil {
		return record.Trial{}, false
	}
	return e.history.best.copy(), true
}

// LastFailed returns the failed trial that ended last; false if none has failed.
func (e *Engine) LastFailed() (record.Trial, bool) {
	if e.trials.counts.Failed == 0 {
		return record.Trial{}, false
	}
	return e.trials.lastFailed().copy(), true
}

// Open returns the claimed attempts, by trial. The caller watches their leases.
func (e *Engine) Open() []OpenAttempt {
	var list []OpenAttempt
	for _, t := range e.trials.open {
		if a := t.rec.Last(); a != nil && a.State == study.AttemptOpen && a.Worker != "" {
			list = append(list, OpenAttempt{e.spec.attemptID(t, a), a.Worker, t.claimed, t.rec.State == study.TrialRunning})
		}
	}
	return list
}

// Over reports whether an attempt, named by its numbers, has ended. An attempt that was
// not opened yet has not.
func (e *Engine) Over(trial, attempt int) bool {
	t := e.trials.numbered(trial)
	if t == nil || t.facts().state.Terminal() { // no attempt outlives its trial
		return t != nil
	}
	return attempt >= 1 && attempt <= len(t.rec.Attempts) && t.rec.Attempts[attempt-1].State != study.AttemptOpen
}

// Queued returns the attempts that wait for a claim, by trial.
func (e *Engine) Queued() []messaging.AttemptID {
	var list []messaging.AttemptID
	for _, t := range e.trials.open {
		if t.rec.State == study.TrialQueued {
			list = append(list, e.spec.attemptID(t, t.rec.Last()))
		}
	}
	return list
}

// Problem returns what the optimiser may use now. Of a blind one, unless the space is finite, its
// observations are some of the latest: see optimizer.BlindObservations. It shares the engine's history, which
// is append-only, so its cost depends only on the number of open trials.
func (e *Engine) Problem() *optimizer.Problem {
	spec := &e.spec.Definition.Spec
	return &optimizer.Problem{
		Space:        e.spec.space.Searched(),
		Direction:    spec.FirstObjective().Direction,
		Objectives:   spec.Several,
		Limits:       spec.Limits,
		MaxTrials:    spec.Budget.MaxTrials,
		Parallelism:  e.spec.parallelism(),
		Seed:         spec.Algorithm.Seed,
		First:        len(e.trials.all) + 1,
		Observations: e.history.told().snapshot(),
		Taken:        slices.Clip(e.ladder.configurations),
		Pending:      e.pendingPoints(),
	}
}

// flush returns the step's Output and resets it for the next step.
func (e *Engine) flush() Output {
	out := &e.step.out
	if e.step.changed.status {
		e.life.count()
		out.Status = new(e.Status())
	}
	if e.step.changed.model {
		out.Model = new(e.model)
	}
	if e.step.changed.study {
		out.Study = new(e.spec.Study)
	}
	if e.spec.byClients() { // they are told by answers, and everything else is for workers
		out.Publish, out.Withdraw, out.Cancels, out.Avoids, out.Receipts = nil, nil, nil, nil, nil
	}
	out.Curves = e.curves.flush()
	out.Wake = e.wake()
	return e.step.end()
}
