package turbo

import (
	"math"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/hebo"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func create(t testing.TB, change func(*Options)) optimizer.Optimizer {
	t.Helper()
	o := FromSettings(optimizertest.Defaults(t, Settings()))
	change(&o)
	plain := hebo.New(hebo.FromSettings(optimizertest.Defaults(t, hebo.PlainSettings())))
	return New(o, plain.(optimizer.Recommender))
}

func TestConformance(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"turbo":  func(*Options) {},
		"turbo+": func(o *Options) { o.Warp, o.Transform = true, true },
	} {
		if testing.Short() && name != "turbo" {
			continue // it runs concurrently in the same way
		}
		t.Run(name, func(t *testing.T) { optimizertest.Run(t, func() optimizer.Optimizer { return create(t, change) }) })
	}
}

func bowl(p study.Point) float64 {
	var sum float64
	for _, x := range p {
		sum += (x.(float64) - 0.6) * (x.(float64) - 0.6)
	}
	return sum
}

// The best of 60 random points in four columns is about 0.06.
func TestFindsTheMinimum(t *testing.T) {
	s := optimizertest.NewSession(t, create(t, func(*Options) {}), optimizertest.Cube(t, 4, 0, 1), 2)
	s.Run(60, 4, bowl)
	if best := s.Best(); best > 3e-3 {
		t.Errorf("the best of 60 trials is %.2g, the minimum 0", best)
	}
}

// On a flat objective nothing succeeds: after the design the region halves seven times, and
// then a second design comes.
func TestRestarts(t *testing.T) {
	const initial, dim = 5, 2
	o := create(t, func(o *Options) { o.Initial = initial })
	s := optimizertest.NewSession(t, o, optimizertest.Cube(t, dim, 0, 1), 3)
	restart := initial + 7*leastFailures
	s.Run(restart+initial+2, 1, func(study.Point) float64 { return 1 })
	for i, suggested := range s.Suggested {
		want := optimizer.SourceModel
		if i < initial || i >= restart && i < restart+initial {
			want = optimizer.SourceDesign
		}
		if suggested.Source != want {
			t.Errorf("trial %d is of %s, want %s", i+1, suggested.Source, want)
		}
	}
	if note := s.Suggested[restart+initial].Reasons.Note; !strings.Contains(note, "which was restarted after 33 trials") {
		t.Errorf("the note after the restart: %q", note)
	}
	if note := s.Suggested[restart-1].Reasons.Note; !strings.Contains(note, "a trust region of side 0.0125") {
		t.Errorf("the note before the restart: %q", note)
	}
}

// leastFailures is the paper's max(4/q, d/q) for one evaluation at a time and few columns.
const leastFailures = 4

// In ten columns a trust region is well ahead of random search, on average over seeds.
func TestRegretIsBelowRandom(t *testing.T) {
	f, err := testfunc.Get("levy-10")
	if err != nil {
		t.Fatal(err)
	}
	regret := func(o optimizer.Optimizer) (mean float64) {
		const seeds = 3
		for seed := range uint64(seeds) {
			s := optimizertest.NewSession(t, o, optimizertest.Cube(t, f.Dim(), 0, 1), seed)
			e := optimizer.NewEncoding(s.Problem.Space)
			s.Run(120, 1, func(p study.Point) float64 { return f.Value(f.Scale(e.Encode(p))) })
			mean += math.Log10(s.Best()-f.Minimum) / seeds
		}
		return mean
	}
	if got, chance := regret(create(t, func(*Options) {})), regret(random.New()); got > chance-0.5 {
		t.Errorf("log10 regret %.3g after 120 trials, by chance %.3g", got, chance)
	}
}

func BenchmarkSuggest(b *testing.B) {
	optimizertest.Benchmark(b, func() optimizer.Optimizer { return create(b, func(*Options) {}) }, 32, 128, 512)
}
