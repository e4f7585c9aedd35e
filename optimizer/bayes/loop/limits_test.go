package loop

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
)

// bounded returns a loop with two limits, of which the second is hardly met anywhere.
func bounded(t *testing.T) *Loop {
	t.Helper()
	l := ensemble(t, acquisition.EI{Latent: true})
	l.Others = nil
	model := ensemble(t, acquisition.EI{}).Others[0].Model
	l.Limits = NewLimits([]Limit{{model, 0.1}, {model, -30}}, []float64{0, 0.5, 0, 0.2, 0})
	return l
}

// The value is the sum of the logarithms of the expected improvement and, by the error function
// of the standard library, of the probability of each limit; also the gradient's, by finite
// differences.
func TestLimitsWeightTheImprovement(t *testing.T) {
	l := bounded(t)
	at := func(p []float64) float64 { return l.value(l.posteriors(mat.NewDense(1, 2, p)), 0, 0) }
	for _, p := range [][]float64{{0.5, 0.5}, {0.15, 0.9}, {0.95, 0.05}} {
		x := mat.NewDense(1, 2, p)
		of := l.posteriors(x)
		z := (0.1 - of[1].mean[0]) / math.Sqrt(of[1].variance[0])
		near := math.Log(math.Erfc(-z/math.Sqrt2) / 2)
		far := l.Limits.log(of[1:], 0) - near
		// Φ(z) is φ(z)/|z| up to a share of 1/z² in the tail, which underflows here.
		z = (-30 - of[2].mean[0]) / math.Sqrt(of[2].variance[0])
		if tail := -z*z/2 - math.Log(math.Sqrt(2*math.Pi)*-z); math.Abs(far-tail) > 1.1/(z*z) {
			t.Errorf("at %v the far limit has %v, want %v", p, far, tail)
		}
		if got, want := at(p), l.score(of[:1], 0)+near+far; math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("at %v the value is %v, want %v", p, got, want)
		}
		logP, slopes := l.slopesOfChance(x)
		within := func(p []float64) float64 { return l.Limits.log(l.posteriors(mat.NewDense(1, 2, p))[1:], 0) }
		want := fd.Gradient(nil, within, p, &fd.Settings{Formula: fd.Central})
		if math.Abs(logP[0]-near-far) > 1e-9*math.Abs(far) || !floats.EqualApprox(slopes.RawRowView(0), want, 1e-4*(1+floats.Norm(want, 2))) {
			t.Errorf("at %v: %v with gradient %v, want %v with %v", p, logP[0], slopes.RawRowView(0), near+far, want)
		}
	}
}

// The value is that of testdata/constrained.py, which integrates over posteriors of scikit-learn.
func TestLimitsAgainstIntegrals(t *testing.T) {
	text, err := os.ReadFile("testdata/constrained.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Incumbent float64
		Bounds    []float64
		Rows      []struct {
			At  []float64
			Log float64
		}
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	l := bounded(t)
	l.Main.Known.Incumbent = want.Incumbent
	model := ensemble(t, acquisition.EI{}).Others[0].Model
	l.Limits = NewLimits([]Limit{{model, want.Bounds[0]}, {model, want.Bounds[1]}}, make([]float64, 5))
	for _, row := range want.Rows {
		if got := l.value(l.posteriors(mat.NewDense(1, 2, row.At)), 0, 0); math.Abs(got-row.Log) > 1e-7*max(1, math.Abs(row.Log)) {
			t.Errorf("at %v the value is %v, want %v", row.At, got, row.Log)
		}
	}
}

// While there is nothing within the limits to improve on, the probability alone counts.
func TestLimitsAlone(t *testing.T) {
	l := bounded(t)
	l.Main.Known.Incumbent = math.Inf(1)
	of := l.posteriors(mat.NewDense(1, 2, []float64{0.5, 0.5}))
	if got, want := l.value(of, 0, 0), l.Limits.log(of[1:], 0); got != want {
		t.Errorf("the value is %v, want %v", got, want)
	}
}

func TestLimitsSplit(t *testing.T) {
	within, outside := NewLimits(nil, []float64{0, 0.5, 0, 0.2, math.Inf(1)}).split()
	if !equalRows(within, 0, 2) || !equalRows(outside, 3, 1, 4) {
		t.Errorf("within %v, outside %v", within, outside)
	}
}

func equalRows(got []int, want ...int) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if got[i] != want[i] {
			return false
		}
	}
	return true
}
