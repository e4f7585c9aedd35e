package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// simPaid is the metric of the cost in the simulated world.
const simPaid = "paid"

// simCost is what an attempt of a trial costs in the simulated world.
func simCost(trial int) float64 { return float64(1+trial*5%7) / 4 }

// TestSimulatorOfCost plays schedules of studies with a budget of cost: no trial is begun once it is spent or spoken for, whatever
// fails, so that at most one trial of each slot ends after it is spent.
func TestSimulatorOfCost(t *testing.T) {
	simulate(t, func(seed uint64) error { return newCostWorld(seed, 0).run() })
}

// newCostWorld draws a study with a budget of cost, with a number of trials as well or without, of workers or of clients, from a
// seed.
func newCostWorld(seed uint64, off safety) *world {
	play := newWorld
	switch seed % 5 {
	case 0, 1:
		play = newClientWorld
	case 2:
		play = newFidelityWorld
	}
	w := play(seed, off)
	w.costly = true
	w.edit(func(s *study.Spec) {
		s.Cost, s.Budget.MaxCost = &study.Cost{Metric: simPaid}, 1+float64(seed%40)/4
		if seed%2 == 0 {
			s.Budget.MaxTrials = 0
		}
	})
	w.learns()
	return w
}

// charged returns the metrics of an attempt's report. share is how much of its cost the attempt has spent by then. Some trials
// report no cost, and the last report of some is not a valid cost.
func (w *world) charged(trial int, metrics map[string]float64, share float64) map[string]float64 {
	if !w.costly || trial%6 == 0 {
		return metrics
	}
	paid := share * simCost(trial)
	if trial%6 == 1 && share == 1 {
		paid = []float64{-1, math.NaN()}[trial/6%2]
	}
	all := map[string]float64{simPaid: paid}
	maps.Copy(all, metrics)
	return all
}

// priced adds to an answer what its evaluations are expected to cost, as a model would that knows little.
func (w *world) priced(ev *Suggested) {
	if c := ev.Ask.Problem.Cost; c != nil && c.Budget > 0 && w.seed%4 < 2 {
		for i := range ev.Suggestions {
			ev.Suggestions[i].Cost = float64(ev.Ask.Request%5) / 2
		}
	}
}

// opening: an attempt that is a trial's first one is opened while the budget is not spent or spoken for. opened are the numbers of
// the trials that had one in a step.
func (c *checker) opening(w *world, opened []int) {
	most := w.e.spec.Definition.Spec.Budget.MaxCost
	if most == 0 || len(opened) == 0 {
		return
	}
	spent, sum, n := c.spending()
	all, last := spent, 0.
	for number, t := range c.trials {
		if t.State.Terminal() || len(t.Attempts) == 0 {
			continue
		}
		cost, reported := t.Cost()
		if expected := t.Expected; !reported || expected > cost {
			cost = expected
		}
		if cost == 0 && w.e.ladder.rungs == nil {
			cost = sum / max(1, n)
		}
		if all += cost; slices.Contains(opened, number) {
			last = max(last, cost)
		}
	}
	if spent >= most || all-last >= most+1e-9 {
		c.fail("the trials %v are begun with %v of %v spent and %v expected with them", opened, spent, most, all-spent)
	}
}

// spending is what the ended trials have cost by their records, with the sum and the number of those that have reported it.
func (c *checker) spending() (spent, sum, n float64) {
	var ended []record.Trial
	for _, t := range c.trials {
		if t.State.Terminal() && t.Source != optimizer.SourceAdded {
			ended = append(ended, t)
		}
	}
	slices.SortFunc(ended, func(a, b record.Trial) int { return int(a.Ended - b.Ended) })
	for _, t := range ended {
		cost, reported := t.Cost()
		spent += cost
		if reported && t.State != study.TrialCancelled {
			sum, n = sum+cost, n+1
		}
	}
	return spent, sum, n
}

