package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// told is what the optimiser was told of ended trials, in ledger order: those of one level
// if the space has a fidelity, without their fidelity.
type told struct {
	space  *space.Space
	levels []level // a single one if there is no fidelity
	// taken are the configurations of all levels, if the space is finite and has a fidelity,
	// and takenAt their positions.
	taken   []optimizer.Observation
	takenAt []int64
	finite  bool
}

// level holds the observations of a level, their positions, and those of the completed ones.
type level struct {
	list          []optimizer.Observation
	at, completed []int64
}

func newTold(s *space.Space) told {
	t := told{space: s, levels: make([]level, 1)}
	if f, ok := s.Fidelity(); ok {
		t.levels = make([]level, len(f.Levels()))
		_, t.finite = s.Searched().Size()
	}
	return t
}

// add adds what was observed at a position, which is later than all before.
func (t *told) add(o optimizer.Observation, at int64) {
	k, _ := t.space.Level(o.Point) // 0 without a fidelity
	o.Point = t.space.Configuration(o.Point)
	l := &t.levels[k]
	l.list, l.at = append(l.list, o), append(l.at, at)
	if o.Outcome == optimizer.OutcomeCompleted {
		l.completed = append(l.completed, at)
	}
	if t.finite {
		t.taken, t.takenAt = append(t.taken, o), append(t.takenAt, at)
	}
}

// until returns what the optimiser had been told by a position, and the points that were
// taken.
func (t *told) until(position int64) (list, taken []optimizer.Observation) {
	k := engine.Modelled(t.space, len(t.levels), func(level int) int { return upTo(t.levels[level].completed, position) })
	n, m := upTo(t.levels[k].at, position), upTo(t.takenAt, position)
	return t.levels[k].list[:n:n], t.taken[:m:m]
}

// upTo returns how many ascending positions are at most the given one.
func upTo(positions []int64, most int64) int {
	n, _ := slices.BinarySearch(positions, most+1)
	return n
}

// ladder is the state of the rule of promotion while the ledger is read in its order. It
// states the rule as the paper does, and not as the engine computes it: see package engine.
type ladder struct {
	rungs [][]*record.Trial // the trials that ended with an answer, by level, best first
	// promoted says, by number, which trials another one continues that was not cancelled.
	promoted []bool
	open     int // trials
	// last is the newest trial if an optimiser suggested it and no trial has ended since, or
	// else nil. due is the trial that should have been promoted before the first suggestion of
	// last's step; nil if there was none.
	last *record.Trial
	due  *record.Trial
	// made are the promoted trials that follow from the rule, and first is the first
	// difference, after which nothing is checked.
	made  []int
	first *Difference
}

// moment is a trial's creation or its end.
type moment struct {
	at    int64
	trial *record.Trial
}

