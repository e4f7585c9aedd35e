package bench

import (
	"errors"
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

func unitSpace(t *testing.T) *space.Space {
	t.Helper()
	lo, hi := 0.0, 10.0
	s, err := celspace.New([]study.Parameter{
		{Name: "x", Type: study.Float, Min: &lo, Max: &hi},
		{Name: "kind", Type: study.Categorical, Values: []any{"a", "b"}},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRecorded(t *testing.T) {
	records := []Record{
		{Point: study.Point{"x": 1.0, "kind": "a"}, Outcome: optimizer.OutcomeCompleted, Value: 5, Seconds: 2},
		{Point: study.Point{"x": 9.0, "kind": "a"}, Outcome: optimizer.OutcomeFailed, Seconds: 4},
		{Point: study.Point{"x": 1.0, "kind": "b"}, Outcome: optimizer.OutcomeCompleted, Value: 7},
		{Point: study.Point{"x": 1.0, "kind": "a"}, Outcome: optimizer.OutcomeCompleted, Value: 99, Seconds: 1},
	}
	o, err := NewRecorded("s", unitSpace(t), study.Minimize, records)
	if err != nil {
		t.Fatal(err)
	}
	e, err := o.open()
	if err != nil {
		t.Fatal(err)
	}
	// The unit cube has x at a tenth of itself; the categories are apart. The second of two
	// equal points is never used.
	for _, c := range []struct {
		x       float64
		kind    string
		outcome optimizer.Outcome
		value   float64
		seconds float64
	}{
		{1, "a", optimizer.OutcomeCompleted, 5, 2}, {0, "a", optimizer.OutcomeCompleted, 5, 2}, {4.9, "a", optimizer.OutcomeCompleted, 5, 2},
		{5.1, "a", optimizer.OutcomeFailed, 0, 4}, {2, "b", optimizer.OutcomeCompleted, 7, (2.0 + 4 + 1) / 3},
	} {
		got, err := e.evaluate(t.Context(), 1, 1, study.Point{"x": c.x, "kind": c.kind})
		if err != nil || got.kind != c.outcome || got.value != c.value || math.Abs(got.seconds-c.seconds) > 1e-12 {
			t.Errorf("x %g, kind %s: %+v (%v), want %+v", c.x, c.kind, got, err, c)
		}
	}
	if _, err := NewRecorded("s", unitSpace(t), study.Minimize, records[1:2]); !errors.Is(err, ErrNothingRecorded) {
		t.Errorf("without a completed trial: %v, want %v", err, ErrNothingRecorded)
	}
}

// With evaluations that take equally long, n workers take an nth of the time, and the
// best value is the best recorded one that a run met.
func TestParallelisms(t *testing.T) {
	var records []Record
	for x := range 11 {
		for _, kind := range []string{"a", "b"} {
			records = append(records, Record{
				Point: study.Point{"x": float64(x), "kind": kind}, Outcome: optimizer.OutcomeCompleted, Value: -float64(x), Seconds: 3,
			})
		}
	}
	o, err := NewRecorded("s", unitSpace(t), study.Maximize, records)
	if err != nil {
		t.Fatal(err)
	}
	random := func() (optimizer.Optimizer, error) { return registry.New("random", nil) }
	all, err := Parallelisms(t.Context(), random, o, 200, []int{1, 4}, []uint64{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	// 200 random points miss the tenth of the space that is near x = 0 with a probability
	// below 1e-4.
	want := []Parallelism{{Workers: 1, Seconds: 600}, {Workers: 4, Seconds: 150}}
	for i, w := range want {
		if got := all[i]; got.Workers != w.Workers || got.Best != 0 || got.Error != 0 || math.Abs(got.Seconds-w.Seconds) > 1e-9 {
			t.Errorf("%+v, want %+v", got, w)
		}
	}
	if e := estimate([]float64{1, 3}); e.Mean != 2 || math.Abs(*e.SE-1) > 1e-12 {
		t.Errorf("mean %g ± %g, want 2 ± 1", e.Mean, *e.SE) // √(2/1/2)
	}
}
