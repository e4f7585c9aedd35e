package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
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
}

// Status puts the status together: each part of the engine owns a part of it. Maps and slices in it are
// not changed later.
func (e *Engine) Status() record.Status {
	var s record.Status
	e.life.write(&s)
	e.trials.write(&s)
	e.history.write(&s)
	e.attempts.write(&s)
	e.health.write(&s)
	return s
}

// Spec returns the study's current specification.
func (e *Engine) Spec() record.Study { return e.spec.Study }

// Model returns the optimiser's state as committed.
func (e *Engine) Model() record.Model { return e.suggestions.model }

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
	for t := range e.trials.handedOut() {
		if a := t.rec.Last(); a != nil && a.State == study.AttemptOpen && a.Worker != "" {
			list = append(list, OpenAttempt{e.spec.attemptID(t, a), a.Worker, t.claimed})
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
	return !t.wished() && attempt >= 1 && attempt <= len(t.rec.Attempts) && t.rec.Attempts[attempt-1].State != study.AttemptOpen
}

// Queued returns the attempts that wait for a claim, by trial.
func (e *Engine) Queued() []messaging.AttemptID {
	var list []messaging.AttemptID
	for t := range e.trials.handedOut() {
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
	return e.suggestions.problem(e.suggestions.pendingPoints())
}

// FinalProblem returns Problem for a recommendation. If the study has a fidelity, it has only the
// observations of the highest level at which a trial has completed. It has no pending points, which may be
// many: they change no recommendation.
func (e *Engine) FinalProblem() *optimizer.Problem {
	p := e.suggestions.problem(nil)
	if e.ladder.rungs != nil && e.history.best != nil {
		p.Observations = e.ladder.rungOf(e.history.best).observations.snapshot()
	}
	return p
}

// Bytes returns about how many bytes the trials' records and the curves in memory have, for quotas.
func (e *Engine) Bytes() int64 { return e.trials.bytes + e.curves.bytes }

// Adds returns about how many bytes an event of a user adds to Bytes; 0 for one that adds nothing.
func (e *Engine) Adds(ev Event) int64 {
	var more record.Trial
	switch ev := ev.(type) {
	case Enqueue:
		if e.Requested(ev.RequestID) {
			return 0
		}
		more = record.Trial{Point: ev.Point, RequestID: ev.RequestID, Labels: ev.Labels, Note: ev.Note}
		if from, ok := e.Trial(ev.Continues); ok {
			more.Point, more.Checkpoint = from.Point, from.Checkpoint
		}
	case Add:
		if e.Requested(ev.RequestID) {
			return 0
		}
		more = record.Trial{Point: ev.Point, RequestID: ev.RequestID, Labels: ev.Labels, Note: ev.Note, Values: ev.Values, Metrics: ev.Metrics}
	case Annotate:
		t, ok := e.Trial(ev.Trial)
		if !ok {
			return 0
		}
		before := t.Bytes()
		annotate(&t, ev)
		return max(0, t.Bytes()-before)
	default:
		return 0
	}
	return more.Bytes()
}

// Requested reports whether a user's request has made a trial; false for an empty id.
func (e *Engine) Requested(id string) bool { return id != "" && e.trials.requests[id] > 0 }

// Held returns the first trials that a client holds, oldest first and at most limit. more
// reports whether it can hold more before another trial ends.
func (e *Engine) Held(client string, limit int) (held []record.Trial, more bool) {
	for t := range e.trials.handedOut() {
		if len(held) == limit {
			break
		}
		if t.holder() == client {
			held = append(held, t.copy())
		}
	}
	others := !e.suggestions.exhaustion.over && min(e.trials.vacancies(), e.trials.remaining()) > 0
	return held, e.running() && (e.trials.waiting() || others)
}

// Holds returns how many trials each client holds.
func (e *Engine) Holds() map[string]int { return e.trials.holds() }

// Attempt returns the attempt by which a client holds or last held a trial, or the one
// that it names if attempt is not 0.
func (e *Engine) Attempt(client string, number, attempt int) (messaging.AttemptID, error) {
	t, a, err := e.clients.heldBy(client, number, attempt)
	if err != nil {
		return messaging.AttemptID{}, err
	}
	return e.spec.attemptID(t, a), nil
}

// Instruct returns what a client should do with a trial, and why. It refuses a trial that
// the client was never given. attempt is the one that the client evaluates; 0 for the last
// one that it was given.
func (e *Engine) Instruct(client string, number, attempt int) (Instruction, error) {
	return e.clients.instruct(client, number, attempt)
}

// Contradicts returns an error if an attempt has reported another value of one of the metrics at
// a step. The trial's curve MUST be in memory: see Forgotten.
func (e *Engine) Contradicts(id messaging.AttemptID, step int64, metrics map[string]float64) error {
	t := e.trials.numbered(id.Trial)
	if t == nil || t.curve == nil || t.curve.Attempt != id.Attempt {
		return nil
	}
	for _, metric := range slices.Sorted(maps.Keys(metrics)) {
		told := metrics[metric]
		if value, kept, _, _ := t.curve.At(metric, step); kept && study.Finite(told) && value != told {
			return refusef("%s of trial %d is recorded as %v at step %d, got %v", metric, id.Trial, value, step, told)
		}
	}
	return nil
}

// Ignored explains what the curve of a trial has not taken of a report that was just added. Values that
// are not finite are in no curve.
func (e *Engine) Ignored(id messaging.AttemptID, step int64, metrics map[string]float64) (ignored []string) {
	t := e.trials.numbered(id.Trial)
	if t == nil || t.curve == nil || t.curve.Attempt != id.Attempt {
		return nil
	}
	for _, metric := range slices.Sorted(maps.Keys(metrics)) {
		switch _, kept, last, known := t.curve.At(metric, step); {
		case kept || !study.Finite(metrics[metric]):
		case known:
			ignored = append(ignored, fmt.Sprintf("%s at step %d: step %d was reported before it, and steps must grow", metric, step, last))
		default:
			ignored = append(ignored, fmt.Sprintf("%s at step %d: at most %d metrics of a trial, with names of at most %d bytes, have a curve",
				metric, step, curve.MaxMetrics, curve.MaxName))
		}
	}
	return ignored
}

// Forgotten reports whether a report of an attempt counts but its curve is not in
// memory. If so, send Recalled BEFORE Measured.
func (e *Engine) Forgotten(id messaging.AttemptID) bool {
	t := e.pruning.reporting(id)
	return t != nil && t.forgotten
}

// Curve returns what a trial's program has reported at each step, by metric. It
// returns nil if nothing was reported, or if the curve is not in memory: see
// Forgotten.
func (e *Engine) Curve(number int) []curve.Series {
	t := e.trials.numbered(number)
	if t == nil || t.curve == nil {
		return nil
	}
	return t.curve.Series()
}