// rule checks who was promoted, of a study with a fidelity: a trial that is wanted continues the
// best one that is due, at the highest level that has one. It begins a configuration only if
// there is none.
func (p *player) rule() {
	f, ok := p.space.Fidelity()
	if !ok {
		return
	}
	p.ladder.rungs, p.ladder.promoted = make([][]*record.Trial, len(f.Levels())), make([]bool, len(p.trials)+1)
	var moments []moment
	for _, t := range p.trials {
		moments = append(moments, moment{t.Created, t})
		if t.Ended > 0 {
			moments = append(moments, moment{t.Ended, t})
		}
	}
	slices.SortFunc(moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	edited := p.edited(moments)
	for _, m := range moments {
		switch {
		case m.at == m.trial.Ended:
			p.ended(m.trial)
			continue
		case m.at > edited:
			p.created(m.trial)
		case m.trial.Source == optimizer.SourcePromoted:
			p.findings.Earlier++
		}
		if p.ladder.first != nil {
			return
		}
		if n := m.trial.Predecessor; n > 0 && n < m.trial.Number {
			p.ladder.promoted[n] = true
		}
		p.ladder.open++
	}
}

// ended enters the end of a trial into its rung, by the same ranks as the engine.
func (p *player) ended(t *record.Trial) {
	l := &p.ladder
	l.open--
	l.last = nil
	if n := t.Predecessor; n > 0 && n < t.Number && t.State == study.TrialCancelled {
		l.promoted[n] = false
	}
	k, ok := p.space.Level(t.Point)
	if !ok || p.outside[t.Number] {
		return
	}
	switch t.State {
	case study.TrialCompleted, study.TrialInfeasible, study.TrialPruned:
		i, _ := slices.BinarySearchFunc(l.rungs[k], t, p.compareRanks)
		l.rungs[k] = slices.Insert(l.rungs[k], i, t)
	}
}

// compareRanks orders the trials of a level: completed ones by value, then the others, and equal
// ones by when they ended.
func (p *player) compareRanks(a, b *record.Trial) int {
	cost := func(t *record.Trial) float64 {
		if t.State != study.TrialCompleted {
			return math.Inf(1)
		}
		return p.spec.FirstObjective().Direction.Cost(t.Values.First())
	}
	return cmp.Or(cmp.Compare(cost(a), cost(b)), cmp.Compare(a.Ended, b.Ended))
}

// created checks that a new trial is what the rule of promotion makes at its position: the
// promotion that is due, or a new configuration only if none is. The first difference is kept.
func (p *player) created(t *record.Trial) {
	l := &p.ladder
	var d *Difference
	switch t.Source {
	case optimizer.SourceRequested, optimizer.SourceAdded:
		l.last = nil
		return
	case optimizer.SourcePromoted:
		l.last = nil
		if d = p.promotion(t); d == nil {
			l.made = append(l.made, t.Number)
		}
	default:
		// The promotions of a step come before its suggestions.
		if last := l.last; last == nil || last.Created+1 != t.Created || !last.Times.Created.Equal(t.Times.Created) {
			l.due = nil
			if !p.starting(t) {
				l.due, _ = p.next()
			}
		}
		if l.last = t; l.due != nil {
			d = &Difference{What: "the promotion", Recorded: "none", Replayed: promotionOf(l.due.Number)}
		}
	}
	if d != nil {
		d.Trial = t.Number
		l.first = d
	}
}

// starting reports whether a trial is among the first ones, which are the study's initial points.
func (p *player) starting(t *record.Trial) bool { return t.Number <= len(p.space.Initial()) }

// next returns the trial that is due and its place in its level, from 0; nil if none is.
func (p *player) next() (t *record.Trial, place int) {
	f, _ := p.space.Fidelity()
	for k := len(p.ladder.rungs) - 2; k >= 0; k-- {
		ranked := p.ladder.rungs[k]
		for i, t := range ranked[:len(ranked) / *f.Reduction] {
			if t.State == study.TrialCompleted && !p.ladder.promoted[t.Number] {
				return t, i
			}
		}
	}
	return nil, 0
}

// promotion returns how a promoted trial differs from what the rule makes; nil if it does not.
func (p *player) promotion(t *record.Trial) *Difference {
	due, place := p.next()
	// The points of a finite space may have been used up before all initial points were trials.
	if _, finite := p.space.Searched().Size(); p.starting(t) && !finite {
		due = nil
	}
	if due == nil {
		return &Difference{What: "the promotion", Recorded: promotionOf(t.Predecessor), Replayed: "none"}
	}
	if due.Number != t.Predecessor {
		return &Difference{What: "the promotion", Recorded: promotionOf(t.Predecessor), Replayed: promotionOf(due.Number)}
	}
	k, _ := p.space.Level(due.Point)
	if d := p.comparePoints(t.Point, p.space.AtLevel(p.space.Configuration(due.Point), k+1)); d != nil {
		return d
	}
	note := engine.PromotionNote(p.space, due, place, len(p.ladder.rungs[k]))
	return compareReasons(t.Reasons, optimizer.Reasons{Note: note, Pending: p.ladder.open})
}

func promotionOf(trial int) string { return fmt.Sprintf("of trial %d", trial) }

// edited returns the position of the last edit of the space, 0 if there was none. The records do
// not say when it was. But an edit takes a position of its own, so each gap between the trials'
// positions may be one. Only suggested trials record the version of their space: the edit to the
// last version came before the first of them.
func (p *player) edited(moments []moment) int64 {
	if p.version == 1 || len(moments) == 0 {
		return 0
	}
	first := moments[len(moments)-1].at // after it nothing has happened
	for _, a := range p.answers {
		first = min(first, a.from)
	}
	var last, before, gaps int64
	for _, m := range moments {
		if gap := m.at - before - 1; gap > 0 {
			gaps += gap
			if before < first {
				last = min(m.at-1, first)
			}
		}
		before = m.at
	}
	if gaps < int64(p.version-1) {
		return before // the last edit came after everything
	}
	return last
}

// unruly reports whether a trial or one before it is not as the rule of promotion makes it, and
// notes the difference.
func (p *player) unruly(t *record.Trial) bool {
	d := p.ladder.first
	if d == nil || d.Trial > t.Number {
		return false
	}
	p.findings.First = d
	return true
}

// countPromotions counts the promotions, as far as the study could be replayed.
func (p *player) countPromotions() {
	found := &p.findings
	if found.First == nil && found.Until == 0 {
		found.First = p.ladder.first
	}
	end := len(p.trials) + 1
	switch {
	case found.First != nil:
		end = found.First.Trial
	case found.Until > 0:
		end = found.Until
	}
	found.Promoted, _ = slices.BinarySearch(p.ladder.made, end)
}
