package hebo

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// reporting is a study of two parameters whose trials report 40 steps: they end the lower, the nearer x1 is to 0.3. The objective
// is the loss with its sign changed. steps says how many each of twelve trials has reported.
func reporting(t testing.TB, steps func(trial int) int64) *optimizer.Problem {
	t.Helper()
	p := &optimizer.Problem{
		Space: optimizertest.Cube(t, 2, 0, 1), Direction: study.Maximize, MaxTrials: 100, Parallelism: 8, Seed: 1, First: 13, Last: 40,
	}
	for trial := 1; trial <= 12; trial++ {
		x := float64(trial) / 12
		point, reported := study.Point{"x1": x, "x2": math.Mod(5*x, 1)}, steps(trial)
		curve := optimizer.Curve{Trial: trial}
		for step := int64(1); step <= reported; step++ {
			curve.Looks = optimizer.Looked(curve.Looks, step, (x-0.3)*(x-0.3)+1/float64(step))
		}
		if len(curve.Looks) > 0 {
			p.Curves = append(p.Curves, curve)
		}
		if reported == p.Last {
			value := study.Values{-(x-0.3)*(x-0.3) - 1/float64(reported)}
			p.Observations = append(p.Observations, optimizer.Observation{
				Trial: trial, Point: point, Outcome: optimizer.OutcomeCompleted, Values: value,
			})
			continue
		}
		pending := optimizer.Pending{Trial: trial, Point: point}
		if reported > 0 {
			pending.Likely = study.Values{-(x - 0.3) * (x - 0.3)}
		}
		p.Pending = append(p.Pending, pending)
	}
	return p
}

func suggest(t testing.TB, options Options, p *optimizer.Problem, state optimizer.State, n int) ([]optimizer.Suggestion, optimizer.State) {
	t.Helper()
	batch, state, err := New(options).Suggest(t.Context(), p, state, n, optimizer.NewRand(p.Seed, p.First))
	if err != nil || len(batch) != n {
		t.Fatalf("%d suggestions, %v", len(batch), err)
	}
	return batch, state
}

// Points are chosen by what trials report, before any has completed and afterwards, where they are expected to end best.
func TestPointsAreChosenByCurves(t *testing.T) {
	for name, steps := range map[string]func(trial int) int64{
		"all run":         func(trial int) int64 { return 3 + int64(trial) },
		"some have ended": func(trial int) int64 { return []int64{40, 12, 0, 6}[trial%4] },
		"most have ended": func(trial int) int64 { return []int64{40, 40, 40, 6}[trial%4] },
	} {
		t.Run(name, func(t *testing.T) {
			p := reporting(t, steps)
			batch, state := suggest(t, DefaultOptions(), p, nil, 6)
			near := 0
			for i, s := range batch {
				want, source := "by what trials report", optimizer.SourceModel
				if (p.First+i)%5 == 0 && len(p.Observations) >= 8 {
					want, source = "each fifth trial", optimizer.SourceDesign
				}
				if s.Source != source || !strings.Contains(s.Reasons.Note, want) {
					t.Errorf("suggestion %d is %+v, want one of %s", i, s, source)
				}
				if s.Reasons.Pending != len(p.Pending)+i {
					t.Errorf("suggestion %d says that %d are pending, want %d", i, s.Reasons.Pending, len(p.Pending)+i)
				}
				if x, _ := s.Point["x1"].(float64); math.Abs(x-0.3) < 0.2 {
					near++
				}
			}
			if m := batch[0].Reasons.Mean; m == nil || *m > 0 || *m < -0.6 || *batch[0].Reasons.SD > 0.5 {
				t.Errorf("the first one is expected at %v", batch[0].Reasons)
			}
			if near < 3 {
				t.Errorf("%d of 6 points are near the best", near)
			}
			again, _ := suggest(t, DefaultOptions(), p, nil, 6)
			if !slices.EqualFunc(batch, again, func(a, b optimizer.Suggestion) bool { return a.Point["x1"] == b.Point["x1"] }) {
				t.Error("the same request has another answer")
			}
			m := readMemory(state, DefaultOptions().Surrogate.NumParams(optimizer.NewEncoding(p.Space)))
			if m.Curves == nil || m.Looks < fewestLooks {
				t.Errorf("the state keeps %+v of %d looks", m.Curves, m.Looks)
			}
			if next, _ := suggest(t, DefaultOptions(), p, state, 1); next[0].Source != optimizer.SourceModel {
				t.Errorf("with the state %+v is suggested", next[0])
			}
		})
	}
}

