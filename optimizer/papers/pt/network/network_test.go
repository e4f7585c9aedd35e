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

// golden is a case of testdata/golden.json, which train/golden.py made with PyTorch:
// golden.py ../weights/*.safetensors > ../network/testdata/golden.json
type golden struct {
	Weights           string
	Observed, Queries [][]float64
	Outcomes          []float64
	Components        [][][3]float64 // of each query: weight, mean and standard deviation
}

func goldens(t *testing.T) []golden {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.json")
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
	cases := goldens(t)
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
						t.Fatalf("%s, %d observations: query %d, component %d: %v, %v, %v, by PyTorch %v", c.Weights, len(c.Outcomes), i, k, weight, mean, sd, want)
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

// Queries do not depend on each other, on the number of cores, or on the order of the
// observations (the latter up to rounding).
func TestQueriesAreIndependent(t *testing.T) {
	c := goldens(t)[1]
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
	good := string(weights(t, goldens(t)[0].Weights))
	for name, c := range map[string]struct{ old, new, want string }{
		"another name":   {`"outcome.bias"`, `"outcome.sias"`, "tensor outcome.bias has the shape [], want [128]"},
		"heads":          {`"heads":"4"`, `"heads":"5"`, "width 128, 5 heads"},
		"no heads":       {`"heads":"4"`, `"feets":"4"`, `heads is "", want an integer from 1 to 64`},
		"shape":          {`"shape":[4]`, `"shape":[5]`, "data_offsets"},
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
	m := model(t, goldens(t)[0].Weights)
	got := []int{m.Columns(), m.LeastColumns(), m.MostObservations()}
	if diff := cmp.Diff([]int{1, 1, 128}, got); diff != "" {
		t.Errorf("columns, least, observations (-want +got):\n%s", diff)
	}
}
