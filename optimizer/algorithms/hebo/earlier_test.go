package hebo

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// dish is a function of three parameters whose minimum, 0, is near (0.7, 0.2, 0.6), moved by shift.
func dish(p study.Point, shift float64) float64 {
	a, b, c := p["x1"].(float64)-0.7-shift, p["x2"].(float64)-0.2-shift, p["x3"].(float64)-0.6+shift
	return a*a + 3*b*b + c*c + 0.3*math.Abs(math.Sin(9*a*b))
}

// earlier returns studies of 40 random points each, with costs by which f maps those of moved dishes.
func earlier(studies int, f func(cost float64) float64) []optimizer.Earlier {
	rng := optimizer.NewRand(7, 1)
	var all []optimizer.Earlier
	for i := range studies {
		e := optimizer.Earlier{Name: string(rune('a' + i))}
		for range 40 {
			p := study.Point{"x1": rng.Float64(), "x2": rng.Float64(), "x3": rng.Float64()}
			e.Points = append(e.Points, p)
			e.Costs = append(e.Costs, f(dish(p, 0.03*float64(i))))
		}
		all = append(all, e)
	}
	return all
}

// meanBest is the mean over five seeds of the best value after some trials of two workers.
func meanBest(t *testing.T, trials int, from []optimizer.Earlier) float64 {
	t.Helper()
	var mean float64
	const seeds = 5
	for seed := range uint64(seeds) {
		s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 3, 0, 1), seed+1)
		s.Problem.MaxTrials, s.Problem.Parallelism, s.Problem.Earlier = 40, 2, from
		s.Run(trials, 2, func(p study.Point) float64 { return dish(p, 0) })
		mean += s.Best() / seeds
	}
	return mean
}

// Earlier studies of similar functions, in another unit, take the first trials close to the best. Those of functions
// that are upside down, or have nothing to do with the parameters, cost little.
func TestEarlierStudies(t *testing.T) {
	none := meanBest(t, 6, nil)
	similar := meanBest(t, 6, earlier(3, func(cost float64) float64 { return math.Exp(20 * cost) }))
	if similar > none/3 {
		t.Errorf("the best of 6 trials is %.3g with similar earlier studies, and %.3g without", similar, none)
	}
	rng := optimizer.NewRand(3, 1)
	for name, f := range map[string]func(float64) float64{
		"upside down": func(cost float64) float64 { return -cost },
		"random":      func(float64) float64 { return rng.Float64() },
	} {
		without, with := meanBest(t, 24, nil), meanBest(t, 24, earlier(3, f))
		// The mean of 24 random points is about 0.05.
		if with > without+0.01 {
			t.Errorf("%s: the best of 24 trials is %.3g with earlier studies, and %.3g without", name, with, without)
		}
	}
}

// The hyperparameters of the earlier studies' models are searched for once, and the first point is one of theirs. A
// study that has no parameter in common is left out.
func TestEarlierStudiesAreFittedOnce(t *testing.T) {
	from := append(earlier(2, math.Sqrt), optimizer.Earlier{
		Name: "stranger", Points: []study.Point{{"z": 1.0}, {"z": 2.0}, {"z": 3.0}, {"z": 4.0}}, Costs: []float64{1, 2, 3, 4},
	})
	s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 3, 0, 1), 1)
	s.Problem.Earlier = from
	first := s.Ask(1)[0]
	if got := first.Reasons.Note; !strings.Contains(got, "good in earlier studies (a, b)") {
		t.Errorf("the first point: %s", got)
	}
	if v := dish(first.Point, 0); v > 0.1 {
		t.Errorf("the first point has the value %.3g", v)
	}
	params := DefaultOptions().Surrogate.NumParams(optimizer.NewEncoding(s.Problem.Space))
	before := readMemory(s.State, params).Earlier
	if len(before) != 2 {
		t.Fatalf("%d models of earlier studies were kept, want 2", len(before))
	}
	for trial := 1; trial <= 8; trial++ {
		s.Tell(trial, dish(s.Problem.Pending[0].Point, 0))
		s.Ask(1)
	}
	if diff := cmp.Diff(before, readMemory(s.State, params).Earlier); diff != "" {
		t.Errorf("models of earlier studies (-first +later):\n%s", diff)
	}
}

