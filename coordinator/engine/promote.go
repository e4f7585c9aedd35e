package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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

// rung is one level of the study's fidelity.
type rung struct {
	// ranked are the trials that have ended with an answer, best first. Infeasible and
	// pruned ones are the worst: they have no value that compares.
	ranked []*trial
	// waiting are those of ranked that have completed and are not promoted, best first.
	waiting []*trial
	// told are the observations of the level that the optimiser needs, in ledger order.
	// Append-only: snapshots share it.
	told      []optimizer.Observation
	completed int
}

// newRungs makes the empty rungs of a new space with a fidelity.
func (e *Engine) newRungs() {
	if f, ok := e.space.Fidelity(); ok {
		e.rungs, e.reduction, e.configurations = make([]rung, len(f.Levels())), *f.Reduction, nil
	}
}

// atLowest adds the fidelity's lowest level to a point that has none.
func (e *Engine) atLowest(p study.Point) study.Point {
	f, ok := e.space.Fidelity()
	if _, given := p[f.Name]; !ok || given {
		return p
	}
	return e.space.AtLevel(p, 0)
}

// setRung sets the rung of a trial, from its point.
func (e *Engine) setRung(t *trial) {
	if k, ok := e.space.Level(t.rec.Point); ok {
		t.rec.Rung = k + 1
	}
}

// rungOf returns the rung of a trial; nil if the study has no fidelity.
func (e *Engine) rungOf(t *trial) *rung {
	if k := t.facts().rung; k >= 1 && k <= len(e.rungs) {
		return &e.rungs[k-1]
	}
	return nil
}

// rank enters an ended trial and its observation into its rung.
func (e *Engine) rank(t *trial, o optimizer.Observation) {
	r := e.rungOf(t)
	if r == nil {
		return
	}
	o.Point = e.space.Configuration(o.Point)
	if e.finite {
		e.configurations = append(e.configurations, o.Point)
	}
	r.told = e.tell(r.told, o)
	if o.Outcome == optimizer.OutcomeFailed {
		return
	}
	r.ranked = e.place(r.ranked, t)
	if o.Outcome == optimizer.OutcomeCompleted {
		r.completed++
		if !t.promoted {
			r.waiting = e.place(r.waiting, t)
		}
	}
}

// place inserts a trial into a list in the order of compareRanks.
func (e *Engine) place(list []*trial, t *trial) []*trial {
	i, _ := slices.BinarySearchFunc(list, t, e.compareRanks)
	return slices.Insert(list, i, t)
}

// compareRanks orders the trials of a rung: by value, and equal ones by when they ended.
func (e *Engine) compareRanks(a, b *trial) int {
	return cmp.Or(cmp.Compare(e.rankCost(a), e.rankCost(b)), cmp.Compare(a.facts().ended, b.facts().ended))
}

// rankCost is what a trial is ranked by, lower is better.
func (e *Engine) rankCost(t *trial) float64 {
	if t.facts().state != study.TrialCompleted {
		return math.Inf(1)
	}
	return e.direction().Cost(t.facts().value)
}

// promotable returns the trial to promote next and its place in its rung, from 0; nil if
// there is none.
func (e *Engine) promotable() (t *trial, place int) {
	if e.status.Trials < len(e.space.Initial()) && !e.demand.exhausted {
		return nil, 0 // the first trials are the study's initial points, in their order
	}
	for k := len(e.rungs) - 2; k >= 0; k-- {
		r := &e.rungs[k]
		if len(r.waiting) == 0 {
			continue
		}
		// Its higher level is in the space as well: nothing depends on the fidelity.
		if i, _ := slices.BinarySearchFunc(r.ranked, r.waiting[0], e.compareRanks); i < e.top(r) {
			return r.waiting[0], i
		}
	}
	return nil, 0
}

// promotes reports whether there is a trial to promote.
func (e *Engine) promotes() bool {
	t, _ := e.promotable()
	return t != nil
}

// top returns how many trials of a rung are promoted.
func (e *Engine) top(r *rung) int {
	if !e.on(safetyQuantile) {
		return len(r.ranked)
	}
	return len(r.ranked) / e.reduction
}

// raised returns the point of a trial at the next level.
func (e *Engine) raised(t *trial) study.Point {
	return e.space.AtLevel(e.space.Configuration(t.look().Point), t.facts().rung)
}

