package engine

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// withFidelity is newSpec with a fidelity from 1 to most.
func withFidelity(most float64, reduction, maxTrials, parallelism int) record.Study {
	spec, low := newSpec(0, maxTrials, parallelism), 1.0
	spec.Definition.Spec.Parameters = append(spec.Definition.Spec.Parameters,
		study.Parameter{Name: "epochs", Type: study.Fidelity, Min: &low, Max: &most, Reduction: &reduction})
	return spec
}

// asha is algorithm 2 of Li et al. (2020), line by line: rungs of (configuration, loss) in
// the order of their arrival.
type asha struct {
	eta      int
	rungs    [][]rungEntry
	promoted []map[int]bool
}

type rungEntry struct {
	configuration int
	loss          float64
}

// job is the paper's get_job: a configuration and its rung, or the next configuration.
func (a *asha) job(next int) (configuration, rung int) {
	for k := len(a.rungs) - 2; k >= 0; k-- {
		candidates := slices.Clone(a.rungs[k])
		slices.SortStableFunc(candidates, func(x, y rungEntry) int { return cmp.Compare(x.loss, y.loss) })
		for _, c := range candidates[:len(candidates)/a.eta] {
			if !a.promoted[k][c.configuration] {
				a.promoted[k][c.configuration] = true
				return c.configuration, k + 1
			}
		}
	}
	return next, 0
}

// TestPromotionsAreThoseOfThePaper plays studies with several workers, whose losses are
// often equal, and compares each trial with the job of the paper's algorithm.
func TestPromotionsAreThoseOfThePaper(t *testing.T) {
	for seed := range uint64(fewer(60)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		eta, workers := 2+rng.IntN(3), 1+rng.IntN(4)
		r := newRig(t, withFidelity(27, eta, 120, workers), Settings{})
		r.step(Capacity{At: r.now, Slots: workers, Free: workers})
		paper := &asha{eta: eta, rungs: make([][]rungEntry, len(r.e.ladder.rungs))}
		for range paper.rungs {
			paper.promoted = append(paper.promoted, map[int]bool{})
		}
		configurations := map[int]int{} // of each trial
		begun, running := 0, []int{}
		begin := func() {
			for r.ask != nil {
				r.suggest(rng.Float64())
			}
			for n := len(configurations) + 1; n <= r.e.Status().Trials; n++ {
				want, rung := paper.job(begun + 1)
				if rung == 0 {
					begun++
				}
				got, _ := r.e.Trial(n)
				configurations[n] = want
				if got.Rung != rung+1 || rung > 0 && configurations[got.Predecessor] != want || rung == 0 && got.Predecessor != 0 {
					t.Fatalf("seed %d: trial %d is at rung %d after trial %d; want configuration %d at rung %d", seed, n, got.Rung, got.Predecessor, want,
						rung+1)
				}
				r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(n, 1), Worker: "w", At: r.now}})
				running = append(running, n)
			}
		}
		begin()
		for len(running) > 0 {
			i := rng.IntN(len(running))
			n := running[i]
			running = slices.Delete(running, i, i+1)
			loss := float64(rng.IntN(12))
			trial, _ := r.e.Trial(n)
			k := trial.Rung - 1
			paper.rungs[k] = append(paper.rungs[k], rungEntry{configurations[n], loss})
			r.complete("w", n, 1, loss)
			if rng.IntN(10) == 0 { // a failover changes nothing
				r.restart()
				r.after(0)
				r.step(Capacity{At: r.now, Slots: workers, Free: workers - len(running)})
			}
			begin()
		}
		if s := r.e.Status(); s.Counts.Completed != 120 || s.State != study.Completed {
			t.Fatalf("seed %d: %s", seed, describeStatus(s))
		}
	}
}

