package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The limits on what a study may learn from.
const (
	MaxEarlier       = 16
	MaxEarlierTrials = 1000 // of all earlier studies together
	// MinEarlierTrials is how many trials of an earlier study are needed: fewer say nothing of a shape.
	MinEarlierTrials = 4
)

// Earlier is a study that was made before, from whose trials another one learns.
type Earlier struct {
	// Study is its name. If Trials is nil, the coordinator looks for a study of this name when it
	// creates the study, and fills in the rest.
	Study string `json:"study"`
	// Direction is that of its metric; empty is the study's own.
	Direction Direction `json:"direction,omitempty"`
	// Trials are some of its completed trials.
	Trials []EarlierTrial `json:"trials,omitempty"`
}

// EarlierTrial is a completed trial of an earlier study.
type EarlierTrial struct {
	Parameters map[string]any `json:"parameters"`
	// Value is what the objective was, finite.
	Value float64 `json:"value"`
	// Seconds is how long its program took, Cost what it has cost in the unit of the earlier study's cost. Both are finite and not
	// negative, and 0 if they are not known.
	Seconds float64 `json:"seconds,omitempty"`
	Cost    float64 `json:"cost,omitempty"`
}

// NewEarlier returns an earlier study with at most limit of its completed trials: the best, the latest, and an
// even share of the others.
func NewEarlier(name string, direction Direction, completed []EarlierTrial, limit int) Earlier {
	kept := Representative(completed, limit, func(t EarlierTrial) float64 { return direction.Cost(t.Value) })
	return Earlier{Study: name, Direction: direction, Trials: kept}
}

// Useless says why a study with these parameters would learn nothing from the earlier study's trials; it is empty if it learns from them.
// A trial counts that has one of the parameters, and no value that has no place among them, such as a choice that is gone.
func (e *Earlier) Useless(parameters []Parameter) string {
	names := searched(parameters)
	counted, shared, misplaced := 0, false, ""
	for _, t := range e.Trials {
		has, placed := false, true
		for _, p := range parameters {
			value, known := t.Parameters[p.Name]
			if !known || !slices.Contains(names, p.Name) {
				continue
			}
			has, shared = true, true
			if _, ok := p.Coordinate(value); !ok {
				placed = false
				misplaced = cmp.Or(misplaced, fmt.Sprintf("; others have, for example, %v as %s: want %s", value, p.Name, p.Accepts()))
			}
		}
		if has && placed {
			counted++
		}
	}
	switch {
	case counted >= MinEarlierTrials:
		return ""
	case !shared:
		return fmt.Sprintf("its trials have none of the parameters that this study searches (%s): give those the same names, or leave the "+
			"earlier study out", strings.Join(names, ", "))
	}
	return fmt.Sprintf("this study can learn from %d of its trials%s. At least %d are needed: write fewer as points in spec.initial", counted,
		misplaced, MinEarlierTrials)
}

// Lacking returns the names of the parameters that are searched and that none of the trials has a value of: nothing is learnt about them.
func (e *Earlier) Lacking(parameters []Parameter) []string {
	return slices.DeleteFunc(searched(parameters), func(name string) bool {
		return slices.ContainsFunc(e.Trials, func(t EarlierTrial) bool { _, has := t.Parameters[name]; return has })
	})
}

// searched returns the names of the parameters in which the points of a study differ.
func searched(parameters []Parameter) (names []string) {
	for _, p := range parameters {
		if n, finite := p.Cardinality(); p.Type != Fidelity && !(finite && n == 1) {
			names = append(names, p.Name)
		}
	}
	return names
}

// CheckEarlier returns a *Problems if the study would learn nothing from one of its earlier studies, which nobody would notice. An
// earlier study whose trials are not known yet passes. All pass in a study whose parameters are still to be learnt.
func (s *Spec) CheckEarlier() error {
	var list []Problem
	for i := range s.LearnFrom {
		e := &s.LearnFrom[i]
		if e.Trials == nil || s.LearnParameters {
			continue
		}
		if why := e.Useless(s.Parameters); why != "" {
			list = append(list, Problem{Path: fmt.Sprintf("spec.learnFrom[%d]", i), Message: fmt.Sprintf("%q: %s", e.Study, why)})
		}
	}
	if list == nil {
		return nil
	}
	return &Problems{List: list}
}

// AddEarlier adds an earlier study to those that the study learns from. If one of this name is among them, it gets the
// name with the first free number behind it.
func (s *Spec) AddEarlier(e Earlier) {
	name := e.Study
	taken := func(other Earlier) bool { return other.Study == e.Study }
	for n := 2; slices.ContainsFunc(s.LearnFrom, taken); n++ {
		e.Study = fmt.Sprintf("%s-%d", name, n)
	}
	s.LearnFrom = append(slices.Clip(s.LearnFrom), e)
}

// Recall fills in the earlier studies that another version of the same study has read: an earlier study is
// read once, when the study is created. Those that no study file can name, since they were files, are added.
func (s *Spec) Recall(old *Spec) {
	s.LearnFrom = slices.Clone(s.LearnFrom)
	for _, theirs := range old.LearnFrom {
		i := slices.IndexFunc(s.LearnFrom, func(mine Earlier) bool { return mine.Study == theirs.Study })
		switch {
		case i >= 0 && s.LearnFrom[i].Trials == nil:
			s.LearnFrom[i] = theirs
		case i < 0 && !IsName(theirs.Study):
			s.LearnFrom = append(s.LearnFrom, theirs)
		}
	}
}

// Relearn is Recall for a program that has read the earlier studies again, which may have other trials by now.
func (s *Spec) Relearn(old *Spec) {
	s.LearnFrom = slices.Clone(s.LearnFrom)
	for i := range s.LearnFrom {
		s.LearnFrom[i].Trials = nil
	}
	s.Recall(old)
}

// Costs returns the trials' values as costs: lower is better. own is the direction of the study
// that learns from them.
func (e *Earlier) Costs(own Direction) []float64 {
	direction := e.Direction
	if direction == "" {
		direction = own
	}
	costs := make([]float64, len(e.Trials))
	for i, t := range e.Trials {
		costs[i] = min(max(direction.Cost(t.Value), -math.MaxFloat64), math.MaxFloat64)
	}
	return costs
}

// Representative returns at most limit trials, in their order: the half with the least costs, a quarter that
// came last, and an even share of the others.
func Representative[T any](trials []T, limit int, cost func(T) float64) []T {
	if len(trials) <= limit {
		return trials
	}
	order := make([]int, len(trials))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cost(trials[a]), cost(trials[b])) })
	chosen := map[int]bool{}
	for _, i := range order[:limit/2] {
		chosen[i] = true
	}
	for i := len(trials) - 1; len(chosen) < limit/2+limit/4; i-- {
		chosen[i] = true
	}
	var rest []int
	for i := range trials {
		if !chosen[i] {
			rest = append(rest, i)
		}
	}
	for k, left := 0, limit-len(chosen); k < left; k++ {
		chosen[rest[k*len(rest)/left]] = true
	}
	var kept []T
	for i, t := range trials {
		if chosen[i] {
			kept = append(kept, t)
		}
	}
	return kept
}
