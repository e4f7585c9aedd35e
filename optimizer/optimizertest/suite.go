package optimizertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Run checks that the optimisers made by create keep every promise of the Optimizer
// contract. create returns a new one, with its settings, each time. With -short only the
// test of concurrent calls runs: the one that the race detector has something to see in.
func Run(t *testing.T, create func() optimizer.Optimizer) { run(t, create, testSeeds) }

// RunUnseeded is Run for an optimiser whose points do not depend on the seed, such as a grid.
func RunUnseeded(t *testing.T, create func() optimizer.Optimizer) { run(t, create, testNoSeeds) }

func run(t *testing.T, create func() optimizer.Optimizer, seeds func(*testing.T, *suite)) {
	s := &suite{create: create, kept: map[uint64]*Session{}}
	for _, c := range []struct {
		name string
		test func(*testing.T, *suite)
	}{
		{"concurrent calls, same answer", testConcurrency},
		{"same arguments, same answer, on any number of cores", testDeterminism},
		{"another seed", seeds},
		{"the problem is not changed", testUnchanged},
		{"packed points are points", testPacked},
		{"points of a mixed, conditional, constrained space", testMixed},
		{"initial points come first", testInitial},
		{"initial points are counted across requests", testInitialCounted},
		{"a finite space ends without a repeat", testExhaustion},
		{"a finite space ends in one request", testExhaustionAtOnce},
		{"no pending point is repeated", testPending},
		{"nothing asked, nothing answered", testNothing},
		{"a context that has ended", testContext},
		{"an unreadable state is ignored", testState},
		{"degenerate outcomes", testOutcomes},
		{"every evaluation fails", testFailures},
		{"points told twice", testDuplicates},
		{"a blind one needs the latest observations", testBlind},
		{"fifty dimensions", testDimensions},
		{"one point", testOnePoint},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
		if testing.Short() {
			break
		}
	}
}

// suite is what the tests of one optimiser share.
type suite struct {
	create func() optimizer.Optimizer
	kept   map[uint64]*Session // by seed
}

// after returns a session after the history of a seed, which is 3 or 4, with a new optimiser.
// The tests share the histories, because most of their time would go into making them. They
// were made on four cores.
func (s *suite) after(t *testing.T, seed uint64) *Session {
	t.Helper()
	if s.kept[seed] == nil {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
		s.kept[seed] = history(t, s.create(), seed)
	}
	again := *s.kept[seed]
	again.t, again.optimizer = t, s.create()
	again.Problem.Observations = slices.Clone(again.Problem.Observations)
	again.State, again.Suggested = slices.Clone(again.State), slices.Clone(again.Suggested)
	return &again
}

// history runs a mixed study of 14 trials, 3 at once, two of which fail.
func history(t *testing.T, o optimizer.Optimizer, seed uint64) *Session {
	t.Helper()
	s := NewSession(t, o, Mixed(t), seed)
	s.Problem.MaxTrials, s.Problem.Parallelism = 14, 3
	for len(s.Problem.Observations) < 14 {
		if free := min(3-len(s.Problem.Pending), 15-s.Problem.First); free > 0 {
			s.Ask(free)
		}
		// The second oldest ends first, so that results come out of order.
		p := s.Problem.Pending[min(1, len(s.Problem.Pending)-1)]
		switch p.Trial {
		case 4:
			s.End(p.Trial, optimizer.OutcomeFailed, 0)
		case 6:
			s.End(p.Trial, optimizer.OutcomeInfeasible, 0)
		default:
			s.Tell(p.Trial, mixedObjective(p.Point))
		}
	}
	return s
}

// mixedObjective is smooth in the numbers of Mixed and has a best solver.
func mixedObjective(p study.Point) float64 {
	lr, width, drop := p["lr"].(float64), float64(p["width"].(int64)), p["drop"].(float64)
	value := (lr-0.01)*(lr-0.01) + (width-64)*(width-64)/1e4 + drop
	if p["solver"] == "sgd" {
		value -= p["momentum"].(float64)
	}
	return value
}

func testDeterminism(t *testing.T, s *suite) {
	four := s.after(t, 3)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := history(t, s.create(), 3)
	if diff := cmp.Diff(one.Suggested, four.Suggested); diff != "" {
		t.Errorf("two runs differ, on one core and on four (-one +four):\n%s", diff)
	}
	if diff := cmp.Diff(one.State, four.State); diff != "" {
		t.Errorf("the states of two runs differ, on one core and on four (-one +four):\n%s", diff)
	}
}

func testConcurrency(t *testing.T, suite *suite) {
	s := suite.after(t, 3)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	ask := func(o optimizer.Optimizer) ([]optimizer.Suggestion, error) {
		p := s.Problem
		batch, _, err := o.Suggest(context.Background(), &p, s.State, 2, optimizer.NewRand(p.Seed, p.First))
		return batch, err
	}
	want, err := ask(suite.create())
	if err != nil {
		t.Fatal(err)
	}
	o := suite.create() // which has kept nothing yet
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, err := ask(o)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("a concurrent call differs: %v (-alone +concurrent):\n%s", err, diff)
			}
		})
	}
	wg.Wait()
}

