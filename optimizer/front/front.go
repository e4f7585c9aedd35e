// Package front says what a study of several objectives has found: the trials that no
// other one dominates, how much of the space of values they dominate, and which of them is
// a compromise. Values that are nil do not count. All functions are pure.
package front

import (
	"cmp"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
	"github.com/fantasia-hpo/fantasia/study"
)

// Of returns the indices of the values that no others dominate, in ascending order. Equal
// values are all part of the front. Values that do not have one number for each objective
// are skipped.
func Of(objectives []study.Objective, all []study.Values) []int {
	var points [][]float64
	var at []int
	for i, v := range all {
		if len(v) == len(objectives) {
			points, at = append(points, costs(objectives, v)), append(at, i)
		}
	}
	front := pareto.Front(points)
	for k, i := range front {
		front[k] = at[i]
	}
	return front
}

// costs returns values such that lower ones are better in every objective.
func costs(objectives []study.Objective, v study.Values) []float64 {
	list := make([]float64, len(v))
	for k := range v {
		list[k] = objectives[k].Direction.Cost(v[k])
	}
	return list
}

// References returns the references of several objectives, from which their hypervolume is
// measured. It is nil if one has none, or if there are more than study.MaxVolume.
func References(objectives []study.Objective) study.Values {
	if len(objectives) < 2 || len(objectives) > study.MaxVolume {
		return nil
	}
	references := make(study.Values, len(objectives))
	for k := range objectives {
		if objectives[k].Reference == nil {
			return nil
		}
		references[k] = *objectives[k].Reference
	}
	return references
}

// beyondNadir is how far the reference lies behind the front where none is given, as a
// share of the front's extent.
const beyondNadir = 0.1

// Beyond returns for each objective its reference or, if it has none, a value a tenth of
// the front's extent worse than the worst on the front; nil if the front is empty. It is for
// comparing the parts of one study: another study has another front.
func Beyond(objectives []study.Objective, all []study.Values) study.Values {
	front := Of(objectives, all)
	if len(front) == 0 {
		return nil
	}
	references := make(study.Values, len(objectives))
	for k := range objectives {
		if r := objectives[k].Reference; r != nil {
			references[k] = *r
			continue
		}
		best, worst := extent(objectives, all, front, k)
		width := worst - best
		if width == 0 {
			width = 1
		}
		references[k] = objectives[k].Direction.Cost(worst + beyondNadir*width) // its own inverse
	}
	return references
}

// extent returns the lowest and the highest cost of an objective on a front.
func extent(objectives []study.Objective, all []study.Values, front []int, k int) (best, worst float64) {
	var list []float64
	for _, i := range front {
		list = append(list, objectives[k].Direction.Cost(all[i][k]))
	}
	return slices.Min(list), slices.Max(list)
}

// Hypervolume returns the volume of what the values dominate up to the reference, in the
// product of the metrics' units. Values that are not better than the reference in every
// objective add nothing.
func Hypervolume(objectives []study.Objective, all []study.Values, reference study.Values) float64 {
	var points [][]float64
	for _, i := range Of(objectives, all) {
		points = append(points, costs(objectives, all[i]))
	}
	return pareto.Hypervolume(points, costs(objectives, reference))
}

// Volumes returns the hypervolume after each of the values.
func Volumes(objectives []study.Objective, all []study.Values, reference study.Values) []float64 {
	g, volumes := NewGrowing(objectives, reference), make([]float64, len(all))
	for i, v := range all {
		g.Add(v)
		volumes[i] = g.volume
	}
	return volumes
}

// Ordered returns the indices of the values on the front, the best in the first objective first, and
// the knee, as Knee does.
func Ordered(objectives []study.Objective, all []study.Values) (on []int, knee int) {
	on, first := Of(objectives, all), objectives[0].Direction
	knee = kneeOf(objectives, all, on)
	slices.SortStableFunc(on, func(a, b int) int { return cmp.Compare(first.Cost(all[a][0]), first.Cost(all[b][0])) })
	return on, knee
}

// Knee returns the index of the values on the front from which a little more of one objective
// costs most of the others: those furthest from the plane through the worst values of each
// objective, after each objective was scaled to its extent on the front (Das 1999, On
// Characterizing the "Knee" of the Pareto Curve). It is -1 if the front has no such bulge, as
// with less than three trials.
func Knee(objectives []study.Objective, all []study.Values) int {
	return kneeOf(objectives, all, Of(objectives, all))
}

// kneeOf is Knee for values whose front is known.
func kneeOf(objectives []study.Objective, all []study.Values, front []int) int {
	knee, least := -1, 1-1e-9 // the plane, where the scaled costs add up to 1
	for _, i := range front {
		sum := 0.0
		for k := range objectives {
			best, worst := extent(objectives, all, front, k)
			if worst > best {
				sum += (objectives[k].Direction.Cost(all[i][k]) - best) / (worst - best)
			}
		}
		if sum < least && len(front) > 2 {
			knee, least = i, sum
		}
	}
	return knee
}

// Growing is the front of values that are found one after another. Adding one takes steps in
// proportion to the size of the front, not to the number of values before, unless it enlarges
// the hypervolume of more than two objectives. Not safe for concurrent use.
type Growing struct {
	objectives []study.Objective
	reference  []float64   // as costs; nil if the hypervolume is not measured
	points     [][]float64 // the costs of the front
	volume     float64
}

// NewGrowing returns an empty front whose hypervolume is measured from a reference; nil means
// that it is not measured.
func NewGrowing(objectives []study.Objective, reference study.Values) *Growing {
	g := &Growing{objectives: objectives}
	if reference != nil {
		g.reference = costs(objectives, reference)
	}
	return g
}

// Add adds values. It skips values that do not have one number for each objective.
func (g *Growing) Add(v study.Values) {
	if len(v) != len(g.objectives) {
		return
	}
	p := costs(g.objectives, v)
	if slices.ContainsFunc(g.points, func(q []float64) bool { return pareto.Dominates(q, p) }) {
		return
	}
	if g.reference != nil {
		g.volume += pareto.Gain(g.points, p, g.reference)
	}
	g.points = append(slices.DeleteFunc(g.points, func(q []float64) bool { return pareto.Dominates(p, q) }), p)
}

// Size returns how many values are on the front, counting equal ones each.
func (g *Growing) Size() int { return len(g.points) }

// Hypervolume returns what the front dominates; false if it is not measured.
func (g *Growing) Hypervolume() (volume float64, measured bool) { return g.volume, g.reference != nil }
