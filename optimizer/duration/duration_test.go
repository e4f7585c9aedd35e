package duration_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// took returns observations of evaluations that take 10·exp(2·x1) seconds, and a few percent more or less.
func took(encoding *optimizer.Encoding, n int, rng *rand.Rand) []duration.Observation {
	list := make([]duration.Observation, n)
	for i := range list {
		x := []float64{rng.Float64(), rng.Float64()}
		list[i] = duration.Observation{Point: encoding.Decode(x), Seconds: 10 * math.Exp(2*x[0]+0.03*rng.NormFloat64())}
	}
	return list
}

func encoding(t *testing.T) *optimizer.Encoding {
	t.Helper()
	return optimizer.NewEncoding(optimizertest.Cube(t, 2, 0, 1))
}

func fit(t *testing.T, e *optimizer.Encoding, list []duration.Observation) *duration.Model {
	t.Helper()
	m, err := duration.Fit(t.Context(), e, list, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The model finds what the times depend on, and its intervals hold what they should.
func TestFit(t *testing.T) {
	e, rng := encoding(t), rand.New(rand.NewPCG(1, 1))
	m, inside := fit(t, e, took(e, 60, rng)), 0
	unseen := took(e, 400, rng)
	for _, o := range unseen {
		a := m.At(o.Point)[0]
		if math.Abs(math.Log(a.Median()/o.Seconds)) > 0.3 {
			t.Errorf("an evaluation of %g s was expected to take %g s", o.Seconds, a.Median())
		}
		if a.Quantile(0.05, 0) <= o.Seconds && o.Seconds <= a.Quantile(0.95, 0) {
			inside++
		}
	}
	if inside < 340 || inside > 392 {
		t.Errorf("%d of 400 lie in intervals of nine tenths", inside)
	}
}

// Where evaluations have run for long without an end, others take long.
func TestCensoredEvaluationsCount(t *testing.T) {
	e, rng := encoding(t), rand.New(rand.NewPCG(2, 2))
	list := took(e, 40, rng)
	var ended []duration.Observation
	for i, o := range list {
		if o.Seconds > 30 { // stopped there
			list[i].Seconds, list[i].Censored = 30, true
		} else {
			ended = append(ended, o)
		}
	}
	slow := e.Decode([]float64{0.95, 0.5}) // 67 s
	with, without := fit(t, e, list).At(slow)[0], fit(t, e, ended).At(slow)[0]
	if with.Median() < 40 || with.Median() < without.Median()*0.9 {
		t.Errorf("with those that were stopped %g s are expected, without %g s", with.Median(), without.Median())
	}
	for i := range list { // as if 30 s were the whole time
		list[i].Censored = false
	}
	if blind := fit(t, e, list).At(slow)[0]; blind.Median() > 0.8*with.Median() {
		t.Errorf("if stopped ones count as ended %g s are expected, else %g s", blind.Median(), with.Median())
	}
}

// The same observations give the same model, and of many it looks at the latest.
func TestFitIsReproducibleAndBounded(t *testing.T) {
	e, rng := encoding(t), rand.New(rand.NewPCG(3, 3))
	list := took(e, 3000, rng)
	for i := 2900; i < 3000; i++ { // on another machine
		list[i].Seconds *= 3
	}
	p := e.Decode([]float64{0.5, 0.5})
	a, b := fit(t, e, list).At(p, list[0].Point), fit(t, e, list).At(p, list[0].Point)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%v and %v", a, b)
	}
	if got := a[0].Median(); got < 30 {
		t.Errorf("%g s are expected, though the latest took 82 s", got)
	}
}

// Times that are all alike, unknown or none are no reason to fail.
func TestTimesWithoutSpread(t *testing.T) {
	e := encoding(t)
	list := make([]duration.Observation, 8)
	for i := range list {
		list[i] = duration.Observation{Point: e.Decode([]float64{float64(i) / 8, 0.5}), Seconds: 60}
	}
	if a := fit(t, e, list).At(list[3].Point)[0]; math.Abs(a.Median()-60) > 1 || a.Quantile(0.95, 0) > 63 {
		t.Errorf("where all took 60 s, %+v is expected", a)
	}
	for i := range list {
		list[i].Seconds = 0
	}
	if a := fit(t, e, list).At(list[3].Point)[0]; a.Median() > 0.01 {
		t.Errorf("where all took no time, %g s are expected", a.Median())
	}
	for i := range list {
		list[i].Censored = i >= 3
	}
	if _, err := duration.Fit(t.Context(), e, list, nil, 1); !errors.Is(err, duration.ErrTooFew) {
		t.Errorf("of three that have ended: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := duration.Fit(ctx, e, took(e, 20, rand.New(rand.NewPCG(1, 1))), nil, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// A space whose parameters have one value each has times, too.
func TestNoParameters(t *testing.T) {
	s, err := space.Of(&study.Study{Spec: study.Spec{
		Objective: study.Objective{Metric: "loss"}, Parameters: []study.Parameter{{Name: "x", Type: study.Fixed, Value: 3.0}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	e := optimizer.NewEncoding(s)
	list := []duration.Observation{{Seconds: 9}, {Seconds: 10}, {Seconds: 11}, {Seconds: 10}, {Seconds: 4, Censored: true}}
	for i := range list {
		list[i].Point = study.Point{"x": 3.0}
	}
	if a := fit(t, e, list).At(study.Point{})[0]; a.Median() < 8 || a.Median() > 13 {
		t.Errorf("%g s are expected", a.Median())
	}
}

// The quantiles are those of a log-normal distribution, cut off where an evaluation has come.
func TestQuantiles(t *testing.T) {
	e := duration.Estimate{Mu: 2, SD: 0.7}
	d := distuv.LogNormal{Mu: 2, Sigma: 0.7}
	if e.Median() != d.Quantile(0.5) || math.Abs(e.Mean()-d.Mean()) > 1e-9 {
		t.Errorf("the median is %g, the mean %g; want %g and %g", e.Median(), e.Mean(), d.Quantile(0.5), d.Mean())
	}
	for _, ran := range []float64{0, 1, 7, 30} {
		for _, p := range []float64{0.05, 0.5, 0.9} {
			q := e.Quantile(p, ran)
			if got := (d.CDF(q) - d.CDF(ran)) / (1 - d.CDF(ran)); math.Abs(got-p) > 1e-6 {
				t.Errorf("of those that have run for %g s, the share %g ends within %g s, want %g", ran, got, q, p)
			}
		}
	}
	if q := e.Quantile(0.5, 1e30); q != 1e30 {
		t.Errorf("of one that has run for ever, %g s are expected", q)
	}
}

// By hand, with times that are certain: two slots, in which trials end after 4 and 7 s; the next ones take 10 s each. They
// begin at 4, 7 and 14 s, so the last one ends at 24 s.
func TestPlan(t *testing.T) {
	sure := func(s float64) duration.Estimate { return duration.Estimate{Mu: math.Log(s), SD: 1e-9} }
	running := []duration.Running{{Estimate: sure(10), Seconds: 6}, {Estimate: sure(9), Seconds: 2}}
	for _, c := range []struct {
		plan duration.Plan
		want float64
	}{
		{duration.Plan{Running: running, Slots: 2, New: 3, Next: []duration.Estimate{sure(10)}}, 24},
		{duration.Plan{Running: running, Slots: 2}, 7},
		{duration.Plan{Running: running, Slots: 1, New: 1, Next: []duration.Estimate{sure(10)}}, 17}, // the other slot is gone
		{duration.Plan{Slots: 3, New: 4, Next: []duration.Estimate{sure(10)}}, 20},
		{duration.Plan{New: 2, Next: []duration.Estimate{sure(10)}}, 20},
		{duration.Plan{Slots: 2, New: 5000, Next: []duration.Estimate{sure(10)}}, 25_000}, // more than are drawn
		{duration.Plan{}, 0},
	} {
		if left := c.plan.Left(1); math.Abs(left-c.want) > 1e-6*max(1, c.want) {
			t.Errorf("%+v: %g s are left, want %g", c.plan, left, c.want)
		}
	}
	spread := duration.Plan{Running: running, Slots: 2, New: 9, Next: []duration.Estimate{{Mu: 2, SD: 1}}}
	if a, b := spread.Left(3), spread.Left(3); a != b || a < 12 || a > 120 {
		t.Errorf("%g and %g s are left", a, b)
	}
	// Of very many, the mean of the lognormal distribution for each slot.
	many := duration.Plan{Slots: 4, New: 1_000_000, Next: []duration.Estimate{{Mu: 2, SD: 1}}}
	if left, want := many.Left(1), math.Exp(2.5)*1e6/4; math.Abs(left/want-1) > 0.03 {
		t.Errorf("%g s are left, want %g", left, want)
	}
}
