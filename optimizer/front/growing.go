package front

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
	"github.com/fantasia-hpo/fantasia/study"
)

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
