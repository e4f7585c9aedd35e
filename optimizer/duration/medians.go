package duration

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

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
	// read is what was read last of earlier studies, which are the same in all requests.
	read struct {
		*earlier
		from     []optimizer.Earlier
		encoding *optimizer.Encoding
		seed     uint64
		costs    bool
	}
}

// Of returns the model of a problem's observations with a known time; those that did not complete would have taken longer, and so do
// pending evaluations that have run for some time. Earlier studies count as in Fit. It is a pure function of its arguments. Intervals of
// the model's estimates mean nothing. The error is as that of Fit.
func (m *Medians) Of(ctx context.Context, encoding *optimizer.Encoding, p *optimizer.Problem) (*Model, error) {
	told, pending := p.Observations, p.Pending
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
	return m.made(ctx, encoding, newData(encoding, some(known), shortest), p, false)
}

// OfCosts is as Of, without pending evaluations, for what evaluations have cost in place of their time. Costs that are very small
// beside the largest one count alike.
func (m *Medians) OfCosts(ctx context.Context, encoding *optimizer.Encoding, p *optimizer.Problem) (*Model, error) {
	told := p.Observations
	var known []Observation
	var largest float64
	for i := range told {
		if o := &told[i]; o.Cost > 0 {
			known = append(known, Observation{Point: o.At(), Seconds: o.Cost, Censored: o.Outcome != optimizer.OutcomeCompleted})
			largest = max(largest, o.Cost)
		}
	}
	return m.made(ctx, encoding, newData(encoding, some(known), largest*cheapest), p, true)
}

// Longer returns by how much the logarithm of the time at the rows of x is above that of other places, by the problem's earlier studies
// alone: its cost, if it has one. It is nil if they do not say so, or ctx has ended.
func (m *Medians) Longer(ctx context.Context, encoding *optimizer.Encoding, p *optimizer.Problem, x *mat.Dense) []float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.before(ctx, encoding, p, p.Cost != nil)
	if err != nil || e == nil {
		return nil
	}
	return e.longer(x)
}

// before is readEarlier, which is not repeated. m is locked.
func (m *Medians) before(ctx context.Context, encoding *optimizer.Encoding, p *optimizer.Problem, costs bool) (*earlier, error) {
	same := len(m.read.from) == len(p.Earlier) && (len(p.Earlier) == 0 || &m.read.from[0] == &p.Earlier[0]) // nobody changes them
	if r := &m.read; same && r.encoding == encoding && r.costs == costs && r.seed == p.Seed {
		return r.earlier, nil
	}
	e, err := readEarlier(ctx, encoding, p, costs)
	if err == nil {
		m.read.earlier, m.read.from, m.read.encoding, m.read.costs, m.read.seed = e, p.Earlier, encoding, costs, p.Seed
	}
	return e, err
}

// made returns the model of data, the last one if they are the same.
func (m *Medians) made(ctx context.Context, encoding *optimizer.Encoding, d *data, p *optimizer.Problem, costs bool) (*Model, error) {
	if m == nil {
		m = new(Medians)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.ended() < fewOwn {
		var err error
		if d.earlier, err = m.before(ctx, encoding, p, costs); err != nil {
			return nil, fmt.Errorf("model the time of evaluations: %w", err)
		}
	}
	if m.last != nil && m.last.encoding == encoding && m.seed == p.Seed && m.of.same(d) {
		return m.last, nil
	}
	made, err := d.model(ctx, encoding, p.Seed, func(*data, context.Context, *kernel.Kernel, gp.Config, *rand.Rand) (float64, error) {
		return 1, nil
	})
	if err == nil {
		m.of, m.seed, m.last = d, p.Seed, made
	}
	return made, err
}

// same reports whether two lists of observations are the same.
func (d *data) same(other *data) bool {
	return d.earlier == other.earlier && slices.Equal(d.logs, other.logs) && slices.Equal(d.censored, other.censored) &&
		slices.Equal(d.x.RawMatrix().Data, other.x.RawMatrix().Data)
}
