package network

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/mixture"
)

// weights returns the bytes of a file of weights.
func weights(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "weights", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func model(t testing.TB, name string) *Model {
	t.Helper()
	m, err := Load(weights(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// golden is a case of a file that research/pt/train/golden.py made with PyTorch: golden.json from
// the weights of the program, and half.json from those that shrink.py made them of, in half precision.
type golden struct {
	Weights           string
	Observed, Queries [][]float64
	Outcomes          []float64
	Components        [][][3]float64 // of each query: weight, mean and standard deviation
}

func goldens(t *testing.T, name string) []golden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var cases []golden
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// The network computes what PyTorch does.
func TestAgainstPyTorch(t *testing.T) {
	cases := goldens(t, "golden.json")
	seen := map[string]bool{}
	for _, c := range cases {
		seen[c.Weights] = true
		m := model(t, c.Weights)
		for i, predicted := range m.Observe(c.Observed, c.Outcomes).Predict(c.Queries) {
			if predicted.Len() != len(c.Components[i]) {
				t.Fatalf("%s: %d components, by PyTorch %d", c.Weights, predicted.Len(), len(c.Components[i]))
			}
			for k, want := range c.Components[i] {
				weight, mean, sd := predicted.Component(k)
				for part, got := range [3]float64{weight, mean, sd} {
					if math.Abs(got-want[part]) > 1e-8 {
						t.Fatalf(
							"%s, %d observations: query %d, component %d: %v, %v, %v, by PyTorch %v", c.Weights, len(c.Outcomes), i, k, weight, mean, sd, want,
						)
					}
				}
			}
		}
	}
	files, err := filepath.Glob("../weights/*.safetensors")
	if err != nil || len(files) == 0 {
		t.Fatalf("weights: %v, %v", files, err)
	}
	for _, f := range files {
		if !seen[filepath.Base(f)] {
			t.Errorf("no golden case of %s", f)
		}
	}
}

// Weights in 8 bits predict what PyTorch does with those in half precision, up to a small share of
// the standard deviation. research/results/papers.md has the differences on many data sets.
func TestEightBitsAgainstHalfPrecision(t *testing.T) {
	const most = 0.02
	for _, c := range goldens(t, "half.json") {
		for i, predicted := range model(t, c.Weights).Observe(c.Observed, c.Outcomes).Predict(c.Queries) {
			var logits, means, sds []float64
			for _, component := range c.Components[i] {
				logits, means, sds = append(logits, math.Log(component[0])), append(means, component[1]), append(sds, component[2])
			}
			want := mixture.New(logits, means, sds)
			sd := math.Sqrt(want.Variance())
			for _, at := range [][2]float64{{predicted.Mean(), want.Mean()}, {predicted.Quantile(0.05), want.Quantile(0.05)},
				{predicted.Quantile(0.95), want.Quantile(0.95)}} {
				if math.Abs(at[0]-at[1]) > most*sd {
					t.Errorf(
						"%s, %d observations: query %d: the mean and the quantiles 0.05 and 0.95 differ by up to %.4f standard deviations", c.Weights,
						len(c.Outcomes), i, math.Abs(at[0]-at[1])/sd,
					)
				}
			}
		}
	}
}

// Queries do not depend on each other, on the number of cores, or on the order of the
// observations (the latter up to rounding).
func TestQueriesAreIndependent(t *testing.T) {
	c := goldens(t, "golden.json")[1]
	m := model(t, c.Weights)
	var queries [][]float64
	for i := range 200 {
		q := make([]float64, m.Columns())
		for k := range q {
			q[k] = math.Mod(float64((i+1)*(k+3))*0.618, 1)
		}
		queries = append(queries, q)
	}
	context := m.Observe(c.Observed, c.Outcomes)
	before := runtime.GOMAXPROCS(1)
	one := context.Predict(queries)
	runtime.GOMAXPROCS(4)
	four := context.Predict(queries)
	runtime.GOMAXPROCS(before)
	slices.Reverse(c.Observed)
	slices.Reverse(c.Outcomes)
	reversed := m.Observe(c.Observed, c.Outcomes).Predict(queries)
	for i, q := range queries {
		alone := context.Predict([][]float64{q})[0]
		if one[i].Mean() != four[i].Mean() || one[i].Mean() != alone.Mean() {
			t.Errorf("query %d: mean %v on one core, %v on four, %v alone", i, one[i].Mean(), four[i].Mean(), alone.Mean())
		}
		if math.Abs(one[i].Mean()-reversed[i].Mean()) > 1e-9 {
			t.Errorf("query %d: mean %v, with observations reversed %v", i, one[i].Mean(), reversed[i].Mean())
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	good := string(weights(t, goldens(t, "golden.json")[0].Weights))
	for name, c := range map[string]struct{ old, new, want string }{
		"another name":   {`"outcome.bias"`, `"outcome.sias"`, "tensor outcome.bias has the shape [], want [128]"},
		"heads":          {`"heads":"4"`, `"heads":"5"`, "width 128, 5 heads"},
		"no heads":       {`"heads":"4"`, `"feets":"4"`, `heads is "", want an integer from 1 to 64`},
		"shape":          {`"shape":[4]`, `"shape":[5]`, "data_offsets"},
		"no scale":       {`"point2.weight.scale"`, `"point2.weight.skale"`, "tensor point2.weight.scale has the shape [], want [128]"},
		"not the format": {good[:8], "\xff\xff\xff\xff\xff\xff\xff\xff", "the header's length is"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if bad == good {
			t.Errorf("%s: the file has no %q", name, c.old)
		}
		if _, err := Load([]byte(bad)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A model can be read and tells its range.
func TestRange(t *testing.T) {
	m := model(t, goldens(t, "golden.json")[0].Weights)
	got := []int{m.Columns(), m.LeastColumns(), m.MostObservations()}
	if diff := cmp.Diff([]int{1, 1, 128}, got); diff != "" {
		t.Errorf("columns, least, observations (-want +got):\n%s", diff)
	}
}
