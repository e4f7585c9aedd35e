package engine

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// Load restores an engine from a ledger's records. It is in the state in which they
// were committed, except for requests and suggestions that had not become trials. The
// caller then feeds what the streams have received since, and opens the study with the
// first Tick. Only then does the engine publish queued attempts again and ask for
// suggestions.
//
// Trials may be newer than status if the commit of a large Output was cut off between
// two transactions; the Output then holds the repaired records. The error says which
// records are inconsistent.
func Load(
	spec record.Study, status record.Status, model record.Model, trials []record.Trial, ids IDs, settings Settings, at time.Time,
) (*Engine, Output, error) {
	e, err := construct(spec, ids, settings, at)
	if err != nil {
		return nil, Output{}, err
	}
	e.suggestions.model = model
	e.life.load(&status, at)
	e.trials.load(&status)
	e.history.load(&status)
	e.attempts.load(&status)
	e.health.load(&status)
	if status.Trials > len(trials) {
		return nil, Output{}, fmt.Errorf("study %s: the ledger holds %d trials, but the status says %d", spec.ID, len(trials), status.Trials)
	}
	byNumber := func(a, b record.Trial) int { return cmp.Compare(a.Number, b.Number) }
	if !slices.IsSortedFunc(trials, byNumber) { // the ledger's are
		trials = slices.SortedFunc(slices.Values(trials), byNumber)
	}
	for i := range trials {
		if err := e.loadTrial(i+1, trials[i]); err != nil {
			return nil, Output{}, fmt.Errorf("study %s: %w", spec.ID, err)
		}
	}
	e.loadHistory()
	e.history.forgetOutside()
	e.catchUp()
	e.step.changed.status = !reflect.DeepEqual(e.Status(), status)
	if e.life.state.Terminal() {
		e.attempts.cancelOpen("the study has ended: " + string(e.life.state))
	}
	return e, e.finish(), nil
}

// loadTrial adds the next trial. It refuses a record that the engine could not have written:
// deciding by it could lose or repeat an evaluation.
func (e *Engine) loadTrial(number int, r record.Trial) error {
	if r.Number != number {
		return fmt.Errorf("expected trial %d in the ledger, got trial %d", number, r.Number)
	}
	count := e.trials.counts.Of(r.State)
	if count == nil {
		return fmt.Errorf("trial %d: unknown state %q", number, r.State)
	}
	if r.State == study.TrialPruned && r.Stopped == nil {
		return fmt.Errorf("trial %d was pruned but has no decision to stop it", number)
	}
	if r.State == study.TrialCompleted {
		if len(r.Values) == 0 || !study.Finite(r.Values...) {
			return fmt.Errorf("trial %d is completed but has no finite value", number)
		}
		if want := len(e.spec.Definition.Spec.Objectives()); len(r.Values) != want {
			return fmt.Errorf("trial %d has %d values, but the study has %d objectives", number, len(r.Values), want)
		}
	}
	r.Attempts = slices.Clone(r.Attempts)
	t := &trial{work: &work{rec: r, claimed: e.step.now}}
	t.forgotten = len(r.Attempts) > 0
	// A cancelled trial says nothing about its point: one whose record was lost has none.
	if err := e.history.locate(t); err != nil && e.spec.SpaceVersion() == 1 && r.State != study.TrialCancelled {
		return fmt.Errorf("trial %d: %w", number, err)
	}
	e.ladder.setRung(t)
	if err := e.promotion.follow(t); err != nil {
		return err
	}
	e.trials.loadTrial(t, count)
	if r.State != study.TrialCancelled {
		e.tried.add(t)
	}
	return nil
}

// loadHistory rebuilds what the engine derives from ended trials. The order is that in which the
// leaders before learnt it: observations by their positions, and workers' health by the ends of
// attempts. It decides nothing: the next result does.
func (e *Engine) loadHistory() {
	type ending struct {
		attempt *record.Attempt
		trial   int
		folded  time.Time
	}
	var endings []ending
	for _, t := range e.trials.all {
		for i := range t.rec.Attempts {
			switch a := &t.rec.Attempts[i]; a.State {
			case study.AttemptSucceeded, study.AttemptFailed, study.AttemptPruned:
				endings = append(endings, ending{a, t.rec.Number, t.rec.Times.Folded})
			}
		}
	}
	for _, t := range e.trials.byEnd() {
		e.history.observe(t)
	}
	slices.SortFunc(endings, func(a, b ending) int {
		return cmp.Or(a.attempt.Ended.Compare(b.attempt.Ended), cmp.Compare(a.trial, b.trial))
	})
	for _, x := range endings {
		if x.attempt.State == study.AttemptFailed {
			e.health.failed(x.attempt.Worker)
			continue
		}
		e.health.succeeded(x.attempt.Worker)
		e.evaluations.add(x.attempt, x.folded)
	}
}

// reopen opens a loaded study at its first Tick: it publishes queued attempts again,
// and tells failing workers again to avoid the study.
func (e *Engine) reopen() {
	e.life.open()
	if !e.running() {
		return
	}
	for t := range e.trials.handedOut() {
		if t.rec.State == study.TrialQueued {
			e.outbox.publish(t)
		}
	}
	e.health.tellAgain()
}
