package bench

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// scripted is a source whose trials take the listed durations, and whose answers all
// cost the same. It records what it is asked and told.
type scripted struct {
	durations []float64
	cost      float64
	// points is the number of available points; 0 means as many as durations.
	points int

	suggested int
	// known lists, by trial, the trials told when it was suggested.
	known map[int][]int
	told  []int
}

func (s *scripted) suggest(_ context.Context, n int) (int, float64, error) {
	points := s.points
	if points == 0 {
		points = len(s.durations)
	}
	n = min(n, points-s.suggested)
	for range n {
		s.suggested++
		if s.known == nil {
			s.known = map[int][]int{}
		}
		s.known[s.suggested] = slices.Clone(s.told)
	}
	return n, s.cost, nil
}

func (s *scripted) evaluate(_ context.Context, trial int) (float64, error) {
	return s.durations[trial-1], nil
}

func (s *scripted) tellTrials(trials []int) error {
	s.told = append(s.told, trials...)
	return nil
}

// Schedules worked out by hand.
func TestSchedules(t *testing.T) {
	durations := []float64{3, 1, 2, 1, 4, 1, 1, 1, 1, 1, 1, 1}
	for _, tt := range []struct {
		name   string
		plan   plan
		source scripted
		told   []slot
		cut    []int
		end    float64
		idle   float64
	}{
		{
			name: "one after another",
			plan: plan{mode: Sequential, workers: 5, trials: 3}, source: scripted{durations: durations},
			told: []slot{
				{trial: 1, made: 0, start: 0, end: 3, told: 3},
				{trial: 2, made: 3, start: 3, end: 4, told: 4},
				{trial: 3, made: 4, start: 4, end: 6, told: 6},
			},
			end: 6, idle: 1 - 6.0/30, // of five workers, although only one trial runs
		},
		{
			name: "batches wait for the slowest",
			plan: plan{mode: Synchronous, workers: 2, trials: 5}, source: scripted{durations: durations},
			told: []slot{
				{trial: 2, made: 0, start: 0, end: 1, told: 3, pending: 1},
				{trial: 1, made: 0, start: 0, end: 3, told: 3},
				{trial: 4, made: 3, start: 3, end: 4, told: 5, pending: 1},
				{trial: 3, made: 3, start: 3, end: 5, told: 5},
				{trial: 5, made: 5, start: 5, end: 9, told: 9},
			},
			end: 9, idle: 1 - 11.0/18,
		},
		{
			name: "a batch costs one answer",
			plan: plan{mode: Synchronous, workers: 2, trials: 3}, source: scripted{durations: durations, cost: 0.5},
			told: []slot{
				{trial: 2, made: 0, start: 0.5, end: 1.5, told: 3.5, pending: 1},
				{trial: 1, made: 0, start: 0.5, end: 3.5, told: 3.5},
				{trial: 3, made: 3.5, start: 4, end: 6, told: 6},
			},
			end: 6, idle: 0.5,
		},
		{
			name: "whoever is free goes on",
			plan: plan{mode: Asynchronous, workers: 2, trials: 5}, source: scripted{durations: durations},
			// Worker A: 1 (0–3), 4 (3–4), 6…; worker B: 2 (0–1), 3 (1–3), 5 (3–7).
			// At 3 both are free: A gets 4, B gets 5.
			told: []slot{
				{trial: 2, made: 0, start: 0, end: 1, told: 1, pending: 1},
				{trial: 1, made: 0, start: 0, end: 3, told: 3},
				{trial: 3, made: 1, start: 1, end: 3, told: 3, pending: 1},
				{trial: 4, made: 3, start: 3, end: 4, told: 4},
				{trial: 5, made: 3, start: 3, end: 7, told: 7, pending: 1},
			},
			end: 7, idle: 1 - 11.0/14,
		},
		{
			name: "on until the horizon",
			plan: plan{mode: Asynchronous, workers: 2, trials: 2, horizon: 4.5}, source: scripted{durations: durations},
			// 6 starts at 4 and would end at 5, 5 at 7: neither counts.
			told: []slot{
				{trial: 2, made: 0, start: 0, end: 1, told: 1, pending: 1},
				{trial: 1, made: 0, start: 0, end: 3, told: 3},
				{trial: 3, made: 1, start: 1, end: 3, told: 3, pending: 1},
				{trial: 4, made: 3, start: 3, end: 4, told: 4},
			},
			cut: []int{5, 6}, end: 4.5,
		},
		{
			name: "on until the budget, beyond the horizon",
			plan: plan{mode: Asynchronous, workers: 2, trials: 3, horizon: 0.5}, source: scripted{durations: durations},
			told: []slot{
				{trial: 2, made: 0, start: 0, end: 1, told: 1, pending: 1},
				{trial: 1, made: 0, start: 0, end: 3, told: 3},
				{trial: 3, made: 1, start: 1, end: 3, told: 3, pending: 1},
			},
			end: 3,
		},
		{
			name: "a horizon too far away",
			plan: plan{mode: Asynchronous, workers: 8, trials: 1, horizon: 1e9}, source: scripted{durations: slices.Repeat([]float64{1}, 99)},
			told: func() (all []slot) {
				for i := range 16 {
					all = append(all, slot{trial: i + 1, made: float64(i / 8), start: float64(i / 8), end: float64(i/8 + 1), told: float64(i/8 + 1),
						pending: i % 8})
				}
				return all
			}(),
			end: 1e9, idle: 1 - 2e-9,
		},
		{
			name: "one answer at a time",
			plan: plan{mode: Asynchronous, workers: 2, trials: 4}, source: scripted{durations: []float64{1, 1, 1, 1}, cost: 0.75},
			// 1: asked 0, starts 0.75, ends 1.75. 2: asked 0.75, starts 1.5, ends 2.5.
			// 3: asked 1.75, starts 2.5, ends 3.5: 2 has ended meanwhile. 4: asked 2.5.
			told: []slot{
				{trial: 1, made: 0, start: 0.75, end: 1.75, told: 1.75},
				{trial: 2, made: 0.75, start: 1.5, end: 2.5, told: 2.5, pending: 1},
				{trial: 3, made: 1.75, start: 2.5, end: 3.5, told: 3.5, pending: 1},
				{trial: 4, made: 2.5, start: 3.25, end: 4.25, told: 4.25, pending: 1},
			},
			end: 4.25, idle: 1 - 4/8.5,
		},
		{
			name: "no more points, in batches",
			plan: plan{mode: Synchronous, workers: 2, trials: 9}, source: scripted{durations: []float64{1, 1, 1}},
			told: []slot{
				{trial: 1, made: 0, start: 0, end: 1, told: 1},
				{trial: 2, made: 0, start: 0, end: 1, told: 1, pending: 1},
				{trial: 3, made: 1, start: 1, end: 2, told: 2},
			},
			end: 2, idle: 0.25,
		},
		{
			name: "no more points, one by one",
			plan: plan{mode: Asynchronous, workers: 2, trials: 9, horizon: 50}, source: scripted{durations: []float64{1, 2, 2}},
			told: []slot{
				{trial: 1, made: 0, start: 0, end: 1, told: 1},
				{trial: 2, made: 0, start: 0, end: 2, told: 2, pending: 1},
				{trial: 3, made: 1, start: 1, end: 3, told: 3, pending: 1},
			},
			end: 50, idle: 0.95,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := simulate(t.Context(), tt.plan, &tt.source)
			if err != nil {
				t.Fatal(err)
			}
			near := cmpopts.EquateApprox(0, 1e-12)
			if diff := cmp.Diff(tt.told, got.told, cmp.AllowUnexported(slot{}), near); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			var cut []int
			for _, s := range got.cut {
				cut = append(cut, s.trial)
			}
			slices.Sort(cut)
			if !slices.Equal(cut, tt.cut) {
				t.Errorf("cut %v, want %v", cut, tt.cut)
			}
			if idle := got.idle(tt.plan.workers); got.end != tt.end || math.Abs(idle-tt.idle) > 1e-12 {
				t.Errorf("ends at %v, idle %v; want %v, %v", got.end, idle, tt.end, tt.idle)
			}
		})
	}
}