// Reasons name the earlier study that speaks for a point. A study of random outcomes is hardly ever named, and a study without
// earlier ones names none.
func TestReasonsNameEarlierStudies(t *testing.T) {
	rng := optimizer.NewRand(11, 1)
	similar := earlier(1, math.Sqrt)[0]
	similar.Name = "march"
	chance := earlier(1, func(float64) float64 { return rng.Float64() })[0]
	chance.Name = "chance"
	for _, from := range [][]optimizer.Earlier{{similar, chance}, nil} {
		s := optimizertest.NewSession(t, New(DefaultOptions()), optimizertest.Cube(t, 3, 0, 1), 1)
		s.Problem.MaxTrials, s.Problem.Earlier = 40, from
		s.Run(24, 1, func(p study.Point) float64 { return dish(p, 0) })
		named := map[string]int{}
		byModel := 0
		for _, one := range s.Suggested {
			if one.Source != optimizer.SourceModel {
				continue
			}
			byModel++
			for _, name := range []string{"march", "chance", "earlier"} {
				if strings.Contains(one.Reasons.Note, name) {
					named[name]++
				}
			}
		}
		switch {
		case from == nil && len(named) > 0:
			t.Errorf("without earlier studies the reasons name some: %v", named)
		case from != nil && (named["march"] < byModel/2 || named["chance"] > byModel/8):
			t.Errorf("of %d reasons, this many name each study: %v", byModel, named)
		}
	}
}

// Parameters that an earlier study did not have, and values out of range, do no harm: what it knows of the others
// counts.
func TestEarlierStudiesOfOtherSpaces(t *testing.T) {
	rng := optimizer.NewRand(9, 1)
	wide := optimizer.Earlier{Name: "wide"}
	for range 60 {
		p := study.Point{"x1": 3*rng.Float64() - 1, "x2": 3*rng.Float64() - 1, "other": "sgd"}
		wide.Points = append(wide.Points, p)
		wide.Costs = append(wide.Costs, dish(study.Point{"x1": p["x1"], "x2": p["x2"], "x3": 0.6}, 0))
	}
	none, with := meanBest(t, 6, nil), meanBest(t, 6, []optimizer.Earlier{wide})
	if with > none {
		t.Errorf("the best of 6 trials is %.3g with an earlier study of a wider space, and %.3g without", with, none)
	}
}

