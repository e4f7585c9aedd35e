package acquisition_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
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

// bent is a unit that grows faster and faster, or slower and slower, from one objective to the next.
func bent(objective int, outcome float64) float64 {
	return float64(1+objective) * math.Exp([]float64{0.8, 0.5, -0.7}[objective]*outcome) * []float64{1, 1, -1}[objective]
}

// The mean of what draws add to the hypervolume in another unit, within four standard errors.
// The acquisition function is in mean slopes of the unit.
func TestHypervolumeInOtherUnits(t *testing.T) {
	front := [][]float64{{0.1, 0.9, 0.4}, {0.4, 0.5, 0.6}, {0.6, 0.2, 0.7}, {0.8, 0.6, 0.1}}
	reference := []float64{0.9, 2, 0.8}
	in := func(p []float64) []float64 {
		q := make([]float64, len(p))
		for k, v := range p {
			q[k] = bent(k, v)
		}
		return q
	}
	var bentFront [][]float64
	for _, p := range front {
		bentFront = append(bentFront, in(p))
	}
	mean, sd := []float64{0.5, 0.4, 0.4}, []float64{0.3, 0.2, 0.1}
	before := pareto.Hypervolume(bentFront, in(reference))
	rng := rand.New(rand.NewPCG(7, 8))
	const n = 20_000
	var sum, squares float64
	for range n {
		p := make([]float64, len(mean))
		for i := range p {
			p[i] = mean[i] + sd[i]*rng.NormFloat64()
		}
		gain := pareto.Hypervolume(append(bentFront[:len(front):len(front)], in(p)), in(reference)) - before
		sum += gain
		squares += gain * gain
	}
	want := sum / n
	se := math.Sqrt((squares/n - want*want) / n)
	h := acquisition.NewHypervolume(front, reference).In(bent)
	got := math.Exp(h.LogEHVI(mean, sd))
	for k, r := range reference {
		lowest := []float64{0.1, 0.2, 0.1}[k] - 4
		got *= (bent(k, r) - bent(k, lowest)) / (r - lowest)
	}
	if math.Abs(got-want) > 4*se+0.01*want { // the unit is not quite straight between knots
		t.Errorf("%v, %d draws give %v ± %v", got, n, want, se)
	}
	d := len(mean)
	for _, at := range [][2][]float64{{mean, sd}, {{5, 4, 3}, sd}, {{-1, 0.3, 0.6}, {0.01, 0.4, 1}}} {
		m, s := slices.Clone(at[0]), slices.Clone(at[1])
		dMean, dSD := make([]float64, d), make([]float64, d)
		h.LogEHVIGradient(m, s, dMean, dSD)
		for i := range d {
			for what, x := range map[string][]float64{"mean": m, "sd": s} {
				const step = 1e-6
				here := x[i]
				x[i] = here * (1 + step)
				up := h.LogEHVI(m, s)
				x[i] = here * (1 - step)
				down := h.LogEHVI(m, s)
				x[i] = here
				slope := map[string][]float64{"mean": dMean, "sd": dSD}[what][i]
				if want := (up - down) / (2 * step * here); math.Abs(slope-want) > 1e-5*math.Max(1, math.Abs(want)) {
					t.Errorf("at %v ± %v the slope along %s %d is %v, differences give %v", at[0], at[1], what, i, slope, want)
				}
			}
		}
	}
}

// A unit that is a multiple of the outcomes changes nothing.
func TestHypervolumeInMultiples(t *testing.T) {
	h := acquisition.NewHypervolume([][]float64{{0.1, 0.9}, {0.4, 0.5}, {0.6, 0.2}}, []float64{1, 1.2})
	in := h.In(func(k int, outcome float64) float64 { return 3 + float64(1+k)*outcome })
	for _, mean := range [][]float64{{0.5, 0.4}, {-2, 0.3}, {0.2, 9}, {40, 40}} {
		sd := []float64{0.3, 0.2}
		checkRelative(t, "log", mean[0], in.LogEHVI(mean, sd), h.LogEHVI(mean, sd), 1e-9)
	}
}

// A unit with the same value everywhere leaves an improvement that can be compared.
func TestHypervolumeInAConstantUnit(t *testing.T) {
	h := acquisition.NewHypervolume([][]float64{{0.1, 0.9}, {0.4, 0.5}}, []float64{1, 1.2}).In(func(int, float64) float64 { return 7 })
	near, far := h.LogEHVI([]float64{0.2, 0.3}, []float64{0.1, 0.1}), h.LogEHVI([]float64{0.3, 0.6}, []float64{0.1, 0.1})
	if math.IsNaN(near) || !(near > far) {
		t.Errorf("%v near the front, %v far from it", near, far)
	}
}
