package lgp

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func options(t testing.TB, change func(*Options)) Options {
	o := FromSettings(optimizertest.Defaults(t, Settings()))
	change(&o)
	return o
}

// The search of the paper is slow, so only the default has it here.
func TestConformance(t *testing.T) {
	for name, o := range map[string]Options{
		"latent":          options(t, func(o *Options) { o.Samples, o.Sweeps = 2, 2 }),
		"heteroscedastic": options(t, func(o *Options) { o.Model, o.Samples, o.Sweeps, o.Search = Heteroscedastic, 2, 2, Climb }),
		"warped":          options(t, func(o *Options) { o.Model, o.Samples, o.Sweeps, o.Search = Warped, 2, 2, Climb }),
		"shared, ucb":     options(t, func(o *Options) { o.Model, o.Samples, o.Sweeps, o.Search, o.Acquisition = Shared, 2, 2, Climb, UCB }),
	} {
		if testing.Short() && name != "latent" {
			continue // the models run concurrently in the same way
		}
		t.Run(name, func(t *testing.T) { optimizertest.Run(t, func() optimizer.Optimizer { return New(o) }) })
	}
}

// bowl is the sum of squares around 0.6.
func bowl(p study.Point) float64 {
	var sum float64
	for _, name := range []string{"x1", "x2"} {
		x := p[name].(float64) - 0.6
		sum += x * x
	}
	return sum
}

// Each model finds a smooth minimum, with four evaluations at once. Of 30 random points
// the best is about 0.01. The heteroscedastic model's prior expects noise as large as the
// outcomes' spread.
func TestFindsTheMinimum(t *testing.T) {
	for _, kind := range []Model{Latent, Plain, Homoscedastic, Heteroscedastic, Shared, Warped} {
		o := options(t, func(o *Options) { o.Model, o.Samples, o.Sweeps = kind, 5, 15 })
		s := optimizertest.NewSession(t, New(o), optimizertest.Cube(t, 2, 0, 1), 2)
		s.Run(30, 4, bowl)
		limit := 2e-3
		if kind == Heteroscedastic {
			limit = 5e-3
		}
		if best := s.Best(); best > limit {
			t.Errorf("%s: the best of 30 trials is %.2g, the minimum 0", kind, best)
		}
	}
}

// A region where all evaluations fail attracts fewer of them than its share of the space,
// which is 60 of 120 with a standard deviation of 5.5, although the best point lies beside it.
func TestKeepsAwayFromFailures(t *testing.T) {
	failed := 0
	for seed := range uint64(3) {
		o := options(t, func(o *Options) { o.Samples, o.Sweeps = 4, 12 })
		s := optimizertest.NewSession(t, New(o), optimizertest.Cube(t, 2, 0, 1), seed)
		for trial := 1; trial <= 40; trial++ {
			p := s.Ask(1)[0].Point
			if p["x1"].(float64) < 0.5 {
				failed++
				s.End(trial, optimizer.OutcomeFailed, 0)
				continue
			}
			s.Tell(trial, bowl(p))
		}
	}
	if failed > 51 {
		t.Errorf("%d of 120 evaluations failed, in half of the space", failed)
	}
}

// The scale is drawn from its three values with equal probability, and only for the
// latent model.
func TestScales(t *testing.T) {
	r := &optimizer.Request{Rand: optimizer.NewRand(1, 1)}
	count := map[scale]int{}
	const n = 3000
	drawn := proposer{options: Options{Model: Latent}}
	for _, s := range drawn.scales(r, n) {
		count[s]++
	}
	for s, share := range []float64{0, 0.01, 0.1} {
		if got := float64(count[scale(s)]) / n; math.Abs(got-1./3) > 0.04 {
			t.Errorf("scale %v is drawn with frequency %.3f", share, got)
		}
		if want := share * math.Sqrt(6); drawn.sd(scale(s), 6) != want {
			t.Errorf("in 6 dimensions the standard deviation is %v, want %v", drawn.sd(scale(s), 6), want)
		}
	}
	given := proposer{options: Options{Model: Latent, Scale: 0.5}}
	for _, s := range given.scales(r, 10) {
		if got := given.sd(s, 4); got != 1 {
			t.Errorf("half of the diagonal of 4 dimensions is %v, want 1", got)
		}
	}
	plain := proposer{options: Options{Model: Plain, Scale: 0.5}}
	for _, s := range plain.scales(r, 10) {
		if s != 0 || plain.sd(s, 4) != 0 {
			t.Errorf("the plain model has the scale %v", s)
		}
	}
}

// A state holds the chains at the largest number of observations, and continues them at
// the observations that they belong to.
func TestMemory(t *testing.T) {
	m := readMemory(nil, Latent)
	of, moved := make([]int, maxPoints), make([]int, maxPoints)
	c := &chain{theta: []float64{-1.0 / 3}, latent: make([]float64, maxPoints)}
	for i := range of {
		of[i], moved[maxPoints-1-i], c.latent[i] = 1_000_000+i, 1_000_000+i, -float64(i)/1000-7
	}
	m.Cursor = math.MaxUint32
	for s := range shares {
		m.keep(c, of, scale(s))
	}
	state := m.state()
	if len(state) > optimizer.MaxStateSize {
		t.Fatalf("a state of %d bytes", len(state))
	}
	back := readMemory(state, Latent)
	if diff := cmp.Diff(m, back); diff != "" {
		t.Errorf("a memory and what is read of its state (-want +got):\n%s", diff)
	}
	x, y := randomly(optimizer.NewRand(1, 1), maxPoints, 1)
	again, known := back.chain(newTarget(Latent, kernel.Continuous(1), x, y, 0.1), moved, 2)
	if !known || again.theta[0] != -1.0/3 || again.latent[0] != c.latent[maxPoints-1] || again.latent[maxPoints-1] != c.latent[0] {
		t.Errorf("the chain continues: %v, at %v and %v", known, again.theta, again.latent)
	}
	if other := readMemory(state, Plain); other.Cursor != 0 || other.Chains[0] != nil {
		t.Error("the memory of another model is used")
	}
}

func BenchmarkSuggest(b *testing.B) {
	o := options(b, func(*Options) {})
	for _, n := range []int{30, 100, 256} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			s := optimizertest.NewSession(b, New(o), optimizertest.Cube(b, 6, 0, 1), 1)
			s.Problem.MaxTrials = 2 * n
			rng := optimizer.NewRand(1, 1)
			for trial := 1; trial <= n; trial++ {
				p, value := study.Point{}, 0.0
				for i := range 6 {
					x := rng.Float64()
					p[fmt.Sprintf("x%d", i+1)], value = x, value+math.Sin(20*x)+x*x
				}
				s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
					Trial: trial, Point: p, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value},
				})
			}
			s.Problem.First = n + 1
			var state optimizer.State
			for i := range 9 { // every scale's chain has begun
				_, next, err := New(o).Suggest(b.Context(), &s.Problem, state, 1, optimizer.NewRand(1, i))
				if err != nil {
					b.Fatal(err)
				}
				state = next
			}
			i := 0
			for b.Loop() {
				i++
				if _, _, err := New(o).Suggest(b.Context(), &s.Problem, state, 1, optimizer.NewRand(2, i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
