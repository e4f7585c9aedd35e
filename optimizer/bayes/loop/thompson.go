package loop

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Drawn holds functions that were drawn from the posterior over some places, for Thompson
// sampling. Each function picks one point.
type Drawn struct {
	loop   *Loop
	places []Place
	values *mat.Dense // one column per function
	logP   []float64  // log probabilities that the places' evaluations complete
	prior  []float64  // the priors' contribution to the places' values
	used   int        // functions that have picked
}

// Draw draws count functions over the places. It returns nil if there are no places, or if
// the model does not allow it.
func (l *Loop) Draw(places []Place, count int) *Drawn {
	if len(places) == 0 {
		return nil
	}
	z := mat.NewDense(len(places), count, nil)
	z.Apply(func(int, int, float64) float64 { return l.Request.Rand.NormFloat64() }, z)
	x := Rows(places)
	values, err := l.Main.Model.Sample(x, z)
	if err != nil {
		return nil
	}
	return &Drawn{loop: l, places: places, values: values, logP: l.Chance.Log(x), prior: l.priorTerms(places)}
}

// Lowest returns the place of the minimum of the next function, among places that are not
// taken; ok is false if there is none. There MUST be a function left.
func (d *Drawn) Lowest() (best Spot, ok bool) {
	best.Value = math.Inf(-1)
	for i, p := range d.places {
		if d.loop.Request.Sampler.TakenAt(p.X) {
			continue
		}
		if v := d.loop.Chance.OfReward(-d.values.At(i, d.used), d.logP[i]) + d.prior[i]; v > best.Value {
			best = Spot{Place: p, Value: v}
		}
	}
	d.used++
	return best, !math.IsInf(best.Value, -1)
}
