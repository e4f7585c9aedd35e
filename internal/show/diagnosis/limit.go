package diagnosis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/study"
)

// LimitEffect is what a limit does to a study, by the posterior means of the models: how much of
// the space it rules out, and what the study would have found without it. All other limits stay.
type LimitEffect struct {
	// Limit is the limit as people write it, such as "memory_mb <= 512".
	Limit string `json:"limit"`
	// Outside is the share of the search space that is expected to be outside of the limit, and
	// Alone the share that is outside of this limit and within all others.
	Outside float64 `json:"outside"`
	Alone   float64 `json:"alone"`
	// Front is how many points the front within all limits has. Bound is at how many of them the
	// limit is the active one: without it, a trial would dominate them. With one objective, the
	// front is the best trial.
	Front int `json:"front"`
	Bound int `json:"bound"`
	// Hypervolume is that of the front within all limits, and WithoutHypervolume that of the
	// front without this one, up to the same reference; nil with one objective, or with more
	// than study.MaxVolume.
	Hypervolume        *float64 `json:"hypervolume"`
	WithoutHypervolume *float64 `json:"withoutHypervolume"`
	// Best has the best value of each objective, in the order of the study file.
	Best []BestWithin `json:"best"`
}

// BestWithin is the best expected value of an objective; nil if no trial is within the limits.
type BestWithin struct {
	Metric string `json:"metric"`
	// Within is the value within all limits, Without that without one of them.
	Within  *float64 `json:"within"`
	Without *float64 `json:"without"`
}

// evenOdds is the least probability, by the models, with which a trial that was seen within
// limits counts as within them.
const evenOdds = 0.5

// within returns the rows of the outlook that were seen within all limits but one, and that the
// models of these limits find more likely within them than not: all that were seen so if no row is
// likely. −1 leaves out no limit.
func (e *examination) within(but int) (likely []int) {
	var seen []int
	for row, i := range e.outlook.Of {
		excess := slices.Clone(e.problem.Observations[i].Excess)
		if but >= 0 {
			excess = slices.Delete(excess, but, but+1)
		}
		if !study.Within(excess) {
			continue
		}
		seen = append(seen, row)
		if e.outlook.Within(row, but) >= evenOdds {
			likely = append(likely, row)
		}
	}
	if likely == nil {
		return seen
	}
	return likely
}

// limits says what each limit does. The error says why that is not known.
func (e *examination) limits() ([]LimitEffect, error) {
	if err := e.weak(); err != nil {
		return nil, err
	}
	means, all := e.means(), e.within(-1)
	within := e.frontOf(means, all)
	outside := e.outside()
	var list []LimitEffect
	for k, limit := range e.problem.Limits {
		// What is within all limits is within all but one. The models need not see it so, since e.within falls
		// back to what was seen, and without these rows a limit could seem to help.
		some := slices.Compact(slices.Sorted(slices.Values(slices.Concat(all, e.within(k)))))
		without := e.frontOf(means, some)
		l := LimitEffect{Limit: limit.String(), Front: len(within), Best: e.best(means, within, without)}
		l.Outside, l.Alone = shares(outside, k)
		for _, row := range within {
			if !slices.ContainsFunc(without, func(other int) bool { return slices.Equal(means[other], means[row]) }) {
				l.Bound++
			}
		}
		l.Hypervolume, l.WithoutHypervolume = e.volumes(means, within, without)
		list = append(list, l)
	}
	return list, nil
}

// outside returns for each limit which of the surveyed places are expected to be outside of it.
func (e *examination) outside() [][]bool {
	all := make([][]bool, len(e.outlook.Limits))
	for k, x := range e.outlook.Limits {
		for _, z := range x.Model.GP.Mean(e.places) {
			excess, _ := x.Model.Data.Moments(z, 0)
			all[k] = append(all[k], excess > 0)
		}
	}
	return all
}

// shares returns the share of the places that are outside of a limit, and the share that are within
// all others.
func shares(outside [][]bool, limit int) (all, alone float64) {
	for place, out := range outside[limit] {
		if !out {
			continue
		}
		all++
		if !slices.ContainsFunc(slices.Delete(slices.Clone(outside), limit, limit+1), func(other []bool) bool { return other[place] }) {
			alone++
		}
	}
	n := float64(len(outside[limit]))
	return all / n, alone / n
}