// BenchmarkEarlier is BenchmarkSuggest for one point, in a study without earlier ones and with seven of them.
func BenchmarkEarlier(b *testing.B) {
	rng := optimizer.NewRand(5, 1)
	var seven []optimizer.Earlier
	for i := range 7 {
		e := optimizer.Earlier{Name: string(rune('a' + i))}
		for range 128 {
			p, cost := study.Point{}, 0.0
			for c := range 9 {
				x := rng.Float64()
				p[fmt.Sprintf("x%d", c+1)] = x
				cost += (x - 0.5) * (x - 0.5) * float64(c+1)
			}
			e.Points, e.Costs = append(e.Points, p), append(e.Costs, cost)
		}
		seven = append(seven, e)
	}
	for name, from := range map[string][]optimizer.Earlier{"none": nil, "seven": seven} {
		b.Run(name, func(b *testing.B) {
			s := observed(b, 64)
			o := New(DefaultOptions())
			p := s.Problem
			p.Earlier = from
			_, state, err := o.Suggest(b.Context(), &p, nil, 1, optimizer.NewRand(p.Seed, p.First))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, _, err := o.Suggest(b.Context(), &p, state, 1, optimizer.NewRand(p.Seed, p.First)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// With a setting for cost, the first points are quick ones by what earlier studies took; otherwise their times change nothing.
func TestEarlierTimes(t *testing.T) {
	bowl := func(p study.Point) float64 { return math.Abs(p["x1"].(float64)-0.7) + math.Abs(p["x2"].(float64)-0.2) }
	seconds := func(p study.Point) float64 { return math.Exp(6 * p["x3"].(float64)) }
	values, times := earlier(3, math.Sqrt), earlier(3, math.Sqrt)
	for i := range times {
		for k, p := range times[i].Points {
			values[i].Costs[k] = bowl(p)
			times[i].Costs[k], times[i].Seconds = bowl(p), append(times[i].Seconds, seconds(p))
		}
	}
	first := func(cost Cost, from []optimizer.Earlier, n int) (points []study.Point) {
		options := DefaultOptions()
		options.Cost = cost
		s := optimizertest.NewSession(t, New(options), optimizertest.Cube(t, 3, 0, 1), 1)
		s.Problem.MaxTrials, s.Problem.Earlier = 40, from
		for range n {
			batch := s.Ask(1)
			points = append(points, batch[0].Point)
			s.Tell(len(points), bowl(batch[0].Point))
			s.Problem.Observations[len(points)-1].Seconds = 3 * seconds(batch[0].Point) // on a slower machine
		}
		return points
	}
	none, silent := first(CostNone, times, 6), first(CostNone, values, 6)
	if diff := cmp.Diff(silent, none); diff != "" {
		t.Errorf("the times of earlier studies change a study that does not count them (-without +with):\n%s", diff)
	}
	cooled := first(CostCooled, times, 6)
	took := func(points []study.Point) (sum float64) {
		for _, p := range points {
			sum += seconds(p)
		}
		return sum
	}
	if quick, slow := took(cooled[:1]), took(none[:1]); quick > slow/3 || bowl(cooled[0]) > 0.2 {
		t.Errorf("the first trial takes %.3g s in place of %.3g s, and finds %.3g", quick, slow, bowl(cooled[0]))
	}
	if quick, slow := took(cooled), took(first(CostCooled, values, 6)); quick > slow/1.5 {
		t.Errorf("six trials take %.3g s with the times of earlier studies, and %.3g s without", quick, slow)
	}
}

// BenchmarkEarlierTimes measures a suggestion that weighs the time, with 40 trials and seven earlier studies: which say how long theirs
// took, or not.
func BenchmarkEarlierTimes(b *testing.B) {
	rng := optimizer.NewRand(5, 1)
	for _, timed := range []bool{false, true} {
		b.Run(fmt.Sprintf("timed=%v", timed), func(b *testing.B) {
			s := observed(b, 40)
			options := DefaultOptions()
			options.Cost = CostPerSecond
			o, p := New(options), s.Problem
			took := func(p study.Point) float64 { return math.Exp(2 * p["x1"].(float64)) }
			for i := range p.Observations {
				p.Observations[i].Seconds = took(p.Observations[i].Point)
			}
			for i := range 7 {
				e := optimizer.Earlier{Name: string(rune('a' + i))}
				for range 128 {
					at := study.Point{}
					for _, parameter := range p.Space.Parameters() {
						at[parameter.Name] = rng.Float64()
					}
					e.Points, e.Costs = append(e.Points, at), append(e.Costs, rng.Float64())
					if timed {
						e.Seconds = append(e.Seconds, took(at))
					}
				}
				p.Earlier = append(p.Earlier, e)
			}
			_, state, err := o.Suggest(b.Context(), &p, nil, 1, optimizer.NewRand(p.Seed, p.First))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				p.Observations[0].Seconds *= 1.0001 // so that the model is fitted again
				if _, _, err := o.Suggest(b.Context(), &p, state, 1, optimizer.NewRand(p.Seed, p.First)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