func testSeeds(t *testing.T, s *suite) {
	a, b := s.after(t, 3), s.after(t, 4)
	for i := range a.Suggested {
		if cmp.Equal(a.Suggested[i].Point, b.Suggested[i].Point) {
			t.Errorf("seeds 3 and 4 both suggest %v as trial %d", a.Suggested[i].Point, i+1)
		}
	}
}

func testNoSeeds(t *testing.T, s *suite) {
	a, b := s.after(t, 3), s.after(t, 4)
	if diff := cmp.Diff(a.Suggested, b.Suggested); diff != "" {
		t.Errorf("(-seed 3 +seed 4):\n%s", diff)
	}
}

func testUnchanged(t *testing.T, suite *suite) {
	s := suite.after(t, 4)
	s.Ask(2)
	p := s.Problem
	state := append(optimizer.State(nil), s.State...)
	observations := clone(p.Observations, func(o *optimizer.Observation) *study.Point { return &o.Point })
	pending := clone(p.Pending, func(o *optimizer.Pending) *study.Point { return &o.Point })
	s.Ask(2)
	if diff := cmp.Diff(observations, p.Observations); diff != "" {
		t.Errorf("the observations were changed:\n%s", diff)
	}
	if diff := cmp.Diff(pending, p.Pending); diff != "" {
		t.Errorf("the pending points were changed:\n%s", diff)
	}
	if _, _, err := suite.create().Suggest(t.Context(), &p, state, 1, optimizer.NewRand(1, 1)); err != nil {
		t.Errorf("an earlier problem and state: %v", err)
	}
}

// testPacked tells the same observations with packed points, which an optimiser reads by their method At.
func testPacked(t *testing.T, suite *suite) {
	var params []study.Parameter
	for i := range 20 {
		params = append(params, study.Parameter{Name: fmt.Sprintf("x%d", i), Type: study.Float, Min: new(0.0), Max: new(1.0)})
	}
	answer := func(pack bool) []optimizer.Suggestion {
		s := NewSession(t, suite.create(), Space(t, params, nil), 3)
		s.Problem.MaxTrials = 40
		for n := 1; n <= 24; n++ {
			point := study.Point{}
			for i, p := range params {
				point[p.Name] = math.Mod(float64(n*(i+3))*0.37, 1)
			}
			values := study.Values{math.Mod(float64(n)*0.61, 1)}
			o := optimizer.Observation{Trial: n, Point: point, Outcome: optimizer.OutcomeCompleted, Values: values}
			if pack {
				o = o.Pack(study.Names(params))
			}
			s.Problem.Observations = append(s.Problem.Observations, o)
		}
		s.Problem.First = 25
		return s.Ask(2)
	}
	if diff := cmp.Diff(answer(false), answer(true)); diff != "" {
		t.Errorf("(-points +packed points):\n%s", diff)
	}
}

// clone copies a list and the points in it.
func clone[T any](list []T, point func(*T) *study.Point) []T {
	copied := append([]T{}, list...)
	for i := range copied {
		p := point(&copied[i])
		fresh := study.Point{}
		for name, value := range *p {
			fresh[name] = value
		}
		*p = fresh
	}
	return copied
}

func testMixed(t *testing.T, s *suite) {
	for _, seed := range []uint64{3, 4} {
		// The session checks membership of every point.
		solvers := map[any]bool{}
		for _, suggested := range s.after(t, seed).Suggested {
			solvers[suggested.Point["solver"]] = true
		}
		if len(solvers) < 2 {
			t.Errorf("14 trials tried the solvers %v alone", solvers)
		}
	}
}

func testNothing(t *testing.T, suite *suite) {
	s := suite.after(t, 3)
	for _, n := range []int{0, -1} {
		if batch := s.Ask(n); len(batch) != 0 {
			t.Errorf("asked for %d, got %v", n, batch)
		}
	}
}

func testContext(t *testing.T, suite *suite) {
	s := suite.after(t, 4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if batch, err := s.TryAsk(ctx, 2); !errors.Is(err, context.Canceled) || len(batch) != 0 {
		t.Errorf("got %v and %v, want no point and %v", batch, err, context.Canceled)
	}
}

func testState(t *testing.T, suite *suite) {
	s := suite.after(t, 3)
	p := s.Problem
	ask := func(state optimizer.State) []optimizer.Suggestion {
		batch, _, err := suite.create().Suggest(t.Context(), &p, state, 2, optimizer.NewRand(p.Seed, p.First))
		if err != nil {
			t.Fatalf("state %q: %v", state, err)
		}
		return batch
	}
	want := ask(nil)
	for _, state := range []optimizer.State{{}, []byte("null"), []byte(`{"version":-1}`), []byte("\x00\xff\x00"), s.State[:len(s.State)/2]} {
		if diff := cmp.Diff(want, ask(state)); diff != "" {
			t.Errorf("state %q is not as good as none (-none +state):\n%s", state, diff)
		}
	}
}
