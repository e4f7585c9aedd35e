package duration_test

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// logTime returns the logarithm of an evaluation's time at a place of the unit square.
func logTime(x []float64) float64 { return 2*x[0] + math.Sin(3*x[1]) }

// machines returns earlier studies of 40 evaluations each, in which all took factor times as long as logTime says, up to a few percent.
func machines(e *optimizer.Encoding, log func(x []float64) float64, factors ...float64) (all []optimizer.Earlier) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, factor := range factors {
		one := optimizer.Earlier{Name: "earlier"}
		for range 40 {
			x := []float64{rng.Float64(), rng.Float64()}
			one.Points, one.Costs = append(one.Points, e.Decode(x)), append(one.Costs, rng.Float64())
			one.Seconds = append(one.Seconds, factor*math.Exp(log(x)+0.03*rng.NormFloat64()))
		}
		all = append(all, one)
	}
	return all
}

// own returns n evaluations in a corner of the square, on a machine where all take 7 times as long.
func own(e *optimizer.Encoding, n int) (told []optimizer.Observation) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range n {
		x := []float64{0.5 * rng.Float64(), 0.5 * rng.Float64()}
		told = append(told, optimizer.Observation{
			Point: e.Decode(x), Seconds: 7 * math.Exp(logTime(x)+0.03*rng.NormFloat64()), Outcome: optimizer.OutcomeCompleted,
		})
	}
	return told
}

// wrong returns the mean error of the model's logarithms on a grid, and the share of pairs of places that it has in the wrong order.
func wrong(t *testing.T, e *optimizer.Encoding, m *duration.Model) (off, swapped float64) {
	t.Helper()
	var got, want []float64
	for i := range 100 {
		x := []float64{float64(i%10) / 9, float64(i/10) / 9}
		got, want = append(got, m.At(e.Decode(x))[0].Mu), append(want, math.Log(7)+logTime(x))
	}
	pairs := 0.
	for i := range got {
		off += math.Abs(got[i]-want[i]) / float64(len(got))
		for k := range i {
			if math.Abs(want[i]-want[k]) > 0.2 { // they differ by a fifth
				pairs++
				if cmp.Compare(got[i], got[k]) != cmp.Compare(want[i], want[k]) {
					swapped++
				}
			}
		}
	}
	return off, swapped / pairs
}

