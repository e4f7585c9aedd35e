package hebo

import (
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// Where nothing is left to gain, requests soon use a small model, whose hyperparameters are rarely
// searched for, and still find what is left.
func TestEffortShrinksWhereNothingIsLeftToGain(t *testing.T) {
	const trials = 500
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 5, -5, 5), 1)
	s.Problem.MaxTrials = trials
	params := DefaultOptions().Surrogate.NumParams(optimizer.NewEncoding(s.Problem.Space))
	settled, searches, seen := 0, 0, 0
	for trial := 1; trial <= trials; trial++ {
		p := s.Ask(1)[0]
		m := readMemory(s.State, params)
		if m.Settled {
			settled++
		}
		if m.Seen != seen {
			searches, seen = searches+1, m.Seen
		}
		if m.Settled && trial <= wholeEffort {
			t.Fatalf("trial %d is of a model of fewer observations", trial)
		}
		s.Tell(trial, sphere(p.Point))
	}
	if settled < (trials-wholeEffort)*3/4 {
		t.Errorf("%d of %d requests use a small model, want three quarters of those after %d", settled, trials, wholeEffort)
	}
	if searches > 180 {
		t.Errorf("%d searches for hyperparameters, want at most 180", searches)
	}
	if best := s.Best(); best > 1e-6 {
		t.Errorf("the best value is %g, want at most 1e-6", best)
	}
}

// Up to wholeEffort evaluations nothing changes. After them there are fewer candidates, and all
// observations count until the search has settled.
func TestEffortByEvaluations(t *testing.T) {
	usualOf := proposer{DefaultOptions(), usual, nil}
	for _, c := range []struct{ n, idle, candidates, points int }{
		{1, 0, 1000, 0}, {wholeEffort, settledMost, 1000, 0}, {200, 0, 640, 0}, {200, settledFrom - 1, 640, 0}, {256, 0, 500, 0},
		{2000, 0, leastCandidates, 0}, {200, settledFrom, settledCandidates, settledPoints},
	} {
		r := &optimizer.Request{Problem: &optimizer.Problem{Observations: make([]optimizer.Observation, c.n)}}
		got := usualOf.sized(r, &memory{Idle: c.idle})
		if got.effort.candidates != c.candidates || got.options.Surrogate.Points != c.points {
			t.Errorf("%d evaluations, %d idle requests: %d candidates and %d points, want %d and %d",
				c.n, c.idle, got.effort.candidates, got.options.Surrogate.Points, c.candidates, c.points)
		}
	}
	ensemble := proposer{options(func(o *Options) { o.Acquisition = MACE }), usual, nil}
	r := &optimizer.Request{Problem: &optimizer.Problem{Observations: make([]optimizer.Observation, 500)}}
	if got := ensemble.sized(r, &memory{Idle: settledMost}); got.effort != usual || got.options.Surrogate.Points != 0 {
		t.Errorf("an ensemble of acquisition functions gets %+v", got.effort)
	}
}

// A request that promises something halves the count of those that did not, so that a search
// which has settled wakes up when its model sees something new. A point that is evaluated again
// says nothing, and noisy evaluations never settle.
func TestWhatAPointPromises(t *testing.T) {
	const scale = 1e3
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 5, -5, 5), 1)
	r := &optimizer.Request{Problem: &s.Problem, Encoding: optimizer.NewEncoding(s.Problem.Space)}
	for i := range 20 {
		value := scale * float64(20-i)
		if i == 1 {
			value = 1e12 // a penalty
		}
		s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
			Trial: i + 1, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value},
		})
	}
	best := scale
	point := func(logEI, below, sd float64) optimizer.Suggestion {
		mean := best - below
		return optimizer.Suggestion{Source: optimizer.SourceModel, Reasons: optimizer.Reasons{
			Acquisition: map[string]float64{"logei": logEI}, Mean: &mean, SD: &sd,
		}}
	}
	again := point(-50, 0, 1)
	again.Repeat = true
	o := proposer{DefaultOptions(), usual, nil}
	for i, c := range []struct {
		suggestion optimizer.Suggestion
		noise      surrogate.Noise
		idle, want int
	}{
		{point(-2, 1, 1), surrogate.NoiseFree, 8, 4},
		{point(-2, -100, 1), surrogate.NoiseFree, 8, 9},       // a hundred deviations above the best
		{point(-2, 0, 1e-9*scale), surrogate.NoiseFree, 8, 9}, // less than matters beside the spread
		{point(-2, 0, 1e-3*scale), surrogate.NoiseFree, 8, 4},
		{point(-20, 1, 1), surrogate.NoiseFree, settledMost, settledMost}, // the model cannot tell it apart
		{again, surrogate.NoiseFree, 8, 8},
		{point(-20, -100, 1), surrogate.Noisy, 8, 0},
		{optimizer.Suggestion{Source: optimizer.SourceDesign}, surrogate.NoiseFree, 8, 8},
	} {
		for _, direction := range []study.Direction{study.Minimize, study.Maximize} {
			m, suggestion := &memory{Idle: c.idle}, c.suggestion
			problem := s.Problem
			problem.Direction = direction
			if direction == study.Maximize {
				problem.Observations = slices.Clone(problem.Observations)
				for k, told := range problem.Observations {
					problem.Observations[k].Values = study.Values{-told.Values.First()}
				}
				if suggestion.Reasons.Mean != nil {
					mean := -*suggestion.Reasons.Mean
					suggestion.Reasons.Mean = &mean
				}
			}
			request := *r
			request.Problem = &problem
			o.watch(&request, m, []optimizer.Suggestion{suggestion}, c.noise)
			if m.Idle != c.want {
				t.Errorf("%d, %s: %d idle requests after %d, want %d", i, direction, m.Idle, c.idle, c.want)
			}
		}
	}
}
