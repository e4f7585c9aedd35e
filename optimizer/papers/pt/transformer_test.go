package pt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/hebo"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// beyond returns the optimiser to which the registry hands over.
func successor(t testing.TB) Successor {
	t.Helper()
	return hebo.New(hebo.FromSettings(optimizertest.Defaults(t, hebo.PlainSettings()))).(Successor)
}

func defaults(t testing.TB) Options {
	t.Helper()
	return FromSettings(optimizertest.Defaults(t, Settings()))
}

func create(t testing.TB, o Options) optimizer.Optimizer {
	t.Helper()
	return New(o, Embedded(), successor(t))
}

func TestConformance(t *testing.T) {
	models := Embedded()
	optimizertest.Run(t, func() optimizer.Optimizer { return New(defaults(t), models, successor(t)) })
}

// Each acquisition function finds a point near the minimum of a bowl that was evaluated often.
func TestAcquisitions(t *testing.T) {
	for _, a := range []Acquisition{EI, PI, UCB} {
		o := defaults(t)
		o.Acquisition, o.Kappa = a, 0.5
		s := bowl(t, create(t, o), 2, 40)
		b := s.Ask(1)[0]
		x := optimizer.NewEncoding(s.Problem.Space).Encode(b.Point)
		if value := b.Reasons.Acquisition[string(a)]; distance(x) > 0.01 || value == 0 {
			t.Errorf("%s: %v, at a distance of %.2f from the minimum, with the value %v", a, x, math.Sqrt(distance(x)), value)
		}
	}
}

// The suite's mixed space is one that a transformer serves.
func TestSuiteUsesTheTransformer(t *testing.T) {
	c := newCoder(optimizer.NewEncoding(optimizertest.Mixed(t)))
	if m, why, err := Embedded().of(c.columns, 50); m == nil || err != nil {
		t.Errorf("%d columns: %s, %v", c.columns, why, err)
	}
}

// bowl tells a session n values of a bowl at uniform points.
func bowl(t testing.TB, o optimizer.Optimizer, d, n int) *optimizertest.Session {
	t.Helper()
	s := optimizertest.NewSession(t, o, optimizertest.Cube(t, d, 0, 1), 1)
	rng, encoding := optimizer.NewRand(3, 1), optimizer.NewEncoding(s.Problem.Space)
	for trial := 1; trial <= n; trial++ {
		x := make([]float64, d)
		for i := range x {
			x[i] = rng.Float64()
		}
		s.Problem.Observations = append(s.Problem.Observations, optimizer.Observation{
			Trial: trial, Point: encoding.Decode(x), Outcome: optimizer.OutcomeCompleted, Values: study.Values{distance(x)},
		})
	}
	s.Problem.First, s.Problem.MaxTrials = n+1, 4*n
	return s
}

func distance(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += (v - 0.7) * (v - 0.7)
	}
	return sum
}

// Outside of what was trained, gp chooses the points, and the reasons say so.
func TestHandsOver(t *testing.T) {
	for _, c := range []struct {
		dim, evaluations int
		want             string
	}{
		{13, 20, "no transformer was trained for 13 columns; the most is 12"},
		{2, 128, "no transformer was trained for more than 128 evaluations"},
	} {
		s := bowl(t, create(t, defaults(t)), c.dim, c.evaluations)
		plain, _, err := successor(t).Suggest(t.Context(), &s.Problem, nil, 2, optimizer.NewRand(1, s.Problem.First))
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range s.Ask(2) {
			if diff := cmp.Diff(plain[i].Point, b.Point); diff != "" || !strings.HasSuffix(b.Reasons.Note, c.want) {
				t.Errorf("%d columns, %d evaluations: note %q, want %q at its end; (-gp +pt):\n%s", c.dim, c.evaluations, b.Reasons.Note, c.want, diff)
			}
		}
		if state := readMemory(s.State); len(state.Successor) == 0 {
			t.Errorf("%d columns: the state has nothing of gp", c.dim)
		}
	}
}

// With room for one more evaluation the transformer chooses.
func TestServesUpToTheLastEvaluation(t *testing.T) {
	s := bowl(t, create(t, defaults(t)), 2, 127)
	if note := s.Ask(1)[0].Reasons.Note; !strings.Contains(note, "transformer") || strings.Contains(note, "no transformer") {
		t.Errorf("note %q", note)
	}
}

func TestRow(t *testing.T) {
	e := optimizer.NewEncoding(optimizertest.Mixed(t))
	point := study.Point{
		"lr": 1e-5, "width": int64(256), "drop": 0.5, "decay": 0.25, "solver": "sgd", "momentum": 0.99, "nesterov": false,
		"batch": int64(64), "epochs": int64(3),
	}
	at := e.Encode(point)
	// lr, width, drop, decay; adam, sgd, lbfgs; momentum, nesterov, warmup (inactive), batch.
	want := []float64{at[0], at[1], at[2], at[3], 0, 1, 0, at[5], at[6], 0.5, at[8]}
	if diff := cmp.Diff(want, newCoder(e).row(point, at)); diff != "" {
		t.Errorf("with sgd (-want +got):\n%s", diff)
	}
}