func model(t *testing.T, e *optimizer.Encoding, p *optimizer.Problem) *duration.Model {
	t.Helper()
	m, err := new(duration.Medians).Of(t.Context(), e, p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Earlier studies on slower and quicker machines say which places take longer, and two evaluations by how much. More of them make up for
// earlier studies that mislead.
func TestEarlierStudies(t *testing.T) {
	e := encoding(t)
	for _, n := range []int{2, 4, 8} {
		p := optimizer.Problem{Observations: own(e, n), Earlier: machines(e, logTime, 2, 0.5), Seed: 1}
		off, swapped := wrong(t, e, model(t, e, &p))
		if off > 0.2 || swapped > 0.01 {
			t.Errorf("after %d: times are off by a factor of %.2f, and %.1f%% of pairs are swapped", n, math.Exp(off), 100*swapped)
		}
		if p.Earlier = nil; n < duration.MinEnded {
			continue
		}
		if alone, _ := wrong(t, e, model(t, e, &p)); alone < 2*off {
			t.Errorf("after %d: times are off by a factor of %.2f without earlier studies, and of %.2f with them", n, math.Exp(alone), math.Exp(off))
		}
	}
	against := func(x []float64) float64 { return -logTime(x) }
	p := optimizer.Problem{Observations: own(e, 24), Earlier: machines(e, against, 2, 0.5), Seed: 1}
	misled, _ := wrong(t, e, model(t, e, &p))
	p.Earlier = nil
	if alone, _ := wrong(t, e, model(t, e, &p)); misled > alone+0.4 {
		t.Errorf("off by a factor of %.2f without earlier studies, and of %.2f with some that mislead", math.Exp(alone), math.Exp(misled))
	}
}

// Earlier studies that do not say how long their evaluations took change nothing, nor do any once many evaluations have ended; and one
// evaluation is too few.
func TestEarlierStudiesWithoutTimes(t *testing.T) {
	e := encoding(t)
	says := func(n int, earlier []optimizer.Earlier) []duration.Estimate {
		p := optimizer.Problem{Observations: own(e, n), Earlier: earlier, Seed: 1}
		return model(t, e, &p).At(e.Decode([]float64{0.9, 0.9}), e.Decode([]float64{0.1, 0.2}))
	}
	silent := machines(e, logTime, 2)
	silent[0].Seconds = nil
	unknown := machines(e, logTime, 2)
	clear(unknown[0].Seconds)
	elsewhere := machines(e, logTime, 2)
	for i := range elsewhere[0].Points {
		elsewhere[0].Points[i] = study.Point{"other": 1.0}
	}
	for name, earlier := range map[string][]optimizer.Earlier{"silent": silent, "unknown": unknown, "elsewhere": elsewhere} {
		if got, want := says(6, earlier), says(6, nil); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v is expected, and %v without", name, got, want)
		}
	}
	if got, want := says(48, machines(e, logTime, 2)), says(48, nil); !reflect.DeepEqual(got, want) {
		t.Errorf("after 48: %v is expected, and %v without", got, want)
	}
	p := optimizer.Problem{Observations: own(e, 1), Earlier: machines(e, logTime, 2), Seed: 1}
	if _, err := new(duration.Medians).Of(t.Context(), e, &p); !errors.Is(err, duration.ErrTooFew) {
		t.Errorf("after one: %v", err)
	}
}

// The intervals of the whole model hold about what they should, also where it knows the places by earlier studies only.
func TestEarlierStudiesInIntervals(t *testing.T) {
	e := encoding(t)
	for _, n := range []int{2, 8} {
		var list []duration.Observation
		for _, o := range own(e, n) {
			list = append(list, duration.Observation{Point: o.Point, Seconds: o.Seconds})
		}
		m, err := duration.Fit(t.Context(), e, list, machines(e, logTime, 2, 0.5), 1)
		if err != nil {
			t.Fatal(err)
		}
		inside := 0
		for i := range 100 {
			x := []float64{float64(i%10) / 9, float64(i/10) / 9}
			a, took := m.At(e.Decode(x))[0], 7*math.Exp(logTime(x))
			if a.Quantile(0.05, 0) <= took && took <= a.Quantile(0.95, 0) {
				inside++
			}
		}
		if inside < 80 {
			t.Errorf("after %d: %d of 100 lie in intervals of nine tenths", n, inside)
		}
	}
}

// What evaluations cost in earlier studies counts for costs, and their times do not; before any has ended, they say which place
// takes, or costs, more.
func TestEarlierCosts(t *testing.T) {
	e := encoding(t)
	told := own(e, 4)
	for i := range told {
		told[i].Cost, told[i].Seconds = told[i].Seconds, 1
	}
	earlier := machines(e, logTime, 200)
	p := optimizer.Problem{Observations: told, Earlier: earlier, Seed: 1, Cost: &optimizer.Cost{Metric: "dollars"}}
	var kept duration.Medians
	with := func() float64 {
		t.Helper()
		m, err := kept.OfCosts(t.Context(), e, &p)
		if err != nil {
			t.Fatal(err)
		}
		off, _ := wrong(t, e, m)
		return off
	}
	times := with()
	for i := range earlier {
		earlier[i].Spent, earlier[i].Seconds = earlier[i].Seconds, nil
	}
	kept = duration.Medians{}
	if costs := with(); costs > 0.2 || costs > times/2 {
		t.Errorf("costs are off by a factor of %.2f, and of %.2f if earlier studies have times only", math.Exp(costs), math.Exp(times))
	}
	x := mat.NewDense(2, 2, []float64{0.1, 0.1, 0.9, 0.5})
	longer := kept.Longer(t.Context(), e, &p, x)
	if len(longer) != 2 || math.Abs(longer[1]-longer[0]-(logTime([]float64{0.9, 0.5})-logTime([]float64{0.1, 0.1}))) > 0.2 {
		t.Errorf("the cost is longer by %v", longer)
	}
	if p.Cost = nil; kept.Longer(t.Context(), e, &p, x) != nil {
		t.Error("earlier studies that have no times say which place takes longer")
	}
}

// Once two evaluations have ended, none is begun that takes too long by earlier studies.
func TestEarlierStudiesInTime(t *testing.T) {
	e := encoding(t)
	p := optimizer.Problem{
		Space: optimizertest.Cube(t, 2, 0, 1), Direction: study.Minimize, MaxTrials: 100, Parallelism: 2, First: 3,
		Observations: own(e, 2), Time: &optimizer.Time{Budget: 100, Left: 30}, // 7·exp(0.2) = 9 s and 7·exp(2.6) = 94 s
	}
	ask := func() []optimizer.Suggestion {
		t.Helper()
		f := fixed{e.Decode([]float64{0.1, 0}), e.Decode([]float64{0.8, 0.5})}
		list, _, err := duration.InTime(t.Context(), f, &p, nil, 2, optimizer.NewRand(1, 3))
		if err != nil || len(list) != 2 {
			t.Fatalf("the suggestions are %+v, %v; want two", list, err)
		}
		return list
	}
	if list := ask(); list[1].Point["x1"] != 0.8 || list[1].Seconds != 0 {
		t.Errorf("without earlier studies the suggestions are %+v, want them as they are", list)
	}
	p.Earlier = machines(e, logTime, 2, 0.5)
	if list := ask(); list[0].Point["x1"] != 0.1 || list[1].Point["x1"] == 0.8 || list[1].Seconds > 30 || list[1].Seconds < 10 {
		t.Errorf("with earlier studies the suggestions are %+v, want another second one", list)
	}
}