// paid: a record's cost is what its attempts have reported, and all of it of one that completed; the status has the sum.
func (c *checker) paid(w *world) {
	if !w.costly {
		return
	}
	for number, t := range c.trials {
		whole := simCost(number)
		for _, a := range t.Attempts {
			switch {
			case a.Cost == nil:
			case number%6 == 0 || *a.Cost < 0 || *a.Cost > whole:
				c.fail("attempt %d/%d has cost %v, which was not reported", number, a.Number, *a.Cost)
			}
			if t.State == study.TrialCompleted && a.State == study.AttemptSucceeded && number%6 > 1 && (a.Cost == nil || *a.Cost != whole) {
				c.fail("attempt %d/%d has completed with a cost of %v, and reported %v", number, a.Number, a.Cost, whole)
			}
			if bad := number%6 < 2 && a.State == study.AttemptSucceeded && t.State == study.TrialCompleted; bad &&
				(a.Failure == nil || !strings.Contains(a.Failure.Message, simPaid)) {
				c.fail("attempt %d/%d has reported no cost, and its failure is %+v", number, a.Number, a.Failure)
			}
		}
	}
	if spent, _, _ := c.spending(); w.e.Status().Spent != spent {
		c.fail("the trials have cost %v, and the status says %v", spent, w.e.Status().Spent)
	}
}

// outlay reports whether a study may have ended by its budget of cost.
func (c *checker) outlay(w *world) bool {
	most := w.e.spec.Definition.Spec.Budget.MaxCost
	return most > 0 && w.e.Status().Spent >= most
}

// unheard reports whether a study may have failed since no trial has reported a cost.
func (c *checker) unheard(w *world) bool {
	_, _, n := c.spending()
	return w.e.spec.Definition.Spec.Budget.MaxCost > 0 && n == 0 && evaluated(c.trials) >= firstFailures
}

// At most one trial of each slot ends after the budget is spent, and such studies are among the schedules.
func TestAtMostOneTrialASlotGoesOver(t *testing.T) {
	over, exact := 0, 0
	for seed := uint64(1); seed <= uint64(fewer(150)); seed++ {
		w := newCostWorld(seed, 0)
		var before record.Study
		decode(w.led.study, &before)
		slots := 6 // an update may give the study as many
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		most := w.e.Spec().Definition.Spec.Budget.MaxCost
		if most != before.Definition.Spec.Budget.MaxCost { // by an update, which may be to less than is spent
			continue
		}
		var ended []record.Trial
		for _, data := range w.led.trials {
			var r record.Trial
			if decode(data, &r); r.State.Terminal() && r.Source != optimizer.SourceAdded && begun(&r) {
				ended = append(ended, r)
			}
		}
		slices.SortFunc(ended, func(a, b record.Trial) int { return int(a.Ended - b.Ended) })
		spent, after := 0., 0
		for _, r := range ended {
			if spent >= most {
				after++
			}
			cost, _ := r.Cost()
			spent += cost
		}
		if after >= slots {
			t.Errorf("seed %d: %d trials have ended after the budget of %v was spent", seed, after, most)
		}
		switch {
		case spent < most:
		case after > 0:
			over++
		default:
			exact++
		}
	}
	if !testing.Short() && (over < 10 || exact < 10) {
		t.Errorf("%d studies have gone over their budget and %d have not; want 10 of each", over, exact)
	}
}

// costRig is a study of a budget of 10 dollars with some trials at a time.
func costRig(t *testing.T, parallelism int) *rig {
	t.Helper()
	spec := newSpec(0, 0, parallelism)
	spec.Definition.Spec.Cost, spec.Definition.Spec.Budget.MaxCost = &study.Cost{Metric: "dollars"}, 10
	return newRig(t, spec, Settings{})
}

// begin answers n requests of the engine with a point of an expected cost each, and returns the trials that are begun.
func (r *rig) begin(n int, expected float64) []record.Trial {
	r.t.Helper()
	var begun []record.Trial
	for range n {
		ask := r.e.suggestions.ask
		if ask == nil {
			return begun
		}
		out := r.step(Suggested{At: epoch, Ask: ask, Suggestions: []optimizer.Suggestion{{
			Point: study.Point{"x": float64(len(r.e.trials.all)) / 64}, Source: optimizer.SourceModel, Cost: expected,
		}}})
		begun = append(begun, out.Trials...)
	}
	return begun
}

// spend ends a trial of a worker with a cost; NaN for none.
func (r *rig) spend(n int, outcome messaging.Outcome, cost float64) record.Trial {
	r.t.Helper()
	t, _ := r.e.Trial(n)
	id := messaging.AttemptID{Study: studyID, Trial: n, Attempt: 1, Nonce: t.Last().Nonce}
	r.step(Claimed{At: epoch, Claim: &messaging.Claim{AttemptID: id, Worker: "w", At: epoch}})
	result := &messaging.Result{AttemptID: id, Worker: "w", Outcome: outcome, Started: epoch, Ended: epoch}
	if outcome == messaging.OutcomeCompleted {
		result.Values = study.Values{0.5}
	}
	if !math.IsNaN(cost) {
		result.Metrics = map[string]float64{"dollars": cost}
	}
	r.step(Finished{At: epoch, Result: result})
	t, _ = r.e.Trial(n)
	return t
}

