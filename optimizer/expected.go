package optimizer

import (
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
)

// MaxRecommended is how many trials a recommended front has at most.
const MaxRecommended = 64

// Expected is a completed trial with what is expected of its point: the posterior mean and
// standard deviation of each objective, in its units. Without a model these are the values and 0.
type Expected struct {
	Trial int       `json:"trial"`
	Means []float64 `json:"means"`
	SDs   []float64 `json:"sds"`
	// Knee marks the knee of a front. At most one trial has it.
	Knee bool `json:"knee,omitempty"`
}

// RecommendFront returns the recommendation for several objectives, given what is expected of some
// observations: those that no other one dominates by its means, the best in the first objective
// first. Its trial is the knee of this front, or the first one if there is no knee. Of equal means
// the first observation counts. If more than MaxRecommended are left, it has an even choice of them
// along the first objective, always with the knee. It is nil if there are no observations.
func (p *Problem) RecommendFront(observations []int, of []Expected) *Recommendation {
	if len(of) == 0 {
		return nil
	}
	means := make([]study.Values, len(of))
	for i, e := range of {
		means[i] = e.Means
	}
	on, knee := front.Ordered(p.Objectives, means)
	on = slices.CompactFunc(on, func(a, b int) bool { return slices.Equal(means[a], means[b]) })
	at := max(0, slices.Index(on, knee))
	e := of[on[at]]
	r := &Recommendation{Trial: e.Trial, Mean: e.Means[0], SD: e.SDs[0], Point: p.Observations[observations[on[at]]].At()}
	for _, i := range evenly(len(on), at) {
		e := of[on[i]]
		e.Knee = on[i] == knee
		r.Front = append(r.Front, e)
	}
	return r
}

// evenly returns at most MaxRecommended of n numbers, ascending, and always the one to keep.
func evenly(n, keep int) []int {
	var chosen []int
	for i := range min(n, MaxRecommended) {
		chosen = append(chosen, int(math.Round(float64(i*(n-1))/float64(max(1, min(n, MaxRecommended)-1)))))
	}
	if i, found := slices.BinarySearch(chosen, keep); !found {
		chosen[min(i, len(chosen)-2)] = keep
	}
	return chosen
}

// bestFront is Best for several objectives: the front of the values that were seen.
func (p *Problem) bestFront() *Recommendation {
	var observations []int
	var of []Expected
	for i := range p.Observations {
		if o := &p.Observations[i]; o.Within() {
			observations = append(observations, i)
			of = append(of, Expected{Trial: o.Trial, Means: o.Values, SDs: make([]float64, len(o.Values))})
		}
	}
	return p.RecommendFront(observations, of)
}