// TestAPromotedTrialGoesOn checks what a promoted trial inherits, also after a failover.
func TestAPromotedTrialGoesOn(t *testing.T) {
	r := newRig(t, withFidelity(9, 3, 20, 1), Settings{})
	r.suggest(0.1)
	for n := 1; n <= 3; n++ {
		result := r.result("w", n, 1, messaging.OutcomeCompleted)
		result.Values, result.Checkpoint = []float64{float64(3 - n)}, fmt.Sprint("state of ", n)
		r.step(Finished{At: r.now, Result: result})
		if n < 3 {
			r.suggest(0.1 * float64(n+1))
		}
	}
	r.restart()
	out := r.after(0)
	if len(out.Publish) != 1 {
		t.Fatalf("published %v", out.Publish)
	}
	a := out.Publish[0]
	if a.Trial != 4 || a.First() != 3 || a.Checkpoint != "state of 3" || a.Seed != TrialSeed(7, 3) || a.Parameters["epochs"] != int64(3) {
		t.Errorf("%+v", a)
	}
	trial, _ := r.e.Trial(4)
	if trial.Source != optimizer.SourcePromoted || trial.Predecessor != 3 || trial.Rung != 2 ||
		!strings.Contains(trial.Reasons.Note, "trial 3 is number 1 of the 3 trials at epochs 1") {
		t.Errorf("%+v", trial)
	}
	if best, _ := r.e.Best(); best.Number != 3 {
		t.Errorf("the best trial is %d; want 3, the best one of the only level", best.Number)
	}
	r.complete("w", 4, 1, 7) // worse than each at the level below
	if best, _ := r.e.Best(); best.Number != 4 {
		t.Errorf("the best trial is %d; want 4, at the highest level", best.Number)
	}
}

// TestACancelledPromotionComesAgain checks that a trial whose successor was cancelled can be
// promoted again, and that one whose successor failed cannot.
func TestACancelledPromotionComesAgain(t *testing.T) {
	r := newRig(t, withFidelity(9, 2, 20, 1), Settings{})
	r.suggest(0.1)
	r.complete("w", 1, 1, 1)
	r.suggest(0.2)
	r.complete("w", 2, 1, 2)
	r.step(CancelTrial{At: r.now, Trial: 3})
	trial, _ := r.e.Trial(4)
	if trial.Predecessor != 1 {
		t.Fatalf("trial 4 continues trial %d; want 1", trial.Predecessor)
	}
	r.finish("w", 4, 1, messaging.OutcomeFailed)
	r.suggest(0.3)
	if trial, _ = r.e.Trial(5); trial.Predecessor != 0 || trial.Rung != 1 {
		t.Errorf("trial 5 continues trial %d at rung %d; want a new configuration", trial.Predecessor, trial.Rung)
	}
}

// TestAPointOutsideOfTheSpaceIsNotPromoted checks that a trial stays where it is once an
// edit has excluded its point.
func TestAPointOutsideOfTheSpaceIsNotPromoted(t *testing.T) {
	spec := withFidelity(9, 2, 20, 1)
	r := newRig(t, spec, Settings{})
	r.suggest(0.9)
	half, narrow := 0.5, spec
	narrow.Definition.Spec.Parameters = slices.Clone(spec.Definition.Spec.Parameters)
	narrow.Definition.Spec.Parameters[0].Max = &half
	r.step(Update{At: r.now, Study: narrow})
	r.complete("w", 1, 1, 1)
	r.suggest(0.2)
	r.complete("w", 2, 1, 2)
	r.suggest(0.3)
	if trial, _ := r.e.Trial(3); trial.Predecessor != 0 {
		t.Fatalf("trial 3 continues trial %d, whose point is not of the space", trial.Predecessor)
	}
	r.complete("w", 3, 1, 0.5)
	if trial, _ := r.e.Trial(4); trial.Predecessor != 3 {
		t.Errorf("trial 4 continues trial %d; want 3, the best one that is of the space", trial.Predecessor)
	}
}

// TestInitialPointsComeFirst checks that nothing is promoted before each initial point has
// a trial, since trial k is the k-th of them.
func TestInitialPointsComeFirst(t *testing.T) {
	spec := withFidelity(9, 2, 20, 1)
	for i := range 4 {
		spec.Definition.Spec.Initial = append(spec.Definition.Spec.Initial, map[string]any{"x": float64(i) / 10})
	}
	r := newRig(t, spec, Settings{})
	for n := 1; n <= 4; n++ {
		r.suggest(float64(n-1) / 10)
		if trial, _ := r.e.Trial(n); trial.Rung != 1 {
			t.Fatalf("trial %d is at rung %d", n, trial.Rung)
		}
		r.complete("w", n, 1, float64(n))
	}
	if trial, _ := r.e.Trial(5); trial.Predecessor != 1 {
		t.Errorf("trial 5 continues trial %d; want 1", trial.Predecessor)
	}
}
