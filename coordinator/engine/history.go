package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
)

// history is what the study has learnt from its ended trials.
//
// All of it but the recommendation and the gain follows from the trials' records in the order in which they
// ended, from the space, and from the study's limits and references. So the next leader has the
// same, and learnAgain makes it anew when one of these has changed. It has only trials whose points
// are in the space: of the others the optimiser is told nothing, and none of them is the best.
type history struct {
	shared
	tried  *tried
	ladder *ladder
	rule   *rule
	curves *curves

	space        int // the version of the space that it was made for, as in record.Status
	observations observations
	best         *trial // see leads
	limits       *record.Limits
	front        *front.Growing // nil if there is one objective
	frontStatus  *record.Front
	recommended  record.Recommendation
	gain         record.Gain
}

// load takes over what does not follow from the trials. The version of the space is that of the
// last commit: if it is not that of the specification, catchUp makes the history anew.
func (h *history) load(s *record.Status) {
	h.space, h.recommended, h.gain = s.Space, s.Recommended, s.Gain
}

func (h *history) write(s *record.Status) {
	s.Space, s.Limits, s.Front, s.Recommended, s.Gain = h.space, h.limits, h.frontStatus, h.recommended, h.gain
	if h.best != nil {
		s.Best = h.best.facts().number
	}
}

// clear forgets all trials, and takes over the space, the limits and the references as they are
// now. The recommendation stays: the caller decides whether it is void.
func (h *history) clear() {
	blind := h.spec.blindToSome()
	h.observations = observations{latest: blind, names: study.Names(h.spec.space.Parameters())}
	*h.tried = newTried(h.spec.space, h.spec.switches)
	*h.ladder = newLadder(h.spec.space, h.spec.direction(), blind, h.spec.switches)
	h.space, h.best, h.limits, h.front, h.frontStatus = h.spec.Space, nil, nil, nil, nil
	if several := h.spec.Definition.Spec.Several; len(several) > 0 {
		h.front = front.NewGrowing(several, front.References(several))
		h.frontStatus = h.describeFront()
	}
}

// learnAgain makes the history anew after an edit of the space, the limits or the references.
func (h *history) learnAgain() {
	h.trials.advance()
	h.step.changed.status = true
	h.gain = record.Gain{}
	h.clear()
	for _, t := range h.trials.all {
		_ = h.locate(t) // one outside is no error
		if t.facts().state != study.TrialCancelled {
			h.tried.add(t)
		}
	}
	for _, t := range h.trials.ended {
		h.know(t)
	}
}

// locate finds whether a trial's point is in the space; the error says why it is not. If it
// is, its numbers get the types that they have there.
func (h *history) locate(t *trial) error {
	before := t.record().Point
	point, err := h.spec.space.Place(before)
	if t.outside = err != nil; !t.outside && !maps.Equal(point, before) {
		h.step.restore(t)
		t.rec.Point, t.packed = point, nil
	}
	return err
}

// fold ends a trial, and tells those who learn from it: the rule for early stopping, the best trial
// and the front, the optimiser and the rung. A cancelled trial says nothing about its point. So its
// point may be suggested again, and the trial that it continued may be promoted again. The trial's
// record MUST be complete before, since observations are made of it.
func (h *history) fold(t *trial, s study.TrialState) {
	h.trials.completeCost(t)
	h.trials.end(t, s)
	if s == study.TrialCancelled {
		h.tried.remove(t)
		if n := t.rec.Predecessor; n > 0 {
			h.ladder.demote(h.trials.all[n-1])
		}
	}
	h.curves.rest(t, h.step.now)
	h.observe(t)
	h.step.out.Ended = append(h.step.out.Ended, t.copy())
}

// observe appends an ended trial. The order of its calls MUST be that in which the trials ended.
func (h *history) observe(t *trial) {
	h.trials.spend(t)
	h.rule.end(&h.spec.Definition.Spec, &t.rec)
	if t.facts().state != study.TrialCancelled {
		h.trials.learn(t)
		h.know(t)
	}
}

