package curves

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// finalModel returns the model of some curves in two dimensions, a few of which are of trials that run, and places for more.
func finalModel(t *testing.T) (*Model, *mat.Dense) {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, 0))
	c := walks(30, 40, rng)
	for i := range c {
		c[i].Runs = i%7 == 0
	}
	m, err := New(t.Context(), kernel.Continuous(2), c, 40, nil, true, rng)
	if err != nil {
		t.Fatal(err)
	}
	x := mat.NewDense(6, 2, nil)
	for i := range 6 {
		x.SetRow(i, []float64{rng.Float64(), rng.Float64()})
	}
	return m, x
}

// The surrogate says of configurations what the outlook says of new trials, but for the deviation that each has for itself.
func TestFinalIsTheOutlookWithoutDeviations(t *testing.T) {
	m, x := finalModel(t)
	var list [][]float64
	for i := range 6 {
		list = append(list, x.RawRowView(i))
	}
	f, own := m.Final(), deviation(m)
	mean, variance := f.Fantasies().Posterior(x)
	cached, cachedVariance := f.Fantasies().Candidates(x).Posterior()
	for i, e := range m.Outlook().Fresh(list) {
		off := max(math.Abs(e.Mean-mean[i]), math.Abs(e.SD*e.SD-own-variance[i]))
		if off > 1e-9 || mean[i] != cached[i] || variance[i] != cachedVariance[i] {
			t.Errorf("place %d: %v ± %v, want %+v", i, mean[i], math.Sqrt(variance[i]), e)
		}
	}
	if alone, wide := f.Posterior(x); !alike(alone, mean) || wide[0] < variance[0] {
		t.Errorf("without the trials that run %v and %v, with them %v and %v", alone, wide, mean, variance)
	}
	if f.Len() != m.Points() || len(f.Lengthscales()) != 2 || !(f.Noise() > 0) {
		t.Errorf("%d points, lengthscales %v, noise %v", f.Len(), f.Lengthscales(), f.Noise())
	}
}

// deviation is the variance of how a trial deviates from its configuration, a₃.
func deviation(m *Model) float64 {
	return math.Exp(m.Hyperparameters().Kernel[len(m.Hyperparameters().Kernel)-2])
}

func alike(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(v, w float64) bool { return math.Abs(v-w) < 1e-9 })
}

// A point that is believed is a trial of its own: means stay, and what its configuration is worth remains unsure.
func TestBelievedPointsAreTrialsOfTheirOwn(t *testing.T) {
	m, x := finalModel(t)
	f := m.Final().Fantasies()
	mean, before := f.Posterior(x)
	f.Believe(x.Slice(0, 2, 0, 2))
	after, variance := f.Posterior(x)
	for i := range mean {
		if math.Abs(after[i]-mean[i]) > 1e-9 || variance[i] > before[i]+1e-12 {
			t.Errorf("place %d: %v ± %v, before %v ± %v", i, after[i], variance[i], mean[i], before[i])
		}
	}
	own := deviation(m) + m.Hyperparameters().Noise // a trial's result is that far from what its configuration is worth
	for i, want := range []float64{before[0] * own / (before[0] + own), before[1] * own / (before[1] + own)} {
		if variance[i] > want+1e-9 {
			t.Errorf("where a trial is believed the variance is %v, want at most %v of %v", variance[i], want, before[i])
		}
	}
	if !(variance[0] > 1e-4*before[0]) {
		t.Errorf("one trial says all of its configuration: %v", variance[0])
	}
}

func TestFinalGradientsAgainstDifferences(t *testing.T) {
	m, x := finalModel(t)
	f := m.Final().Fantasies()
	f.Believe(mat.NewDense(1, 2, []float64{0.4, 0.6}))
	g := f.Gradients(x)
	if rows, columns := g.DMean.Dims(); rows != 6 || columns != 2 {
		t.Fatalf("%d × %d derivatives", rows, columns)
	}
	const step = 1e-5
	for i := range 6 {
		for k := range 2 {
			at := func(by float64) (float64, float64) {
				moved := mat.DenseCopyOf(x.Slice(i, i+1, 0, 2))
				moved.Set(0, k, moved.At(0, k)+by)
				mean, variance := f.Posterior(moved)
				return mean[0], variance[0]
			}
			upMean, upVariance := at(step)
			downMean, downVariance := at(-step)
			dMean, dVariance := (upMean-downMean)/(2*step), (upVariance-downVariance)/(2*step)
			if math.Abs(g.DMean.At(i, k)-dMean) > 1e-4*(1+math.Abs(dMean)) ||
				math.Abs(g.DVariance.At(i, k)-dVariance) > 1e-4*(1+math.Abs(dVariance)) {
				t.Errorf("place %d by %d: %v and %v, want %v and %v", i, k, g.DMean.At(i, k), g.DVariance.At(i, k), dMean, dVariance)
			}
		}
	}
}

// The moments are the cost's at the mean, and the distance to one that is a standard deviation away.
func TestMomentsAreCosts(t *testing.T) {
	m, _ := finalModel(t)
	best := m.Cost(m.Best())
	if mean, sd := m.Moments(m.Best(), 1e-12); math.Abs(mean-best) > 1e-9 || sd > 1e-5 {
		t.Errorf("%v ± %v, want %v", mean, sd, best)
	}
	if mean, sd := m.Moments(-1, 0.25); math.Abs(sd-(m.Cost(-0.5)-m.Cost(-1.5))/2) > 1e-12 || mean != m.Cost(-1) {
		t.Errorf("%v ± %v", mean, sd)
	}
}

func TestSelectBoundsCurves(t *testing.T) {
	list := make([]Curve, 2*MostCurves)
	for i := range list {
		list[i].Reports = []Report{{1, float64((7 * i) % len(list))}, {2, math.NaN()}}
	}
	open := func(i int) bool { return i < 10 }
	kept := Select(list, open)
	if len(kept) != MostCurves || !slices.IsSorted(kept) || kept[9] != 9 {
		t.Fatalf("%d curves are kept: %v", len(kept), kept)
	}
	good, late := 0, 0
	for _, i := range kept[10:] {
		switch {
		case Least(list[i].Reports) < MostCurves/2+5: // ten of them are open
			good++
		case i > MostCurves:
			late++
		}
	}
	if good < MostCurves/2-5 || good+late != MostCurves-10 {
		t.Errorf("%d good ones and %d late ones are kept", good, late)
	}
	if few := Select(list[:5], open); !slices.Equal(few, []int{0, 1, 2, 3, 4}) {
		t.Errorf("of five %v are kept", few)
	}
}
