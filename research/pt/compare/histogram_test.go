package main

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/research/lines"
)

// The network must compute what PyTorch does: train/paper.py --golden --out research/pt/compare/testdata/histogram.safetensors.
func TestHistogramIsThatOfPyTorch(t *testing.T) {
	var want struct {
		X [][]float64 `json:"x"`
		Y []float64   `json:"y"`
		P [][]float64 `json:"p"`
	}
	data, err := os.ReadFile("testdata/histogram.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	got := network(t).predict(want.X[:len(want.Y)], want.Y, want.X[len(want.Y):])
	if rows, buckets := got.Dims(); rows != len(want.P) || buckets != len(want.P[0]) {
		t.Fatalf("predicted %d×%d probabilities, want %d×%d", rows, buckets, len(want.P), len(want.P[0]))
	}
	for i, row := range want.P {
		for k, p := range row {
			if math.Abs(got.At(i, k)-p) > 1e-6*p { // PyTorch's are in single precision
				t.Fatalf("query %d, bucket %d: %v, want %v", i, k, got.At(i, k), p)
			}
		}
	}
}

func network(t *testing.T) *histogram {
	t.Helper()
	data, err := os.ReadFile("testdata/histogram.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	h, err := loadHistogram(data)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// With the same density in all of a bucket, an expected improvement is an integral over it.
func TestImprovementOfAHistogram(t *testing.T) {
	h := &histogram{ends: []float64{-1, 0, 2}}
	for _, c := range []struct{ target, want float64 }{
		{-1.5, 0},
		{-0.5, 0.25 * 0.125},       // half of the first bucket, by 0.25 on average
		{1, 0.25*1.5 + 0.75*0.25},  // all of the first, half of the second
		{3, 0.25*3.5 + 0.75*2},     // all of both
		{2, 0.25*2.5 + 0.75*(2-1)}, // the end of the last
	} {
		if got := h.improvement([]float64{0.25, 0.75}, c.target); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("improvement over %v is %v, want %v", c.target, got, c.want)
		}
	}
}

// A run is the same each time, starts from the points of random search, and is played once.
func TestRunsAreKept(t *testing.T) {
	f, err := testfunc.Get("branin")
	if err != nil {
		t.Fatal(err)
	}
	p := published{keep: t.TempDir() + "/runs.jsonl", trials: 6, initial: 6, seeds: 1, chance: 1}
	if by, chance := p.play(f, network(t), 3), p.play(f, nil, 3); by != chance {
		t.Errorf("the initial points have the regret %v, want that of random search, %v", by, chance)
	}
	p.trials = 12
	if first, again := p.play(f, network(t), 3), p.play(f, network(t), 3); first != again {
		t.Errorf("a run has the regret %v, then %v", first, again)
	}
	for range 2 {
		if err := p.row(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := lines.Read[made](p.keep); err != nil || len(kept) != 5 {
		t.Errorf("kept %d runs, %v; want one of each of five functions", len(kept), err)
	}
}
