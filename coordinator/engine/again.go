package engine

import (
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// # Spaces that are learned
//
// Clients declare the parameters of some studies as they evaluate trials. What is known of such a space may be
// finite, and yet a trial that failed before it asked for its next parameter says that there is more. So the study
// does not end when all known points have been evaluated: they are evaluated again, up to the budget. If evaluations
// are not noisy, only points whose trials have all failed are, since only these can bring something new.

// failedWeight is how often a failed trial counts, so that a branch that always fails gets a quarter of the trials.
const failedWeight = 3

// again makes a trial of a known point when the optimiser has no other, and reports whether the study goes on so.
func (s *suggestions) again() bool {
	if !s.spec.Definition.Spec.LearnParameters || s.trials.remaining() <= 0 {
		return false
	}
	if len(s.trials.wishes) > 0 { // nobody has come for the last one yet
		s.askAfter = s.step.now.Add(askPause)
		return true
	}
	point := s.leastTried()
	if point == nil {
		return false
	}
	note := "every known point has been evaluated; this one is evaluated again"
	s.trials.wish(s.insert(point, optimizer.SourceRequested, "", Remarks{Note: note}))
	return true
}

// leastTried returns the point with the fewest trials, of equal ones the first; nil if none may be evaluated again.
func (s *suggestions) leastTried() study.Point {
	type known struct {
		point study.Point
		tries int
		good  bool // some trial has not failed
	}
	var all []*known
	at := map[string]*known{}
	try := func(p study.Point, weight int, good bool) {
		key := s.spec.space.Key(p)
		if at[key] == nil {
			at[key] = &known{point: p}
			all = append(all, at[key])
		}
		at[key].tries += weight
		at[key].good = at[key].good || good
	}
	for _, o := range s.history.observations.list {
		if failed := o.Outcome == optimizer.OutcomeFailed; failed {
			try(o.At(), failedWeight, false)
		} else {
			try(o.At(), 1, true)
		}
	}
	for _, p := range s.pendingPoints() {
		try(p.Point, 1, false)
	}
	quiet := s.spec.Definition.Spec.Algorithm.Settings["noise"] == "no"
	var least *known
	for _, k := range all {
		if (least == nil || k.tries < least.tries) && !(quiet && k.good) {
			least = k
		}
	}
	if least == nil {
		return nil
	}
	return least.point
}
