package surrogate

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestObserve(t *testing.T) {
	point := func(x float64) study.Point { return study.Point{"x1": x} }
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 10), Direction: study.Maximize, Observations: []optimizer.Observation{
		{Point: point(0), Outcome: optimizer.OutcomeCompleted, Values: []float64{8}},
		{Point: point(5), Outcome: optimizer.OutcomeFailed, Values: []float64{99}},
		{Point: point(10), Outcome: optimizer.OutcomeCompleted, Values: []float64{2}},
		{Point: point(2.5), Outcome: optimizer.OutcomeInfeasible},
	}}
	d := Observe(p, optimizer.NewEncoding(p.Space), Options{})
	if d.Completed != 2 {
		t.Errorf("%d completed, want 2", d.Completed)
	}
	// Negated, failures as the worst: -8, -2, -2, -2; mean -3.5, variance 9.
	if diff := cmp.Diff([]float64{-1.5, 0.5, 0.5, 0.5}, d.Y, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{0, 0.5, 1, 0.25}, d.X.RawMatrix().Data); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if mean, sd := d.Moments(-1.5, 4); math.Abs(mean-8) > 1e-12 || math.Abs(sd-6) > 1e-12 {
		t.Errorf("-1.5 standard deviations are %v, want 8; a variance of 4 is an sd of %v, want 6", mean, sd)
	}
}

// Without the clip, outcomes have the mean 0 and the standard deviation 1 that
// gp.Standardize gives them, however far one of them lies; with it, that one counts less.
func TestUnclipped(t *testing.T) {
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), Direction: study.Minimize}
	y := []float64{1, 3, 2, 5, 4, 2.5, 3.5, 900}
	for i, v := range y {
		p.Observations = append(p.Observations, optimizer.Observation{
			Point: study.Point{"x1": float64(i) / 8}, Outcome: optimizer.OutcomeCompleted, Values: study.Values{v},
		})
	}
	want, _ := gp.Standardize(y)
	encoding := optimizer.NewEncoding(p.Space)
	if diff := cmp.Diff(want, Observe(p, encoding, Options{Unclipped: true}).Y, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if clipped := Observe(p, encoding, Options{}).Y; clipped[7] > want[7]-0.1 {
		t.Errorf("the outlier is %v standard deviations above the mean, %v without the clip", clipped[7], want[7])
	}
}

func TestSelection(t *testing.T) {
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64((i * 37) % 100) // each of 0…99 once
	}
	got := selection(values, 20)
	if len(got) != 20 || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != 20 {
		t.Fatalf("selected %v, want 20 different places in order", got)
	}
	for i, v := range values {
		if v < 8 && !slices.Contains(got, i) {
			t.Errorf("the value %v, among the best two fifths of 20, is left out", v)
		}
	}
	for i := 94; i < 100; i++ {
		if !slices.Contains(got, i) {
			t.Errorf("observation %d, among the latest six, is left out", i)
		}
	}
	early := 0
	for _, i := range got {
		if i < 94 && values[i] >= 8 {
			early++
		}
	}
	if early != 20-8-6 && early < 4 {
		t.Errorf("%d of the rest, want about 6", early)
	}
	if got := selection(values[:20], 20); len(got) != 20 {
		t.Errorf("%d of 20", len(got))
	}
}

// A place that was evaluated more often than others is not represented by its lucky
// evaluations: the mean of the selected values is the mean of all.
func TestSelectionTakesPlacesWhole(t *testing.T) {
	rng := optimizer.NewRand(1, 1)
	space := optimizertest.Cube(t, 1, 0, 20)
	p := &optimizer.Problem{Space: space, Direction: study.Minimize}
	sum, count := map[float64]float64{}, map[float64]float64{}
	for i := range 3 * MaxPoints {
		x := float64(i % 21)
		v := 0.05*math.Abs(x-10) + rng.NormFloat64()
		sum[x], count[x] = sum[x]+v, count[x]+1
		p.Observations = append(
			p.Observations, optimizer.Observation{Point: study.Point{"x1": x}, Outcome: optimizer.OutcomeCompleted, Values: []float64{v}},
		)
	}
	d := Observe(p, optimizer.NewEncoding(space), Options{})
	if len(d.Of) != MaxPoints {
		t.Fatalf("%d are selected, want %d", len(d.Of), MaxPoints)
	}
	places := d.Places()
	var bias float64
	for _, place := range places {
		x := p.Observations[d.Of[place.Row]].Point["x1"].(float64)
		for _, v := range place.Values {
			bias += (v - sum[x]/count[x]) / MaxPoints
		}
	}
	// Its standard error is below that of the mean of so many values of sd 1.
	if bound := 4 / math.Sqrt(MaxPoints); math.Abs(bias) > bound || len(places) < 10 {
		t.Errorf("the selected values of %d places differ from their places' means by %g on average", len(places), bias)
	}
}

// TestObservePruned checks that a pruned evaluation has the value that it would have reached, up
// to the worst completed one, and that one, if it is not known. It counts neither as completed nor as a failure.
func TestObservePruned(t *testing.T) {
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 1, 0, 1), Direction: study.Maximize}
	for i, o := range []optimizer.Observation{
		{Outcome: optimizer.OutcomeCompleted, Values: study.Values{3}},
		{Outcome: optimizer.OutcomePruned, Values: study.Values{2}, Step: 4},
		{Outcome: optimizer.OutcomeFailed},
		{Outcome: optimizer.OutcomePruned, Values: study.Values{-1e9}, Step: 1},
		{Outcome: optimizer.OutcomePruned}, // nothing is known of its value
		{Outcome: optimizer.OutcomeCompleted, Values: study.Values{1}},
	} {
		o.Trial, o.Point = i+1, study.Point{"x1": float64(i) / 10}
		p.Observations = append(p.Observations, o)
	}
	for _, failures := range []Failures{FailuresModel, FailuresIgnore} {
		d := Observe(p, optimizer.NewEncoding(p.Space), Options{Failures: failures})
		if d.Completed != 2 || !slices.Equal(d.Of, []int{0, 1, 3, 4, 5}) || !slices.Equal(d.raw, []float64{-3, -2, -1, -1, -1}) ||
			len(d.Places()) != 2 {
			t.Errorf("%s: %d completed, observations %v with %v, %d places", failures, d.Completed, d.Of, d.raw, len(d.Places()))
		}
	}
}