// By hand: of 10 dollars, trials of 4 and 3 are spent and one that is expected to cost 2 runs. Another one of 5 is begun, since 1 is
// left, and no third one. When the two end with 2 and 1 dollars, nothing is left, and the study ends.
func TestBudgetOfCostByHand(t *testing.T) {
	r := costRig(t, 2)
	r.step(Capacity{At: epoch, Slots: 3, Free: 3})
	whole := optimizer.Cost{Metric: "dollars", Budget: 10, Left: 10}
	if got := r.begin(2, 0); len(got) != 2 || got[0].Ask.Cost == nil || *got[0].Ask.Cost != whole {
		t.Fatalf("before anything has ended are begun %+v, want two with 10 dollars left", got)
	}
	r.spend(1, messaging.OutcomeCompleted, 4)
	r.spend(2, messaging.OutcomeFailed, 3)
	r.step(Capacity{At: epoch, Slots: 3, Free: 3})
	if got := r.begin(1, 2); len(got) != 1 || got[0].Expected != 2 {
		t.Fatalf("with 3 dollars left are begun %+v, want one that is expected to cost 2", got)
	}
	r.step(Capacity{At: epoch, Slots: 3, Free: 2})
	if p := r.e.Problem(); p.Cost.Left != 1 || p.Observations[0].Cost != 4 || p.Observations[1].Cost != 3 {
		t.Fatalf("the optimiser is told %+v of %+v, want 1 left of 4 and 3", p.Cost, p.Observations)
	}
	if got := r.begin(1, 5); len(got) != 1 {
		t.Fatalf("with 1 dollar left are begun %+v, want one", got)
	}
	r.step(Capacity{At: epoch, Slots: 9, Free: 9})
	if r.e.suggestions.ask != nil {
		t.Fatal("another point is asked for, though 12 dollars are spoken for")
	}
	if s := r.e.Status(); s.State != study.Running || s.Spent != 7 {
		t.Fatalf("the study is %s with %v spent, want running with 7", s.State, s.Spent)
	}
	r.spend(3, messaging.OutcomeCompleted, 2)
	r.spend(4, messaging.OutcomeCompleted, 1)
	if s := r.e.Status(); s.State != study.Completed || s.Spent != 10 || s.Reason != "10 of 10 dollars are spent (maxCost)" {
		t.Errorf("the study is %s with %v spent: %s", s.State, s.Spent, s.Reason)
	}
	e, _, err := r.ledger.load(&counterIDs{prefix: "b"}, Settings{}, epoch)
	if err != nil || e.Status().Spent != 10 || e.Status().State != study.Completed {
		t.Errorf("the next leader has %+v, %v", e.Status(), err)
	}
}

// A cost that is none does not count, and the trial's story says so: its value stays, and what was expected of it counts.
func TestBadCosts(t *testing.T) {
	for name, c := range map[string]struct {
		cost float64
		says string
	}{
		"negative": {-3, "warning: the program reported dollars -3, and a cost (cost.metric) is a finite number from 0 on"},
		"infinite": {math.Inf(1), "dollars +Inf"},
		"none":     {math.NaN(), "the program did not report dollars (cost.metric) as a finite number"},
	} {
		t.Run(name, func(t *testing.T) {
			r := costRig(t, 1)
			r.step(Capacity{At: epoch, Slots: 1, Free: 1})
			r.begin(1, 0)
			r.spend(1, messaging.OutcomeCompleted, 1.5)
			r.step(Capacity{At: epoch, Slots: 1, Free: 1})
			r.begin(1, 0)
			got := r.spend(2, messaging.OutcomeCompleted, c.cost)
			if cost, reported := got.Cost(); got.State != study.TrialCompleted || got.Values.First() != 0.5 || cost != 1.5 || reported {
				t.Errorf("the trial is %s with the value %v, and counts with %v (reported %v); want 1.5 as the one before", got.State, got.Values,
					cost, reported)
			}
			if f := got.Last().Failure; f == nil || !strings.Contains(f.Message, c.says) ||
				!strings.HasSuffix(f.Message, "the trial counts with what was expected of it") {
				t.Errorf("the failure is %+v, want a warning that says %q", f, c.says)
			}
			if s := r.e.Status(); s.Spent != 3 {
				t.Errorf("%v are spent, want 3", s.Spent)
			}
		})
	}
}