// searchIn returns the search of a session's next request.
func searchIn(t *testing.T, s *optimizertest.Session) *search {
	t.Helper()
	e := optimizer.NewEncoding(s.Problem.Space)
	c := newCoder(e)
	r := &optimizer.Request{Problem: &s.Problem, N: 1, Rand: optimizer.NewRand(1, s.Problem.First), Encoding: e}
	var why string
	var err error
	if c.model, why, err = Embedded().of(c.columns, len(s.Problem.Observations)); c.model == nil || err != nil {
		t.Fatal(why, err)
	}
	o := defaults(t)
	d := surrogate.Observe(r.Problem, e, surrogate.Options{Transform: o.Transform, Failures: surrogate.FailuresModel})
	return newSearch(t.Context(), r, o, c, d, nil)
}

// A pending point lowers the expected improvement where it lies.
func TestPendingLowersTheImprovement(t *testing.T) {
	for _, d := range []int{1, 2, 5, 10} {
		s := searchIn(t, bowl(t, create(t, defaults(t)), d, 40))
		e, x := s.r.Encoding, make([]float64, d)
		for i := range x {
			x[i] = 0.85
		}
		place := loop.Place{Point: e.Decode(x), X: x}
		before := s.rate([]loop.Place{place})[0]
		s.pend([]loop.Place{place})
		after := s.rate([]loop.Place{place})[0]
		if len(s.x) != 41 || s.y[40] != before.predicted.Mean() {
			t.Errorf("%d columns: pending points count with %v, want the mean %v", d, s.y[40:], before.predicted.Mean())
		}
		if !(after.value < before.value) {
			t.Errorf("%d columns: log EI %v, with the point pending %v", d, before.value, after.value)
		}
	}
}

// Points that fail are avoided by the model of failures.
func TestFailuresLowerTheValue(t *testing.T) {
	s := bowl(t, create(t, defaults(t)), 2, 40)
	e := optimizer.NewEncoding(s.Problem.Space)
	for i := range s.Problem.Observations {
		if o := &s.Problem.Observations[i]; e.Encode(o.Point)[0] > 0.5 {
			o.Outcome, o.Values = optimizer.OutcomeInfeasible, nil
		}
	}
	x := []float64{0.9, 0.7}
	if c := searchIn(t, s).rate([]loop.Place{{Point: e.Decode(x), X: x}})[0]; c.logP > math.Log(0.5) {
		t.Errorf("where evaluations fail, they complete with probability %v", math.Exp(c.logP))
	}
}

// The search finds better points than random search.
func TestRegretIsBelowRandom(t *testing.T) {
	functions := []string{"levy-1", "six-hump-camel", "levy-5"}
	var mean, chance float64
	for _, name := range functions {
		f, err := testfunc.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		regret := func(o optimizer.Optimizer) float64 {
			s := optimizertest.NewSession(t, o, optimizertest.Cube(t, f.Dim(), 0, 1), 1)
			e := optimizer.NewEncoding(s.Problem.Space)
			s.Run(20, 2, func(p study.Point) float64 { return f.Value(f.Scale(e.Encode(p))) })
			return math.Log10(s.Best()-f.Minimum) / float64(len(functions))
		}
		mean, chance = mean+regret(create(t, defaults(t))), chance+regret(random.New())
	}
	if mean > chance-1 {
		t.Errorf("log10 regret %.2f, by chance %.2f", mean, chance)
	}
}

// The weights are those that SHA256SUMS lists, and not much larger than they must be: every
// program with this optimiser contains them.
func TestChecksums(t *testing.T) {
	sums, err := os.ReadFile("weights/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := weights.ReadDir("weights")
	if err != nil || len(entries) == 0 {
		t.Fatalf("weights: %v, %v", entries, err)
	}
	size := 0
	for _, e := range entries {
		data, err := weights.ReadFile("weights/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		size += len(data)
		sum := sha256.Sum256(data)
		if line := hex.EncodeToString(sum[:]) + "  ./" + e.Name() + "\n"; !strings.Contains(string(sums), line) {
			t.Errorf("SHA256SUMS has no line %q", line)
		}
	}
	if size > 4_000_000 {
		t.Errorf("the weights have %d bytes, want at most 4,000,000", size)
	}
}

// BenchmarkSuggest measures one suggestion after 100 evaluations, with a new optimiser that
// has to read its weights and without a state.
func BenchmarkSuggest(b *testing.B) {
	for _, d := range []int{1, 2, 5, 10} {
		b.Run(fmt.Sprintf("columns=%d", d), func(b *testing.B) {
			s := bowl(b, create(b, defaults(b)), d, 100)
			for b.Loop() {
				if _, _, err := create(b, defaults(b)).Suggest(b.Context(), &s.Problem, nil, 1, optimizer.NewRand(1, 101)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
