package duration

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/study"
)

// mostSpread bounds the standard deviation of an estimate, in those of the evaluations that are known: of others the model knows
// nothing.
const mostSpread = 2

// Estimate is what a model expects of an evaluation's time in seconds: its logarithm is normal with mean Mu and
// standard deviation SD.
type Estimate struct{ Mu, SD float64 }

// At returns what the model expects at points of the space.
func (m *Model) At(points ...study.Point) []Estimate {
	if len(points) == 0 {
		return nil
	}
	x := mat.NewDense(len(points), max(1, m.encoding.Dim()), nil)
	for i, p := range points {
		copy(x.RawRowView(i), m.encoding.Encode(p))
	}
	list := make([]Estimate, len(points))
	mean, variance := m.gp.Posterior(x)
	noise := m.gp.Hyperparameters().Noise
	for i := range list {
		sd := min(m.width*math.Sqrt(variance[i]+noise), mostSpread)
		list[i] = Estimate{m.scale.Mean + m.scale.SD*mean[i], m.scale.SD * sd}
	}
	return list
}

// Log returns the logarithm of the median time at a place of the unit cube, less the mean logarithm of the evaluations
// that are known. It adds its gradient times weight to dst unless dst is nil.
func (m *Model) Log(dst, x []float64, weight float64) float64 {
	at := mat.NewDense(1, max(1, len(x)), nil)
	copy(at.RawRowView(0), x)
	if dst != nil {
		for i, slope := range m.gp.MeanSlopes(at).RawRowView(0)[:len(dst)] {
			dst[i] += weight * m.scale.SD * slope
		}
	}
	return m.scale.SD * m.gp.Mean(at)[0]
}

// Logs returns the Log of each place. It takes less time than to ask for one after another.
func (m *Model) Logs(places [][]float64) []float64 {
	if len(places) == 0 {
		return nil
	}
	at := mat.NewDense(len(places), max(1, len(places[0])), nil)
	for i, x := range places {
		copy(at.RawRowView(i), x)
	}
	logs := m.gp.Mean(at)
	floats.Scale(m.scale.SD, logs)
	return logs
}

// Median returns the time within which half of such evaluations end.
func (e Estimate) Median() float64 { return math.Exp(e.Mu) }

// Mean returns the mean time.
func (e Estimate) Mean() float64 { return math.Exp(e.Mu + e.SD*e.SD/2) }

// Quantile returns the time within which the share p of such evaluations end, of those that have run for ran seconds
// without an end. It is the whole time, not what is left of it.
func (e Estimate) Quantile(p, ran float64) float64 {
	// Of those beyond ran, 1−p are longer.
	tail := (1 - p) * survival((math.Log(ran)-e.Mu)/e.SD)
	if tail < 1e-300 { // it has run for so long that the model knows nothing of it
		return ran
	}
	return max(ran, math.Exp(e.Mu-e.SD*normal.Quantile(tail)))
}