// know enters an ended trial whose point is in the space into the history. Limits are tallied for
// all completed trials, but only one within all of them can be the best or on the front.
func (h *history) know(t *trial) {
	if t.outside && h.spec.on(safetyOutside) {
		return
	}
	o, _ := Observation(&h.spec.Definition.Spec, t.record()) // all but cancelled ones are told
	if o.Outcome == optimizer.OutcomeCompleted && o.Excess != nil {
		h.limits = h.limits.With(o.Excess)
	}
	if t.over = !o.Within(); !t.over && h.leads(t) {
		h.lead(t)
	}
	if o.Outcome == optimizer.OutcomeCompleted && !t.over && h.front != nil {
		h.front.Add(o.Values)
		h.frontStatus = h.describeFront()
	}
	h.observations.add(o)
	h.ladder.add(t, o)
}

// leads reports whether a completed trial is better than the best one so far: at a higher
// level, or with a better value at the same one. Of several objectives there is no best.
func (h *history) leads(t *trial) bool {
	switch {
	case len(h.spec.Definition.Spec.Several) > 0:
		return false
	case h.best == nil || t.facts().rung > h.best.facts().rung:
		return true
	case t.facts().rung < h.best.facts().rung:
		return false
	default:
		return h.spec.direction().Better(t.facts().value, h.best.facts().value)
	}
}

// lead makes a completed trial the best one. A recommendation at a lower level is void.
func (h *history) lead(t *trial) {
	if r := h.trials.numbered(h.recommended.Trial); r != nil && r.facts().rung < t.facts().rung {
		h.recommended = record.Recommendation{}
	}
	h.best = t
}

// describeFront makes a new record each time, since those who have the last one keep it.
func (h *history) describeFront() *record.Front {
	s := &record.Front{Size: h.front.Size()}
	if volume, ok := h.front.Hypervolume(); ok {
		s.Hypervolume = &volume
	}
	return s
}

// reached says which goal of the study is reached; "" if none is.
func (h *history) reached() string {
	spec := &h.spec.Definition.Spec
	if goal := spec.FirstObjective().Goal; goal != nil && h.best != nil {
		if best := h.best.facts(); !h.spec.direction().Better(*goal, best.value) {
			return fmt.Sprintf("trial %d reached the goal: %g", best.number, best.value)
		}
	}
	goal, f := spec.Goal, h.frontStatus
	if goal == nil || f == nil || f.Hypervolume == nil || *f.Hypervolume < goal.Hypervolume {
		return ""
	}
	return fmt.Sprintf("the front reached the goal: a hypervolume of %g", *f.Hypervolume)
}

// recommend stores a recommendation if it is newer than the last one. An optimiser may have worked
// on it for long: the position tells which data it is of, and trials may have left the space since.
func (h *history) recommend(r record.Recommendation) {
	if r.Position > h.recommended.Position && r.Position <= h.trials.position && h.recommendable(r) {
		h.setRecommended(r)
	}
}

func (h *history) setRecommended(r record.Recommendation) {
	h.recommended = r
	h.step.changed.status = true
}

// recommendable reports whether a recommendation has finite numbers, and only trials that count
// and have completed.
func (h *history) recommendable(r record.Recommendation) bool {
	counts := func(number int) bool {
		t := h.trials.numbered(number)
		return t != nil && t.facts().state == study.TrialCompleted && !t.outside && !t.over
	}
	return counts(r.Trial) && study.Finite(r.Mean, r.SD) && !slices.ContainsFunc(r.Front, func(x optimizer.Expected) bool {
		return !counts(x.Trial) || !study.Finite(x.Means...) || !study.Finite(x.SDs...)
	})
}

// forgetOutside drops a recommendation with a trial that is not in the space, or not within all
// limits.
func (h *history) forgetOutside() {
	if r := h.recommended; r.Trial != 0 && !h.recommendable(r) {
		h.setRecommended(record.Recommendation{})
	}
}

// told are the observations that the optimiser is told now: those of one level if the study has a
// fidelity.
func (h *history) told() *observations {
	if h.ladder.rungs != nil {
		return &h.ladder.modelled().observations
	}
	return &h.observations
}