// best returns the best value of each objective on two fronts, which hold it.
func (e *examination) best(means []study.Values, within, without []int) []BestWithin {
	var list []BestWithin
	for k, o := range e.objectives() {
		lowest := func(rows []int) *float64 {
			if len(rows) == 0 {
				return nil
			}
			row := slices.MinFunc(rows, func(a, b int) int { return cmp.Compare(o.Direction.Cost(means[a][k]), o.Direction.Cost(means[b][k])) })
			return &means[row][k]
		}
		list = append(list, BestWithin{o.Metric, lowest(within), lowest(without)})
	}
	return list
}

// beyondNadir is how far beyond the worst values of two fronts their hypervolumes reach where the
// study has no reference, as a share of the fronts' extent.
const beyondNadir = 0.1

// volumes returns the hypervolumes of two fronts.
func (e *examination) volumes(means []study.Values, within, without []int) (with, more *float64) {
	objectives := e.problem.Objectives
	rows := slices.Concat(within, without)
	if len(objectives) < 2 || len(objectives) > study.MaxVolume || len(rows) == 0 {
		return nil, nil
	}
	reference := make(study.Values, len(objectives))
	for k, o := range objectives {
		low, high := math.Inf(1), math.Inf(-1)
		for _, row := range rows {
			c := o.Direction.Cost(means[row][k])
			low, high = min(low, c), max(high, c)
		}
		reference[k] = o.Direction.Cost(high + beyondNadir*cmp.Or(high-low, 1)) // its own inverse
		if o.Reference != nil {
			reference[k] = *o.Reference
		}
	}
	volume := func(rows []int) *float64 {
		v := front.Hypervolume(objectives, indices.Pick(means, rows), reference)
		return &v
	}
	with, more = volume(within), volume(without)
	if !study.Finite(*with, *more) {
		return nil, nil
	}
	return with, more
}

// lost returns the share of the hypervolume without the limit that the limit costs; 0 if it is not
// known.
func (l *LimitEffect) lost() float64 {
	if l.Hypervolume == nil || *l.WithoutHypervolume == 0 {
		return 0
	}
	return 1 - *l.Hypervolume / *l.WithoutHypervolume
}

// judgeLimits says which limits bind, those that cost most first.
func judgeLimits(d *Diagnosis) (statement, evidence string) {
	limits := slices.Clone(d.Limits)
	slices.SortStableFunc(limits, func(a, b LimitEffect) int {
		return cmp.Or(cmp.Compare(b.lost(), a.lost()), cmp.Compare(b.Bound, a.Bound), cmp.Compare(b.Alone, a.Alone))
	})
	var sentences, free, figures []string
	for i := range limits {
		l := &limits[i]
		switch {
		case l.Front == 0 && l.Best[0].Without != nil:
			sentences = append(sentences, fmt.Sprintf("No trial is within all limits, but some would be without %s.", l.Limit))
		case l.Bound > 0 || l.lost() > 0:
			sentences = append(sentences, l.binds())
		case l.Front > 0:
			free = append(free, l.Limit)
		}
		figures = append(figures, fmt.Sprintf("%s rules out %s of the space, %s alone", l.Limit, percent(l.Outside), percent(l.Alone)))
	}
	if len(free) > 0 {
		sentences = append(sentences, fmt.Sprintf("Costs nothing so far: %s.", strings.Join(free, "; ")))
	}
	if sentences == nil {
		sentences = append(sentences, "No trial is within all limits, and none would be without one of them.")
	}
	return strings.Join(sentences, " "), strings.Join(figures, "; ") + "; " + trials(d)
}

// binds says what a limit costs.
func (l *LimitEffect) binds() string {
	text := l.Limit + " binds"
	if l.Hypervolume != nil || len(l.Best) > 1 {
		text += fmt.Sprintf(" at %d of the front's %d points", l.Bound, l.Front)
	}
	var gains []string
	if l.lost() > 0 {
		gains = append(gains, fmt.Sprintf("it costs %s of the hypervolume", percent(l.lost())))
	}
	for _, b := range l.Best {
		if *b.Within != *b.Without {
			gains = append(gains, fmt.Sprintf("without it the best %s would be %s instead of %s", b.Metric, short(*b.Without), short(*b.Within)))
		}
	}
	if gains != nil {
		text += ": " + strings.Join(gains, ", ")
	}
	return text + "."
}
