package diagnosis

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/study"
)

// Noise compares the objective's noise with what its parameters do to it, in the
// objective's units.
type Noise struct {
	// SD is the model's standard deviation of evaluations of one point. Where it
	// depends on the value, it is that at the median observation.
	SD float64 `json:"sd"`
	// Signal is the standard deviation of the model's mean over the space, and
	// Share SD²/(SD² + Signal²): the noise's part of the variance of an evaluation
	// at a random point. Where enough points were evaluated repeatedly, SD is that
	// of the replicates here.
	Signal float64 `json:"signal"`
	Share  float64 `json:"share"`
	// AtMost is an upper bound of Share. Without replicates, noise cannot be told
	// from detail that the model did not learn: everything that it fails to predict
	// of left-out trials may be noise.
	AtMost float64 `json:"atMost"`
	// Replicates describes repeated evaluations; nil where no point was evaluated
	// twice.
	Replicates *Replicates `json:"replicates"`
	// Best is the trial with the best value, Recommended the one that the study
	// recommends (nil if its algorithm has no model, or recommends a Front), and Luck how far Best's
	// value is from the model's mean there.
	Best        int     `json:"best"`
	Recommended *int    `json:"recommended"`
	Front       bool    `json:"front,omitempty"`
	Luck        float64 `json:"luck"`
}

// Replicates are the points that were evaluated more than once.
type Replicates struct {
	Points      int `json:"points"`
	Evaluations int `json:"evaluations"`
	// SD is the standard deviation within a point, pooled over the points.
	SD float64 `json:"sd"`
}

// enough reports whether the replicates measure the noise. With fewer, its standard
// deviation is known only to about a factor of two.
func (r *Replicates) enough() bool { return r != nil && r.Evaluations-r.Points >= 4 }

// noise compares the noise with the signal. It fails where they overflow.
func (e *examination) noise() (*Noise, error) {
	m := e.used
	values, means := e.values(m.Data), m.GP.Mean(m.Data.X)
	scale := m.GP.Hyperparameters().Noise
	sds := make([]float64, len(means))
	best := 0
	outside := func(row int) int { // of a limit
		if e.problem.Observations[m.Data.Of[row]].Within() {
			return 0
		}
		return 1
	}
	for i, z := range means {
		_, sds[i] = m.Data.Moments(z, scale)
		if cmp.Or(cmp.Compare(outside(i), outside(best)), cmp.Compare(values[i], values[best])) < 0 {
			best = i
		}
	}
	slices.Sort(sds)
	n := &Noise{
		SD: sds[len(sds)/2], Signal: e.signal(), Replicates: e.replicates(),
		Best:        e.problem.Observations[m.Data.Of[best]].Trial,
		Recommended: e.recommended, Front: e.front,
	}
	sd := n.SD
	if n.Replicates.enough() {
		sd = n.Replicates.SD
	}
	// The square of the ratio, and not the ratio of squares, which overflow for values around 1e200.
	ratio := sd / math.Hypot(sd, n.Signal)
	n.Share = ratio * ratio
	n.AtMost = n.Share
	if !n.Replicates.enough() {
		n.AtMost = max(n.Share, min(1, 1-e.explained()))
	}
	expected, _ := m.Data.Moments(means[best], 0)
	n.Luck = math.Abs(expected - e.problem.Observations[m.Data.Of[best]].Values.First())
	if !study.Finite(n.SD, n.Signal, n.Share, n.AtMost, n.Luck) {
		return nil, errTooLarge
	}
	return n, nil
}

// errTooLarge says that a figure overflows.
var errTooLarge = errors.New("the values are too large")

// signal returns the standard deviation of the model's mean over the space.
func (e *examination) signal() float64 {
	means := e.used.GP.Mean(e.places)
	for i, z := range means {
		means[i], _ = e.used.Data.Moments(z, 0)
	}
	return stat.StdDev(means, nil)
}

// repeated returns the values of each point that was evaluated at least the given
// number of times, in the order of their first evaluation; values holds those of the
// rows.
func (e *examination) repeated(times int, values []float64) [][]float64 {
	var groups [][]float64
	places := map[string]int{}
	for row := range e.used.Data.Y {
		key := e.problem.Space.Key(e.problem.Observations[e.used.Data.Of[row]].Point)
		i, known := places[key]
		if !known {
			i = len(groups)
			places[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], values[row])
	}
	return slices.DeleteFunc(groups, func(g []float64) bool { return len(g) < times })
}

// replicates summarises repeated evaluations; it returns nil if there are none.
func (e *examination) replicates() *Replicates {
	groups := e.repeated(2, e.values(e.used.Data))
	if len(groups) == 0 {
		return nil
	}
	r := &Replicates{Points: len(groups)}
	var largest float64
	sds := make([]float64, len(groups))
	for i, g := range groups {
		r.Evaluations += len(g)
		sds[i] = stat.StdDev(g, nil)
		largest = max(largest, sds[i])
	}
	if largest == 0 || !study.Finite(largest) {
		return r
	}
	// Pooled by degrees of freedom: a point of two evaluations has one, and its own sd is worth little. In
	// units of the largest, since squares may overflow.
	var squares float64
	for i, g := range groups {
		squares += sds[i] / largest * (sds[i] / largest) * float64(len(g)-1)
	}
	r.SD = largest * math.Sqrt(squares/float64(r.Evaluations-r.Points))
	return r
}
