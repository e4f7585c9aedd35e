package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// ladder decides which ended trials are promoted. It is the only place that does: promotion asks it
// for the next one and makes the trial that continues it.
//
// It has the ended trials of a space with a fidelity, by level. Each is in ranked of its rung
// unless it has failed, and in waiting too while it has completed and no other trial continues it;
// both are in the order of compareRanks. What it decides depends on the records of the trials that
// have ended by now, and not on when it is asked. It has no rung, and decides nothing, if the space
// has no fidelity.
type ladder struct {
	*switches
	space     *space.Space
	direction study.Direction
	// rungs are the levels, lowest first, and reduction is the factor between them.
	rungs     []rung
	reduction int
	// configurations have those of all ended trials if they can be counted. Append-only.
	countable      bool
	configurations []optimizer.Observation
}

// rung is one level of the study's fidelity.
type rung struct {
	// ranked are the trials that have ended with an answer, best first. Infeasible and
	// pruned ones are the worst: they have no value that compares.
	ranked []*trial
	// waiting are those of ranked that have completed and are not promoted, best first.
	waiting      []*trial
	observations observations
	completed    int
}

// newLadder returns the empty ladder of a space. latest is that of observations.
func newLadder(s *space.Space, d study.Direction, latest bool, w *switches) ladder {
	l := ladder{switches: w, space: s, direction: d}
	if f, ok := s.Fidelity(); ok {
		l.rungs, l.reduction = make([]rung, len(f.Levels())), *f.Reduction
		for k := range l.rungs {
			l.rungs[k].observations = observations{latest: latest, names: study.Names(s.Parameters())}
		}
		_, l.countable = s.Searched().Size()
	}
	return l
}

// atLowest adds the fidelity's lowest level to a point that has none.
func (l *ladder) atLowest(p study.Point) study.Point {
	f, ok := l.space.Fidelity()
	if _, given := p[f.Name]; !ok || given {
		return p
	}
	return l.space.AtLevel(p, 0)
}

// raised returns the point of a trial at the next level.
func (l *ladder) raised(t *trial) study.Point {
	return l.space.AtLevel(l.space.Configuration(t.record().Point), t.facts().rung)
}

// setRung derives the rung of a trial from its point. It MUST be called before the trial can end.
func (l *ladder) setRung(t *trial) {
	if k, ok := l.space.Level(t.rec.Point); ok {
		t.rec.Rung = k + 1
	}
}

// rungOf returns the rung of a trial; nil if the study has no fidelity.
func (l *ladder) rungOf(t *trial) *rung {
	if k := t.facts().rung; k >= 1 && k <= len(l.rungs) {
		return &l.rungs[k-1]
	}
	return nil
}

// add enters an ended trial and its observation into its rung. A failed trial has no rank, so it
// neither is promoted nor makes place for others; the optimiser is told of it.
func (l *ladder) add(t *trial, o optimizer.Observation) {
	r := l.rungOf(t)
	if r == nil {
		return
	}
	o.Point = l.space.Configuration(o.Point)
	o = r.observations.add(o)
	if l.countable {
		l.configurations = append(l.configurations, o) // its point is in memory once
	}
	if o.Outcome == optimizer.OutcomeFailed {
		return
	}
	r.ranked = l.insertRanked(r.ranked, t)
	if o.Outcome == optimizer.OutcomeCompleted {
		r.completed++
		if !t.promoted {
			r.waiting = l.insertRanked(r.waiting, t)
		}
	}
}

func (l *ladder) insertRanked(list []*trial, t *trial) []*trial {
	i, _ := slices.BinarySearchFunc(list, t, l.compareRanks)
	return slices.Insert(list, i, t)
}

// compareRanks orders the trials of a rung: by value, and equal ones by when they ended.
func (l *ladder) compareRanks(a, b *trial) int {
	x, y := a.facts(), b.facts()
	return cmp.Or(cmp.Compare(l.cost(x), l.cost(y)), cmp.Compare(x.ended, y.ended))
}

// cost is what a trial is ranked by, lower is better. Infeasible and pruned trials are the worst,
// as they have no value that compares.
func (l *ladder) cost(f facts) float64 {
	if f.state != study.TrialCompleted {
		return math.Inf(1)
	}
	return l.direction.Cost(f.value)
}

// next returns the trial to promote next and its rank in its rung, from 0; nil if there is
// none.
func (l *ladder) next() (t *trial, rank int) {
	for k := len(l.rungs) - 2; k >= 0; k-- {
		r := &l.rungs[k]
		if len(r.waiting) == 0 {
			continue
		}
		// Its higher level is in the space as well: nothing depends on the fidelity.
		if i, _ := slices.BinarySearchFunc(r.ranked, r.waiting[0], l.compareRanks); i < l.top(r) {
			return r.waiting[0], i
		}
	}
	return nil, 0
}

// top returns how many trials of a rung are promoted: the best 1/reduction, rounded down, as in
// algorithm 2 of Li et al. (2020).
func (l *ladder) top(r *rung) int {
	if !l.on(safetyQuantile) {
		return len(r.ranked)
	}
	return len(r.ranked) / l.reduction
}

// promote marks the trial that next has just returned as promoted. The caller MUST then make the
// trial that continues it.
func (l *ladder) promote(t *trial) {
	if t.promoted = true; l.on(safetyPromoted) {
		r := l.rungOf(t)
		r.waiting = r.waiting[1:]
	}
}

// demote lets a trial be promoted again, because the one that continued it was cancelled.
func (l *ladder) demote(t *trial) {
	if l.rungs == nil { // a user had it continued
		return
	}
	t.promoted = false
	if !t.outside && l.on(safetyPromoted) {
		r := l.rungOf(t)
		r.waiting = l.insertRanked(r.waiting, t)
	}
}

// modelled returns the level of which the optimiser is told: see Modelled.
func (l *ladder) modelled() *rung {
	return &l.rungs[Modelled(l.space, len(l.rungs), func(level int) int { return l.rungs[level].completed })]
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
