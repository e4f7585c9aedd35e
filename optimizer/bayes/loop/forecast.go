package loop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// # What more trials are expected to gain
//
// What is expected is what a batch of as many points is expected to improve, by functions that are drawn from the posterior. The
// points are those that improve half of the functions most, one after another, and the other half says what they are worth.
//
// The model is too sure of itself: where it has settled in a local optimum it expects nothing, and the search may still find
// another one. So the most that is to be expected also has what the search has gained lately, since one that has just found something
// better often finds more. The factor was chosen on some tasks and checked on others: docs/tune/benchmarks.md has the figures.
const (
	// The most is so many times the gain of which one in twenty functions has more, and as much as the last third of the trials gained.
	forecastMost = 6

	forecastPlaces    = 600
	forecastFunctions = 128
	forecastQuantile  = 0.95
)

// Forecast returns what more trials are expected to gain, by a model of the data. Evaluations that are exact count by their
// values, others by their posterior means. There MUST be a completed one. It is nil if the space has hardly any other point, or if
// the gain is too large for a float64. The error wraps linalg.ErrNotPositiveDefinite.
func Forecast(m *surrogate.Model, p *optimizer.Problem, exact bool, rng *rand.Rand) (*optimizer.Gain, error) {
	d, encoding := m.Data, optimizer.NewEncoding(p.Space)
	outcomes := d.Y
	if !exact {
		outcomes = m.GP.Mean(d.X)
	}
	rows := completedRows(d, p)
	slices.SortFunc(rows, func(a, b int) int { return d.Of[a] - d.Of[b] })
	lowest := func(rows []int) float64 {
		least := math.Inf(1)
		for _, row := range rows {
			least = min(least, outcomes[row])
		}
		return d.Transform().Inverse(least)
	}
	best, before := lowest(rows), lowest(rows[:len(rows)-len(rows)/3])
	places := unknown(d, p, encoding, rng)
	if len(places) < optimizer.GainTrials {
		return nil, nil
	}
	gains, err := drawGains(m, places, best, rng)
	if err != nil {
		return nil, fmt.Errorf("forecast the gain of more trials: %w", err)
	}
	batch := batchGains(gains)
	slices.Sort(batch)
	g := &optimizer.Gain{
		Trials:   optimizer.GainTrials,
		Expected: stat.Mean(batch, nil),
		Most:     forecastMost*stat.Quantile(forecastQuantile, stat.Empirical, batch, nil) + before - best,
	}
	if Finite(g.Expected) == nil || Finite(g.Most) == nil {
		return nil, nil
	}
	g.Most = max(g.Most, g.Expected)
	g.Price(p.Observations)
	return g, nil
}

// completedRows returns the rows of the data whose evaluations completed.
func completedRows(d *surrogate.Data, p *optimizer.Problem) (rows []int) {
	for row, i := range d.Of {
		if p.Observations[i].Within() {
			rows = append(rows, row)
		}
	}
	return rows
}

// unknown returns places that were not evaluated: half spread over the space and half around the best ones.
func unknown(d *surrogate.Data, p *optimizer.Problem, encoding *optimizer.Encoding, rng *rand.Rand) []Place {
	r := &optimizer.Request{Problem: p, Rand: rng, Encoding: encoding}
	seen := map[string]bool{}
	for i := range p.Observations {
		seen[optimizer.KeyOf(encoding.Encode(p.Observations[i].At()))] = true
	}
	taken := func(x []float64) bool {
		key := optimizer.KeyOf(x)
		was := seen[key]
		seen[key] = true
		return was
	}
	places := Gather(nil, r, forecastPlaces/2, SpreadOut(encoding.Dim(), rng), taken)
	return Gather(places, r, forecastPlaces, around(r, d, Lowest(d.Y, goodPoints)), taken)
}

// drawGains draws functions from the posterior, and returns by how much each place improves on the best outcome in each of them:
// a row a place.
func drawGains(m *surrogate.Model, places []Place, best float64, rng *rand.Rand) (*mat.Dense, error) {
	z := mat.NewDense(len(places), forecastFunctions, nil)
	z.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, z)
	gains, err := m.GP.Sample(Rows(places), z)
	if err != nil {
		return nil, err
	}
	transform := m.Data.Transform()
	gains.Apply(func(_, _ int, v float64) float64 { return max(0, best-transform.Inverse(v)) }, gains)
	return gains, nil
}

// batchGains chooses a batch by the first half of the functions, each point so that it adds most to their mean gain, and returns
// what it gains in each of the others.
func batchGains(gains *mat.Dense) []float64 {
	places, functions := gains.Dims()
	half := functions / 2
	chosen, worth := make([]float64, half), make([]float64, functions-half)
	for range optimizer.GainTrials {
		next, most := 0, math.Inf(-1)
		for i := range places {
			var sum float64
			for f, v := range gains.RawRowView(i)[:half] {
				sum += max(chosen[f], v)
			}
			if sum > most {
				next, most = i, sum
			}
		}
		row := gains.RawRowView(next)
		for f := range chosen {
			chosen[f] = max(chosen[f], row[f])
		}
		for f := range worth {
			worth[f] = max(worth[f], row[half+f])
		}
	}
	return worth
}