// A suggestion uses everything told by then, no more and no less.
func TestWhatASuggestionKnows(t *testing.T) {
	s := &scripted{durations: []float64{3, 1, 2, 1, 4}}
	if _, err := simulate(t.Context(), plan{mode: Asynchronous, workers: 2, trials: 5}, s); err != nil {
		t.Fatal(err)
	}
	want := map[int][]int{1: nil, 2: nil, 3: {2}, 4: {2, 1, 3}, 5: {2, 1, 3}}
	if diff := cmp.Diff(want, s.known); diff != "" {
		t.Errorf("known (-want +got):\n%s", diff)
	}
}

func TestCounts(t *testing.T) {
	// One answer at a time, which costs 0.75: see the schedule above.
	s, err := simulate(t.Context(), plan{mode: Asynchronous, workers: 2, trials: 4}, &scripted{durations: []float64{1, 1, 1, 1}, cost: 0.75})
	if err != nil {
		t.Fatal(err)
	}
	// Trial 3 is made at 1.75 without the result of 2, which arrives at 2.5, when
	// its evaluation starts; while 2 runs (1.5–2.5) that of 1 arrives.
	want := map[int][2]int{1: {0, 0}, 2: {0, 1}, 3: {1, 0}, 4: {0, 1}}
	for _, of := range s.told {
		if stale, arrived := s.counts(of); [2]int{stale, arrived} != want[of.trial] {
			t.Errorf("trial %d: %d stale, %d arrived; want %v", of.trial, stale, arrived, want[of.trial])
		}
	}
	if got := s.makespan(2); got != 2.5 {
		t.Errorf("makespan of two trials %v, want 2.5", got)
	}
}

// drawn draws durations from a law and has points without end.
type drawn struct {
	law  Law
	seed uint64
}

func (d drawn) suggest(_ context.Context, n int) (int, float64, error) { return n, 0, nil }
func (d drawn) tellTrials([]int) error                                 { return nil }
func (d drawn) evaluate(_ context.Context, trial int) (float64, error) {
	return d.law.Draw(d.seed, trial), nil
}

