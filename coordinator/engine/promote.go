package engine

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// promotion continues good trials at the next level of the fidelity.
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
type promotion struct {
	shared
	ladder      *ladder
	slots       *slots
	suggestions *suggestions
	attempts    *attempts
}

// next returns the trial to promote next and its rank in its rung, from 0; nil if there is none.
func (p *promotion) next() (t *trial, rank int) {
	if len(p.trials.all) < len(p.spec.space.Initial()) && !p.suggestions.exhaustion.over {
		return nil, 0 // the first trials are the study's initial points, in their order
	}
	return p.ladder.next()
}

// possible reports whether a study whose space is exhausted goes on nevertheless.
func (p *promotion) possible() bool {
	t, _ := p.next()
	return t != nil
}

// promote makes trials of those that can be promoted, as far as trials are wanted.
func (p *promotion) promote() {
	if p.ladder.rungs == nil {
		return
	}
	for p.slots.openings() > 0 {
		from, rank := p.next()
		if from == nil {
			return
		}
		p.ladder.promote(from)
		t := p.suggestions.insert(p.ladder.raised(from), optimizer.SourcePromoted, "", Remarks{})
		before := from.record()
		t.rec.Predecessor, t.rec.Checkpoint = before.Number, before.Checkpoint
		t.rec.Reasons.Note = PromotionNote(p.spec.space, before, rank, len(p.ladder.rungOf(from).ranked))
		t.rec.Reasons.Pending = len(p.trials.open) - 1
		p.trials.setState(t, study.TrialPending)
		p.attempts.open(t)
	}
}

// follow marks the predecessor of a trial that was read from the ledger as promoted. The trials
// MUST come in the order of their numbers, as a predecessor has the smaller one.
func (p *promotion) follow(t *trial) error {
	n := t.rec.Predecessor
	if p.ladder.rungs != nil && p.ladder.rungOf(t) == nil {
		return fmt.Errorf("trial %d has no level of the study's fidelity", t.rec.Number)
	}
	if n == 0 {
		return nil
	}
	if n < 0 || n >= t.rec.Number {
		return fmt.Errorf("trial %d cannot continue trial %d", t.rec.Number, n)
	}
	before := p.trials.all[n-1].facts()
	if p.ladder.rungs == nil && t.finishes() {
		if before.state != study.TrialPruned {
			return fmt.Errorf("trial %d cannot continue trial %d, which is %s", t.rec.Number, n, before.state)
		}
		return nil
	}
	if p.ladder.rungs == nil || before.rung+1 != t.rec.Rung {
		return fmt.Errorf("trial %d cannot be promoted from trial %d", t.rec.Number, n)
	}
	if t.rec.State != study.TrialCancelled {
		p.trials.all[n-1].promoted = true
	}
	return nil
}

// PromotionNote tells people why a trial of a space with a fidelity was promoted: its rank,
// from 0, among the trials of its level that have an answer.
func PromotionNote(s *space.Space, from *record.Trial, rank, answered int) string {
	f, _ := s.Fidelity()
	return fmt.Sprintf("promoted: trial %d is number %d of the %d trials at %s %s",
		from.Number, rank+1, answered, f.Name, study.Format(from.Point[f.Name]))
}