// What is foreseen of a trial is not taken for its end, and a completed trial's curve ends with its value.
func TestCurvesEndWithValues(t *testing.T) {
	p := reporting(t, func(trial int) int64 { return []int64{40, 12}[trial%2] })
	p.Observations[0].Values = study.Values{7}
	r := &optimizer.Request{Problem: p, Asked: p, N: 1, Encoding: optimizer.NewEncoding(p.Space)}
	foreseen := *p
	for _, q := range p.Pending {
		foreseen.Observations = append(slices.Clone(foreseen.Observations), optimizer.Observation{
			Trial: q.Trial, Point: q.Point, Outcome: optimizer.OutcomeCompleted, Values: q.Likely,
		})
	}
	foreseen.Pending = nil
	r.Problem = &foreseen
	c := proposer{options: DefaultOptions()}.curved(r)
	if c == nil || len(c.list) != 12 || c.untold != 0 || len(c.request.Pending) != 0 {
		t.Fatalf("%+v", c)
	}
	for i, curve := range c.list {
		last := curve.Reports[len(curve.Reports)-1]
		switch {
		case i < 6 && (curve.Runs || last.Step != 40):
			t.Errorf("a completed trial's curve ends with %+v", last)
		case i >= 6 && (!curve.Runs || last.Step > 12):
			t.Errorf("the curve of a trial that runs ends with %+v", last)
		}
	}
	if first := c.list[0].Reports; first[len(first)-1].Cost != -7 {
		t.Errorf("the first one ends with %+v, want its value", first[len(first)-1])
	}
}

// Where trials were stopped because they diverged, no point is chosen.
func TestCurvesThatDivergeAreAvoided(t *testing.T) {
	p := reporting(t, func(int) int64 { return 40 })
	for i := range 20 { // beside the best place
		x := 0.2 + 0.01*float64(i)
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: 13 + i, Point: study.Point{"x1": x, "x2": math.Mod(7*x, 1)}, Outcome: optimizer.OutcomePruned, Step: 1,
		})
	}
	p.First += 20
	batch, _ := suggest(t, DefaultOptions(), p, nil, 6)
	for i, s := range batch {
		if x, _ := s.Point["x1"].(float64); s.Source == optimizer.SourceModel && x > 0.22 && x < 0.38 {
			t.Errorf("suggestion %d is among trials that diverged: %v, %v", i, s.Point, s.Reasons.Note)
		}
	}
}

// Where the curves cannot say it, points are chosen as in any other study.
func TestPointsThatAreNotChosenByCurves(t *testing.T) {
	every := func(int) int64 { return 40 }
	for name, change := range map[string]func(p *optimizer.Problem, o *Options){
		"an unknown end": func(p *optimizer.Problem, _ *Options) { p.Last = 0 },
		"few looks": func(p *optimizer.Problem, _ *Options) {
			p.Curves = []optimizer.Curve{{Trial: 1, Looks: []optimizer.Look{{Step: 1}}}}
		},
		"limits": func(p *optimizer.Problem, _ *Options) {
			p.Limits = []study.Limit{{Metric: "memory", Max: new(1.)}}
			for i := range p.Observations {
				p.Observations[i].Excess = []float64{-1}
			}
		},
		"an ensemble": func(_ *optimizer.Problem, o *Options) { o.Acquisition = MACE },
	} {
		p, o := reporting(t, every), DefaultOptions()
		change(p, &o)
		if batch, _ := suggest(t, o, p, nil, 1); strings.Contains(batch[0].Reasons.Note, "by what trials report") {
			t.Errorf("%s: %+v", name, batch[0])
		}
	}
}

// With many trials the model has some of them, so that a suggestion stays fast.
func BenchmarkSuggestByCurves(b *testing.B) {
	for _, trials := range []int{200, 2000} {
		p := reporting(b, func(int) int64 { return 40 })
		some := *p
		for i := 12; i < trials; i++ {
			o, c := some.Observations[i%12], some.Curves[i%12]
			x := math.Mod(0.37*float64(i), 1)
			o.Trial, c.Trial, o.Point = i+1, i+1, study.Point{"x1": x, "x2": math.Mod(7*x, 1)}
			some.Observations, some.Curves = append(some.Observations, o), append(some.Curves, c)
		}
		some.First = trials + 1
		_, state := suggest(b, DefaultOptions(), &some, nil, 1)
		b.Run(map[int]string{200: "trials=200", 2000: "trials=2000"}[trials], func(b *testing.B) {
			for b.Loop() {
				suggest(b, DefaultOptions(), &some, state, 1)
			}
		})
	}
}