// promote makes trials of those that can be promoted, as far as trials are wanted.
func (e *Engine) promote() {
	if e.rungs == nil {
		return
	}
	for e.openings() > 0 {
		from, place := e.promotable()
		if from == nil {
			return
		}
		if from.promoted = true; e.on(safetyPromoted) {
			r := e.rungOf(from)
			r.waiting = r.waiting[1:]
		}
		t := e.insert(e.raised(from), optimizer.SourcePromoted, "", Remarks{})
		before := from.look()
		t.rec.Predecessor, t.rec.Checkpoint = before.Number, before.Checkpoint
		t.rec.Reasons.Note = PromotionNote(e.space, before, place, len(e.rungOf(from).ranked))
		t.rec.Reasons.Pending = len(e.open) - 1
		e.setState(t, study.TrialPending)
		e.openAttempt(t)
	}
}

// PromotionNote tells people why a trial of a space with a fidelity was promoted: its place,
// from 0, among the trials of its level that have an answer.
func PromotionNote(s *space.Space, from *record.Trial, place, answered int) string {
	f, _ := s.Fidelity()
	return fmt.Sprintf("promoted: trial %d is number %d of the %d trials at %s %s",
		from.Number, place+1, answered, f.Name, study.Format(from.Point[f.Name]))
}

// demote lets the predecessor of a cancelled trial be promoted again.
func (e *Engine) demote(t *trial) {
	if n := t.rec.Predecessor; n > 0 {
		from := e.trials[n-1]
		from.promoted = false
		if !from.outside && e.on(safetyPromoted) {
			r := e.rungOf(from)
			r.waiting = e.place(r.waiting, from)
		}
	}
}

// follow marks the predecessor of a trial that was read from the ledger.
func (e *Engine) follow(t *trial) error {
	n := t.rec.Predecessor
	if e.rungs != nil && e.rungOf(t) == nil {
		return fmt.Errorf("trial %d has no level of the study's fidelity", t.rec.Number)
	}
	if n == 0 {
		return nil
	}
	if n < 0 || n >= t.rec.Number || e.rungs == nil || e.trials[n-1].facts().rung+1 != t.rec.Rung {
		return fmt.Errorf("trial %d cannot be promoted from trial %d", t.rec.Number, n)
	}
	if t.rec.State != study.TrialCancelled {
		e.trials[n-1].promoted = true
	}
	return nil
}

// first returns the number of the trial that began a trial's configuration: its own,
// unless it was promoted. All of them share a seed and a directory of checkpoints.
func (e *Engine) first(t *trial) int {
	n := t.rec.Number
	for before := t.rec.Predecessor; before > 0; before = e.trials[n-1].facts().predecessor {
		n = before
	}
	return n
}

// leads reports whether a completed trial is better than the best one so far: at a higher
// level, or with a better value at the same one.
func (e *Engine) leads(t *trial) bool {
	switch {
	case e.best == nil || t.facts().rung > e.best.facts().rung:
		return true
	case t.facts().rung < e.best.facts().rung:
		return false
	default:
		return e.direction().Better(t.facts().value, e.best.facts().value)
	}
}

// lead makes a completed trial the best one. A recommendation at a lower level is void.
func (e *Engine) lead(t *trial) {
	if r := e.numbered(e.status.Recommended.Trial); r != nil && r.facts().rung < t.facts().rung {
		e.status.Recommended = record.Recommendation{}
	}
	e.best, e.status.Best = t, t.facts().number
}

// modelled returns what the optimiser is told: of a study with a fidelity, one level.
func (e *Engine) modelled() []optimizer.Observation {
	if e.rungs == nil {
		return e.observations
	}
	return e.rungs[Modelled(e.space, len(e.rungs), func(level int) int { return e.rungs[level].completed })].told
}

// Modelled returns which level of a study with a fidelity the optimiser is told of, from 0: the
// highest one with at least three more completed trials than there are other parameters, as in
// BOHB (Falkner et al. 2018), or the lowest one.
func Modelled(s *space.Space, levels int, completed func(level int) int) int {
	k := levels - 1
	for k > 0 && completed(k) < len(s.Searched().Parameters())+3 {
		k--
	}
	return k
}

// FinalProblem is Problem for a recommendation: of a study with a fidelity, its
// observations are those of the highest level that a trial has completed.
func (e *Engine) FinalProblem() *optimizer.Problem {
	p := e.Problem()
	if e.rungs != nil && e.best != nil {
		told := e.rungOf(e.best).told
		p.Observations = told[:len(told):len(told)]
	}
	return p
}
