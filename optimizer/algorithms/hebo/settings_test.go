package hebo

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// variants returns the defaults with each other value of each setting that has few
// values, by name.
func variants(t testing.TB) map[string]Options {
	t.Helper()
	all := map[string]Options{}
	add := func(name string, value any) {
		values, err := Settings().Parse(map[string]any{name: value})
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("%s=%v", name, value)] = FromSettings(values)
	}
	for _, s := range Settings() {
		switch of := s.Default.(type) {
		case bool:
			add(s.Name, !of)
		case string:
			for _, choice := range s.Choices {
				add(s.Name, choice)
			}
		}
	}
	add("priorWeight", 3.0)
	return all
}

// small is an effort that makes tests quick.
var small = effort{candidates: 40, population: 8, generations: 4}

// newSmall is New with another effort.
func newSmall(o Options, e effort) optimizer.Optimizer { return optimizer.Guard(proposer{o, e, nil}) }

// degenerate lists histories of outcomes; NaN is a failure, +Inf an infeasible point.
func degenerate() map[string][]float64 {
	failed, infeasible := math.NaN(), math.Inf(1)
	return map[string][]float64{
		"all equal":   {3, 3, 3, 3, 3, 3, 3, 3, 3},
		"one":         {1},
		"huge":        {1e300, -1e300, 1e299, 3e300, 0, 1e300, -1.7e308, 1.7e308},
		"tiny":        {1e-300, -1e-300, 0, 5e-324, 2e-300, 1e-301, 1e-300},
		"an outlier":  {1, 2, 1e12, 3, 2, 1, 2, 3},
		"failures":    {failed, failed, infeasible, 1, failed, 2, infeasible, 3, 1},
		"one success": {infeasible, failed, infeasible, failed, 1},
	}
}

// suggestAfter asks for a few points after a history at random points, every third of
// which repeats an earlier one. It fails the test if a suggestion is not in the space
// or a reason is not a number.
func suggestAfter(t testing.TB, o Options, e effort, space *space.Space, outcomes []float64, n int) []optimizer.Suggestion {
	t.Helper()
	s := optimizertest.NewSession(t, newSmall(o, e), space, 7)
	rng := rand.New(rand.NewPCG(5, 6))
	encoding := optimizer.NewEncoding(space)
	x := make([]float64, encoding.Dim())
	for i, v := range outcomes {
		var p study.Point
		for tries := 0; p == nil || !space.Feasible(p) && tries < 100; tries++ {
			for k := range x {
				x[k] = rng.Float64()
			}
			p = encoding.Decode(x)
		}
		if i%3 == 2 {
			p = s.Problem.Observations[i-1].Point
		}
		observation := optimizer.Observation{Trial: i + 1, Point: p, Outcome: optimizer.OutcomeCompleted, Values: []float64{v}}
		switch {
		case math.IsNaN(v):
			observation.Outcome, observation.Values = optimizer.OutcomeFailed, nil
		case math.IsInf(v, 0):
			observation.Outcome, observation.Values = optimizer.OutcomeInfeasible, nil
		}
		s.Problem.Observations = append(s.Problem.Observations, observation)
	}
	s.Problem.First = len(outcomes) + 1
	s.Problem.Parallelism = 2
	batch := s.Ask(n) // checks the points and the reasons
	if len(batch) != n {
		t.Errorf("asked for %d, got %d", n, len(batch))
	}
	return append(batch, s.Ask(1)...)
}

func TestDegenerateDataUnderAllSettings(t *testing.T) {
	cube, mixed := optimizertest.Cube(t, 3, -1, 1), optimizertest.Mixed(t)
	for name, o := range variants(t) {
		o.Initial = 1
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for what, outcomes := range degenerate() {
				for _, space := range []*space.Space{cube, mixed} {
					if suggestAfter(t, o, small, space, outcomes, 2); t.Failed() {
						t.Fatalf("with %s over %d columns", what, len(space.Parameters()))
					}
				}
			}
		})
	}
}

func TestThreeHundredDimensions(t *testing.T) {
	space := optimizertest.Cube(t, 300, 0, 1)
	for _, acquisition := range []Acquisition{EI, MACE} {
		o := options(func(o *Options) { o.Acquisition, o.Initial = acquisition, 1 })
		suggestAfter(t, o, effort{50, 8, 3}, space, []float64{1, 2, 3, math.NaN(), 5, 4, 3}, 2)
	}
}

// FuzzDegenerateData lets the fuzzer choose the settings, the space, and up to 40
// outcomes, eight bytes each: NaN is a failure, an infinity an infeasible point.
func FuzzDegenerateData(f *testing.F) {
	all := variants(f)
	names := slices.Sorted(maps.Keys(all))
	spaces := []*space.Space{
		optimizertest.Cube(f, 1, 0, 1), optimizertest.Cube(f, 2, -1e9, 1e9), optimizertest.Cube(f, 9, 0, 1e-9),
		optimizertest.Mixed(f), optimizertest.Cube(f, 300, 0, 1),
	}
	add := func(space int, outcomes ...float64) {
		var raw []byte
		for _, v := range outcomes {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
		}
		f.Add(uint8(len(raw)), uint8(space), raw) // some setting or other
	}
	for space := range spaces {
		for _, outcomes := range degenerate() {
			add(space, outcomes...)
		}
		add(space, 1, 2, 3, 1e300, 1e-300, -1e-300, 4, 5)
	}
	f.Fuzz(func(t *testing.T, which, space uint8, raw []byte) {
		o := all[names[int(which)%len(names)]]
		o.Initial = 1
		at := int(space) % len(spaces)
		most := 40
		if at == len(spaces)-1 {
			most = 9 // a fit in 300 dimensions takes long
		}
		var outcomes []float64
		for ; len(raw) >= 8 && len(outcomes) < most; raw = raw[8:] {
			v := math.Float64frombits(binary.LittleEndian.Uint64(raw))
			if math.IsInf(v, -1) {
				v = math.Inf(1)
			}
			outcomes = append(outcomes, v)
		}
		suggestAfter(t, o, small, spaces[at], outcomes, 2)
	})
}

// The results are the same bits on one core as on two, under every setting.
func TestCoresUnderAllSettings(t *testing.T) {
	space, outcomes := optimizertest.Mixed(t), []float64{3, 1, 4, 1, math.NaN(), 9, 2, 6, math.Inf(1), 3, 5, 8, 9, 7}
	on := func(cores int, o Options) []optimizer.Suggestion {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		return suggestAfter(t, o, effort{100, 8, 4}, space, outcomes, 3) // enough candidates to be shared among cores
	}
	for name, o := range variants(t) {
		if diff := cmp.Diff(on(1, o), on(2, o)); diff != "" {
			t.Errorf("%s (-one core +two):\n%s", name, diff)
		}
	}
}