// The attempts of a trial are added up, and a lost one counts with what it has reported.
func TestCostOfAttempts(t *testing.T) {
	r := costRig(t, 1)
	retries := 1
	spec := r.e.Spec()
	spec.Definition.Spec.Trial.Retries.Lost = &retries
	r.step(Update{At: epoch, Study: spec})
	r.step(Capacity{At: epoch, Slots: 1, Free: 1})
	r.begin(1, 0)
	lose := func(attempt int, reports ...float64) {
		t.Helper()
		got, _ := r.e.Trial(1)
		id := messaging.AttemptID{Study: studyID, Trial: 1, Attempt: attempt, Nonce: got.Last().Nonce}
		r.step(Claimed{At: epoch, Claim: &messaging.Claim{AttemptID: id, Worker: "w", At: epoch}})
		for i, paid := range reports {
			r.step(Measured{At: epoch, Measurement: &messaging.Measurement{
				AttemptID: id, Worker: "w", Step: int64(i), Metrics: map[string]float64{"dollars": paid, "loss": 1},
			}})
		}
		r.step(Lost{At: epoch, Attempt: id, Reason: "simulated"})
		r.step(Capacity{At: epoch, Slots: 1, Free: 1})
	}
	lose(1, 1, 1.1, 1.2)
	if got, _ := r.e.Trial(1); *got.Attempts[0].Cost != 1.2 {
		t.Errorf("the lost attempt has cost %v, want 1.2", *got.Attempts[0].Cost)
	}
	lose(2, 3)
	got, _ := r.e.Trial(1)
	if cost, reported := got.Cost(); got.State != study.TrialFailed || cost != 4.2 || !reported {
		t.Errorf("the trial is %s and has cost %v, want failed and 4.2", got.State, cost)
	}
	if s := r.e.Status(); math.Abs(s.Spent-4.2) > 1e-12 {
		t.Errorf("%v are spent, want 4.2", s.Spent)
	}
}

// A program that reports no cost does not go on for ever: the study says what is missing.
func TestNothingReportsACost(t *testing.T) {
	r := costRig(t, 1)
	for n := 1; n <= firstFailures; n++ {
		if s := r.e.Status(); s.State != study.Running {
			t.Fatalf("the study is %s before trial %d: %s", s.State, n, s.Reason)
		}
		r.step(Capacity{At: epoch, Slots: 1, Free: 1})
		r.begin(1, 0)
		r.spend(n, messaging.OutcomeCompleted, math.NaN())
	}
	want := fmt.Sprintf("none of the %d trials that have ended has reported dollars (cost.metric)", firstFailures)
	if s := r.e.Status(); s.State != study.Failed || !strings.HasPrefix(s.Reason, want) {
		t.Errorf("the study is %s: %s", s.State, s.Reason)
	}
}

// Points that users want to have evaluated wait for the budget, too, and are refused once it is spoken for.
func TestWishesWaitForTheBudget(t *testing.T) {
	r := costRig(t, 1)
	for i := range 3 {
		r.step(Enqueue{At: epoch, Point: study.Point{"x": float64(i) / 4}})
	}
	r.step(Capacity{At: epoch, Slots: 3, Free: 3})
	r.spend(1, messaging.OutcomeCompleted, 6)
	r.step(Capacity{At: epoch, Slots: 3, Free: 3})
	if out := r.e.Step(Enqueue{At: epoch, Point: study.Point{"x": 1.0}}); out.Answer.Err == nil ||
		!strings.Contains(out.Answer.Err.Error(), "6 of maxCost 10 dollars are spent") {
		t.Errorf("with 6 dollars spent and 6 expected the answer to another wish is %v", out.Answer.Err)
	}
	r.spend(2, messaging.OutcomeCompleted, 6)
	if s := r.e.Status(); s.State != study.Completed || s.Spent != 12 || s.Counts.Cancelled != 1 {
		t.Errorf("the study is %s with %v spent, and has %+v; want the third wish cancelled", s.State, s.Spent, s.Counts)
	}
}
