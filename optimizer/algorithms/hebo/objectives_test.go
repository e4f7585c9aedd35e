package hebo

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestConformanceOfSeveral(t *testing.T) {
	optimizertest.RunSeveral(t, func() optimizer.Optimizer { return New(DefaultOptions()) })
}

// missing plays a function of several objectives with eight trials at once, and returns how
// much of its front's hypervolume is missing in the end. The first objective is maximised.
func missing(t *testing.T, o optimizer.Optimizer, f testfunc.Vector, trials int, change func(p *optimizer.Problem)) float64 {
	t.Helper()
	return missingBy(t, o, f, trials, 1, change)
}

// missingBy is missing with a seed.
func missingBy(
	t *testing.T, o optimizer.Optimizer, f testfunc.Vector, trials int, seed uint64, change func(p *optimizer.Problem),
) float64 {
	t.Helper()
	s := optimizertest.NewSession(t, o, optimizertest.Cube(t, len(f.Lower), 0, 1), seed)
	s.Problem.MaxTrials, s.Problem.Parallelism = trials, 8
	for k, r := range f.Reference {
		s.Problem.Objectives = append(s.Problem.Objectives, study.Objective{Metric: fmt.Sprint("f", k), Direction: study.Minimize, Reference: &r})
	}
	worst := -f.Reference[0]
	s.Problem.Direction, s.Problem.Objectives[0].Direction, s.Problem.Objectives[0].Reference = study.Maximize, study.Maximize, &worst
	change(&s.Problem)
	var found [][]float64
	for len(found) < trials {
		if free := min(8-len(s.Problem.Pending), trials-s.Problem.First+1); free > 0 {
			s.Ask(free)
		}
		p := s.Problem.Pending[0]
		x := make([]float64, len(f.Lower))
		for i := range x {
			x[i] = f.Lower[i] + p.Point[fmt.Sprintf("x%d", i+1)].(float64)*(f.Upper[i]-f.Lower[i])
		}
		y := f.Value(x)
		found = append(found, y)
		told := slices.Clone(y)
		told[0] = -told[0]
		s.TellAll(p.Trial, told)
	}
	return f.Hypervolume - pareto.Hypervolume(found, f.Reference)
}

// The search closes in on the front, for exact improvements and for random mixtures.
func TestFrontIsFound(t *testing.T) {
	as := func(*optimizer.Problem) {}
	for _, c := range []struct {
		function string
		share    float64 // of what random search misses
		seeds    uint64  // on dtlz2-6-3 single runs differ by a factor of two
	}{{"branin-currin", 0.1, 1}, {"zdt1-6", 0.02, 1}, {"dtlz2-6-3", 0.8, 3}, {"dtlz2-8-5", 0.95, 1}} {
		f := vector(t, c.function)
		var drawn, got float64
		for seed := range c.seeds {
			drawn += missingBy(t, random.New(), f, 64, 1+seed, as) / float64(c.seeds)
			got += missingBy(t, New(DefaultOptions()), f, 64, 1+seed, as) / float64(c.seeds)
		}
		if got > c.share*drawn {
			t.Errorf("%s: %.3g of the hypervolume are missing after 64 trials, random search misses %.3g", c.function, got, drawn)
		}
	}
}

// Without references the front that was found gives one.
func TestFrontWithoutReferences(t *testing.T) {
	f := vector(t, "branin-currin")
	drawn := missing(t, random.New(), f, 48, func(*optimizer.Problem) {})
	got := missing(t, New(DefaultOptions()), f, 48, func(p *optimizer.Problem) {
		for k := range p.Objectives {
			p.Objectives[k].Reference = nil
		}
	})
	if got > 0.5*drawn {
		t.Errorf("%.3g of the hypervolume are missing, random search misses %.3g", got, drawn)
	}
}

// The front of ZDT2 bends such that the first points on it are those with a first objective of
// almost 0. The search leaves them.
func TestFrontIsLeftWhereItIsNarrow(t *testing.T) {
	f := vector(t, "zdt2-6")
	got := missing(t, New(DefaultOptions()), f, 48, func(p *optimizer.Problem) {
		for k := range p.Objectives {
			p.Objectives[k].Reference = nil
		}
	})
	if end := 10 + 1.0/3; got > end/10 { // what is missing with the end of the front alone
		t.Errorf("%.3g of the hypervolume are missing, with one end of the front %.3g", got, end)
	}
}

func vector(t *testing.T, name string) testfunc.Vector {
	t.Helper()
	all := testfunc.Vectors()
	i := slices.IndexFunc(all, func(f testfunc.Vector) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no function %s", name)
	}
	return all[i]
}

func TestReferencePoint(t *testing.T) {
	given := 7.0
	for _, c := range []struct {
		means [][]float64
		given []*float64
		want  []float64
	}{
		{[][]float64{{0, 1}, {1, 0}, {2, 2}}, []*float64{nil, nil}, []float64{1.3, 1.3}},
		{[][]float64{{0, 1}, {1, 0}, {2, 2}}, []*float64{nil, &given}, []float64{1.3, 7}},
		{[][]float64{{0, 0}, {2, 1}}, []*float64{nil, nil}, []float64{0.6, 0.3}},                   // a front of one point
		{[][]float64{{0, 1}, {0.01, 0}, {2, 2}}, []*float64{nil, nil}, []float64{0.01 + 0.6, 1.3}}, // narrow in the first
		{[][]float64{{4, 5}}, []*float64{nil, nil}, []float64{4.3, 5.3}},
	} {
		got := reference(c.means, c.given)
		for k := range got {
			if math.Abs(got[k]-c.want[k]) > 1e-12 {
				t.Errorf("reference of %v: %v, want %v", c.means, got, c.want)
			}
		}
	}
}

// The norm of Knowles (2006), equation 2: the worst weighted cost, and a twentieth of all.
func TestChebyshev(t *testing.T) {
	if got, want := chebyshev([]float64{0.5, 1}, []float64{0.8, 0.2}), 0.4+0.05*0.6; math.Abs(got-want) > 1e-15 {
		t.Errorf("%v, want %v", got, want)
	}
}
