package engine

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// # Promotion
//
// If the study's space has a fidelity, each of its levels has a rung. This is algorithm 2 of
// Li et al., "A System for Massively Parallel Hyperparameter Tuning" (2020): whenever a
// trial is wanted, the highest rung is sought of which a trial is among the best
// 1/reduction and is not promoted yet. The best such trial is promoted: a new trial has its
// configuration, the fidelity's next level, and its checkpoint. If there is none, the
// optimiser's next configuration starts at the lowest level. Nobody waits for a rung to
// fill.
//
// All of it follows from the trials' records: a rung holds the trials of its level that
// have ended with an answer and are in the space, and a trial is promoted if another one names it as its
// predecessor and was not cancelled. So a failover changes no decision.

// promotable returns the trial to promote next and its rank in its rung, from 0; nil if
// there is none.
func (e *Engine) promotable() (t *trial, rank int) {
	if len(e.trials.all) < len(e.spec.space.Initial()) && !e.demand.exhausted {
		return nil, 0 // the first trials are the study's initial points, in their order
	}
	return e.ladder.next()
}

// promotes reports whether there is a trial to promote.
func (e *Engine) promotes() bool {
	t, _ := e.promotable()
	return t != nil
}

// promote makes trials of those that can be promoted, as far as trials are wanted.
func (e *Engine) promote() {
	if e.ladder.rungs == nil {
		return
	}
	for e.slots.openings() > 0 {
		from, rank := e.promotable()
		if from == nil {
			return
		}
		e.ladder.promote(from)
		t := e.insert(e.ladder.raised(from), optimizer.SourcePromoted, "", Remarks{})
		before := from.look()
		t.rec.Predecessor, t.rec.Checkpoint = before.Number, before.Checkpoint
		t.rec.Reasons.Note = PromotionNote(e.spec.space, before, rank, len(e.ladder.rungOf(from).ranked))
		t.rec.Reasons.Pending = len(e.trials.open) - 1
		e.trials.setState(t, study.TrialPending)
		e.attempts.open(t)
	}
}

// PromotionNote tells people why a trial of a space with a fidelity was promoted: its rank,
// from 0, among the trials of its level that have an answer.
func PromotionNote(s *space.Space, from *record.Trial, rank, answered int) string {
	f, _ := s.Fidelity()
	return fmt.Sprintf("promoted: trial %d is number %d of the %d trials at %s %s",
		from.Number, rank+1, answered, f.Name, study.Format(from.Point[f.Name]))
}

// follow marks the predecessor of a trial that was read from the ledger.
func (e *Engine) follow(t *trial) error {
	n := t.rec.Predecessor
	if e.ladder.rungs != nil && e.ladder.rungOf(t) == nil {
		return fmt.Errorf("trial %d has no level of the study's fidelity", t.rec.Number)
	}
	if n == 0 {
		return nil
	}
	if n < 0 || n >= t.rec.Number || e.ladder.rungs == nil || e.trials.all[n-1].facts().rung+1 != t.rec.Rung {
		return fmt.Errorf("trial %d cannot be promoted from trial %d", t.rec.Number, n)
	}
	if t.rec.State != study.TrialCancelled {
		e.trials.all[n-1].promoted = true
	}
	return nil
}

// FinalProblem is Problem for a recommendation: of a study with a fidelity, its
// observations are those of the highest level that a trial has completed.
func (e *Engine) FinalProblem() *optimizer.Problem {
	p := e.Problem()
	if e.ladder.rungs != nil && e.history.best != nil {
		p.Observations = e.ladder.rungOf(e.history.best).observations.snapshot()
	}
	return p
}