// harmonic is the n-th harmonic number.
func harmonic(n int) float64 {
	sum := 0.0
	for k := 1; k <= n; k++ {
		sum += 1 / float64(k)
	}
	return sum
}

// Synchronous batches take E[max] where asynchronous workers take E[mean] = 1. The mean
// maximum of n uniform draws from (0, 2) is 2n/(n+1), that of exponential draws the
// n-th harmonic number, that of Pareto draws n·x·B(n, 1−1/α) (David and Nagaraja, Order
// Statistics, 2003). The others are the integrals ∫1−F(t)ⁿ dt, by SciPy's quad.
func TestIdleShare(t *testing.T) {
	beta := func(a, b float64) float64 { return math.Gamma(a) * math.Gamma(b) / math.Gamma(a+b) }
	for _, tt := range []struct {
		law  string
		want func(n int) float64
	}{
		{"constant", func(int) float64 { return 1 }},
		{"uniform", func(n int) float64 { return 2 * float64(n) / float64(n+1) }},
		{"exponential", harmonic},
		{"pareto:3", func(n int) float64 { return float64(n) * 2 / 3 * beta(float64(n), 2.0/3) }},
		{"half-normal", func(n int) float64 { return map[int]float64{4: 1.835764, 8: 2.235119, 32: 2.941628}[n] }},
		{"lognormal", func(n int) float64 { return map[int]float64{4: 2.208126, 8: 3.083848, 32: 5.490164}[n] }},
		{"lognormal:0.5", func(n int) float64 { return map[int]float64{4: 1.573271, 8: 1.887608, 32: 2.563812}[n] }},
	} {
		for _, workers := range []int{4, 8, 32} {
			law, err := ParseLaw(tt.law)
			if err != nil {
				t.Fatal(err)
			}
			const batches = 2000
			s, err := simulate(t.Context(), plan{mode: Synchronous, workers: workers, trials: batches * workers}, drawn{law, 5})
			if err != nil {
				t.Fatal(err)
			}
			lasts := map[float64]float64{} // how long the batch that began then took
			for _, of := range s.told {
				lasts[of.start] = of.told - of.start
			}
			var took []float64
			for _, d := range lasts {
				took = append(took, d)
			}
			e := estimate(took)
			if e.N != batches || math.Abs(e.Mean-tt.want(workers)) > 4**e.SE+1e-9 {
				t.Errorf("%s: %d batches of %d take %.4f ± %.4f; want %.4f", tt.law, e.N, workers, e.Mean, *e.SE, tt.want(workers))
			}
			busy := 0.0
			for _, of := range s.told {
				busy += of.end - of.start
			}
			if want := 1 - busy/(float64(workers)*s.end); math.Abs(s.idle(workers)-want) > 1e-9 {
				t.Errorf("%s: %d workers are idle for %v; want %v", tt.law, workers, s.idle(workers), want)
			}
			if want := 1 - 1/tt.want(workers); math.Abs(s.idle(workers)-want) > 0.03 {
				t.Errorf("%s: %d workers are idle for %.3f; want %.3f", tt.law, workers, s.idle(workers), want)
			}
		}
	}
}

// Workers that do not wait stay busy until the last trials end.
func TestAsynchronousWorkersAreBusy(t *testing.T) {
	law, err := ParseLaw("lognormal")
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulate(t.Context(), plan{mode: Asynchronous, workers: 8, trials: 100, horizon: 50}, drawn{law, 3})
	if err != nil {
		t.Fatal(err)
	}
	if idle := s.idle(8); idle > 1e-12 {
		t.Errorf("idle for %v, want 0", idle)
	}
}

// failing fails where it is told to.
type failing struct {
	scripted
	in string
}

var errTest = errors.New("out of luck")

func (f *failing) suggest(ctx context.Context, n int) (int, float64, error) {
	if f.in == "suggest" {
		return 0, 0, errTest
	}
	return f.scripted.suggest(ctx, n)
}

func (f *failing) evaluate(ctx context.Context, trial int) (float64, error) {
	if f.in == "evaluate" {
		return 0, errTest
	}
	return f.scripted.evaluate(ctx, trial)
}

func (f *failing) tellTrials(trials []int) error {
	if f.in == "tell" {
		return errTest
	}
	return f.scripted.tellTrials(trials)
}

func TestErrorsEndASimulation(t *testing.T) {
	for _, mode := range Modes() {
		for _, in := range []string{"suggest", "evaluate", "tell"} {
			f := &failing{in: in, scripted: scripted{durations: []float64{1, 1, 1}}}
			if _, err := simulate(t.Context(), plan{mode: mode, workers: 2, trials: 3}, f); !errors.Is(err, errTest) {
				t.Errorf("%s: an error in %s gives %v", mode, in, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := simulate(ctx, plan{mode: mode, workers: 2, trials: 3}, &scripted{durations: []float64{1, 1, 1}}); !errors.Is(err,
			context.Canceled) {
			t.Errorf("%s: a context that ended gives %v", mode, err)
		}
	}
}
