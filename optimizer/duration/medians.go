package duration

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// Medians are models for those who only ask for medians, as a search does at each suggestion: the width of intervals,
// which takes most of the time of Fit, is not judged. The last model is kept until the observations change. The zero
// value is ready, and safe for concurrent use; a nil one keeps nothing.
type Medians struct {
	mu   sync.Mutex
	of   *data
	seed uint64
	last *Model
}

// Of returns the model of a problem's observations with a known time; those that did not complete would have taken longer, and so do
// pending evaluations that have run for some time. It is a pure function of its arguments. Intervals of the model's estimates mean
// nothing. The error is as that of Fit.
func (m *Medians) Of(
	ctx context.Context, encoding *optimizer.Encoding, told []optimizer.Observation, pending []optimizer.Pending, seed uint64,
) (*Model, error) {
	var known []Observation
	quickest := math.Inf(1)
	for i := range told {
		if o := &told[i]; o.Seconds > 0 {
			known = append(known, Observation{Point: o.At(), Seconds: o.Seconds, Censored: o.Outcome != optimizer.OutcomeCompleted})
			quickest = min(quickest, o.Seconds)
		}
	}
	for i := range pending {
		// A time that every evaluation takes says nothing, and would only have the model fitted again.
		if p := &pending[i]; p.Seconds > quickest {
			known = append(known, Observation{Point: p.Point, Seconds: p.Seconds, Censored: true})
		}
	}
	return m.made(ctx, encoding, newData(encoding, some(known), shortest), seed)
}

// OfCosts is as Of, without pending evaluations, for what evaluations have cost in place of their time. Costs that are very small
// beside the largest one count alike.
func (m *Medians) OfCosts(ctx context.Context, encoding *optimizer.Encoding, told []optimizer.Observation, seed uint64) (*Model, error) {
	var known []Observation
	var largest float64
	for i := range told {
		if o := &told[i]; o.Cost > 0 {
			known = append(known, Observation{Point: o.At(), Seconds: o.Cost, Censored: o.Outcome != optimizer.OutcomeCompleted})
			largest = max(largest, o.Cost)
		}
	}
	return m.made(ctx, encoding, newData(encoding, some(known), largest*cheapest), seed)
}

// made returns the model of data, the last one if they are the same.
func (m *Medians) made(ctx context.Context, encoding *optimizer.Encoding, d *data, seed uint64) (*Model, error) {
	if m == nil {
		m = new(Medians)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != nil && m.last.encoding == encoding && m.seed == seed && m.of.same(d) {
		return m.last, nil
	}
	made, err := d.model(ctx, encoding, seed, func(*data, context.Context, *kernel.Kernel, gp.Config, *rand.Rand) (float64, error) {
		return 1, nil
	})
	if err == nil {
		m.of, m.seed, m.last = d, seed, made
	}
	return made, err
}

// same reports whether two lists of observations are the same.
func (d *data) same(other *data) bool {
	return slices.Equal(d.logs, other.logs) && slices.Equal(d.censored, other.censored) &&
		slices.Equal(d.x.RawMatrix().Data, other.x.RawMatrix().Data)
}
