package acquisition_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
)

// Values and derivatives that testdata/hypervolume.py computed with mpmath from the
// definition, without boxes.
func TestHypervolumeReference(t *testing.T) {
	data, err := os.ReadFile("testdata/hypervolume.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Front     [][]float64
		Reference []float64
		Mean, SD  []float64
		Log       float64
		DMean     []float64 `json:"d_mean"`
		DSD       []float64 `json:"d_sd"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 24 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		h := acquisition.NewHypervolume(c.Front, c.Reference)
		d := len(c.Mean)
		dMean, dSD := make([]float64, d), make([]float64, d)
		got := h.LogEHVIGradient(c.Mean, c.SD, dMean, dSD)
		checkRelative(t, "log", c.Mean[0], got, c.Log, 1e-10)
		if again := h.LogEHVI(c.Mean, c.SD); again != got {
			t.Errorf("LogEHVI %v, with the gradient %v", again, got)
		}
		for i := range d {
			checkRelative(t, fmt.Sprintf("dMean[%d]", i), c.Mean[i], dMean[i], c.DMean[i], 1e-9)
			checkRelative(t, fmt.Sprintf("dSD[%d]", i), c.SD[i], dSD[i], c.DSD[i], 1e-9)
		}
	}
}

// With one objective it is the expected improvement on the best value.
func TestHypervolumeOfOneObjective(t *testing.T) {
	h := acquisition.NewHypervolume([][]float64{{0.5}, {0.7}}, []float64{2})
	for _, mean := range []float64{-3, 0.4, 0.6, 5, 40} {
		got, want := h.LogEHVI([]float64{mean}, []float64{0.3}), acquisition.LogEI(mean, 0.3, 0.5)
		checkRelative(t, "log", mean, got, want, 1e-14)
	}
}

// The mean of what draws add to the hypervolume, within four standard errors.
func TestHypervolumeByDraws(t *testing.T) {
	front := [][]float64{{0.1, 0.9, 0.4}, {0.4, 0.5, 0.6}, {0.6, 0.2, 0.7}, {0.8, 0.6, 0.1}}
	reference := []float64{1.1, 1.2, 1}
	mean, sd := []float64{0.5, 0.4, 0.4}, []float64{0.3, 0.2, 0.1}
	before := pareto.Hypervolume(front, reference)
	rng := rand.New(rand.NewPCG(7, 8))
	const n = 20_000
	var sum, squares float64
	for range n {
		p := make([]float64, len(mean))
		for i := range p {
			p[i] = mean[i] + sd[i]*rng.NormFloat64()
		}
		gain := pareto.Hypervolume(append(front[:len(front):len(front)], p), reference) - before
		sum += gain
		squares += gain * gain
	}
	want := sum / n
	se := math.Sqrt((squares/n - want*want) / n)
	got := math.Exp(acquisition.NewHypervolume(front, reference).LogEHVI(mean, sd))
	if math.Abs(got-want) > 4*se {
		t.Errorf("%v, %d draws give %v ± %v", got, n, want, se)
	}
}

func BenchmarkLogEHVI(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, objectives := range []int{2, 3} {
		var front [][]float64
		for range 30 { // on a sphere, so that none dominates another
			p, norm := make([]float64, objectives), 0.0
			for i := range p {
				p[i] = math.Abs(rng.NormFloat64())
				norm = math.Hypot(norm, p[i])
			}
			for i := range p {
				p[i] = 1 - p[i]/norm
			}
			front = append(front, p)
		}
		mean, sd, reference := make([]float64, objectives), make([]float64, objectives), make([]float64, objectives)
		for i := range mean {
			mean[i], sd[i], reference[i] = 0.4, 0.2, 1.1
		}
		h := acquisition.NewHypervolume(front, reference)
		b.Run(fmt.Sprintf("objectives=%d/front=30", objectives), func(b *testing.B) {
			dMean, dSD := make([]float64, objectives), make([]float64, objectives)
			for b.Loop() {
				h.LogEHVIGradient(mean, sd, dMean, dSD)
			}
		})
	}
}
