package optimizer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
	"github.com/fantasia-hpo/fantasia/study"
)

// trialsOf returns observations with a trial for each of some means, and what is expected of them.
func trialsOf(means ...[]float64) (p *Problem, observations []int, of []Expected) {
	p = &Problem{
		Objectives: []study.Objective{{Metric: "accuracy", Direction: study.Maximize}, {Metric: "seconds", Direction: study.Minimize}},
	}
	for i, m := range means {
		p.Observations = append(p.Observations, Observation{Trial: 10 + i, Outcome: OutcomeCompleted, Point: study.Point{"x": i}})
		observations, of = append(observations, i), append(of, Expected{Trial: 10 + i, Means: m, SDs: []float64{0.1, 2}})
	}
	return p, observations, of
}

func frontTrials(r *Recommendation) (trials []int, knee int) {
	for _, e := range r.Front {
		trials = append(trials, e.Trial)
		if e.Knee {
			knee = e.Trial
		}
	}
	return trials, knee
}

// The accuracy of trial 12 is lost to nobody but costs little time: it is the knee. Trial 13 is
// dominated, and 15 is 10 again.
func TestRecommendFront(t *testing.T) {
	p, observations, of := trialsOf(
		[]float64{0.9, 100}, []float64{0.1, 1}, []float64{0.85, 10}, []float64{0.8, 50}, []float64{0.4, 7}, []float64{0.9, 100},
	)
	r := p.RecommendFront(observations, of)
	trials, knee := frontTrials(r)
	if !slices.Equal(trials, []int{10, 12, 14, 11}) || knee != 12 {
		t.Errorf("the front has %v and the knee %d", trials, knee)
	}
	if r.Trial != 12 || r.Mean != 0.85 || r.SD != 0.1 || r.Point["x"] != 2 {
		t.Errorf("recommended is %+v", r)
	}
	p, observations, of = trialsOf([]float64{0.5, 5}, []float64{0.7, 9})
	if trials, knee := frontTrials(p.RecommendFront(observations, of)); !slices.Equal(trials, []int{11, 10}) || knee != 0 {
		t.Errorf("two trials have no knee, got %v and %d", trials, knee)
	}
	if r := p.RecommendFront(observations, of); r.Trial != 11 {
		t.Errorf("without a knee trial %d is recommended, want the best in the first objective, 11", r.Trial)
	}
	if r := p.RecommendFront(nil, nil); r != nil {
		t.Errorf("of nothing %+v", r)
	}
}

// A large front keeps its ends and its knee, and nothing that is dominated.
func TestRecommendFrontIsBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var means [][]float64
	for range 500 {
		angle := rng.Float64() * math.Pi / 2
		means = append(means, []float64{math.Sin(angle), -math.Cos(angle)}) // accuracy up, seconds down: all are on it
	}
	p, observations, of := trialsOf(means...)
	r := p.RecommendFront(observations, of)
	trials, knee := frontTrials(r)
	if len(trials) != MaxRecommended || knee != r.Trial {
		t.Fatalf("%d trials, the knee %d, recommended %d", len(trials), knee, r.Trial)
	}
	first := func(a, b []float64) bool { return a[0] < b[0] }
	best, worst := means[0], means[0]
	for _, m := range means {
		if first(best, m) {
			best = m
		}
		if first(m, worst) {
			worst = m
		}
	}
	if !slices.Equal(r.Front[0].Means, best) || !slices.Equal(r.Front[len(trials)-1].Means, worst) {
		t.Errorf("the ends are %v and %v, want %v and %v", r.Front[0].Means, r.Front[len(trials)-1].Means, best, worst)
	}
	slices.Sort(trials)
	if distinct := slices.Compact(slices.Clone(trials)); len(distinct) != len(trials) {
		t.Errorf("a trial is twice in %v", trials)
	}
}

// Without a model the front is that of the values within all limits.
func TestBestOfSeveralObjectives(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := &Problem{
		Objectives: []study.Objective{{Metric: "a", Direction: study.Minimize}, {Metric: "b", Direction: study.Minimize}},
		Limits:     []study.Limit{{Metric: "c", Max: new(0.0)}},
	}
	var within [][]float64
	var trials []int
	for i := range 60 {
		o := Observation{
			Trial: i + 1, Outcome: OutcomeCompleted, Values: study.Values{rng.Float64(), rng.Float64()}, Excess: []float64{rng.Float64() - 0.5},
		}
		if o.Excess[0] <= 0 {
			within, trials = append(within, o.Values), append(trials, o.Trial)
		}
		p.Observations = append(p.Observations, o)
	}
	var want []int
	for _, i := range pareto.Front(within) {
		want = append(want, trials[i])
	}
	got, _ := frontTrials(p.Best())
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the front is %v, want %v", got, want)
	}
	p.Observations = nil
	if r := p.Best(); r != nil {
		t.Errorf("of nothing %+v", r)
	}
}
