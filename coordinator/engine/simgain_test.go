package engine

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// simGain is the gain at which studies of the simulated world stop.
const simGain = 1

// TestSimulatorOfGain plays schedules of studies that end once more trials are not worth it: they end so as soon as the ledger has
// a forecast that says so, whatever fails, and not without one.
func TestSimulatorOfGain(t *testing.T) {
	simulate(t, func(seed uint64) error { return newGainWorld(seed, 0).run() })
}

// newGainWorld draws a study with stopWhen, of workers or of clients, from a seed.
func newGainWorld(seed uint64, off safety) *world {
	w := newAnyWorld(seed, off)
	w.edit(func(s *study.Spec) {
		if s.Budget.StopWhen.Gain = simGain; seed%2 == 0 {
			s.Budget.StopWhen.Per = study.PerHour
		}
	})
	return w
}

// forecast adds to some answers what more trials are expected to gain: less, the more have completed.
func (w *world) forecast(ev *Suggested) {
	if w.e.spec.Definition.Spec.Budget.StopWhen.Gain > 0 && ev.Ask.Request%2 == 0 {
		most := 4 / float64(1+ev.Ask.completed)
		// Now and then it is not known what trials take.
		ev.Gain = &optimizer.Gain{Trials: optimizer.GainTrials, Expected: most / 2, Most: most, Seconds: float64(ev.Ask.Request%6) * 900}
	}
}

// worthless reports whether a study may have ended because more trials were not worth it.
func (c *checker) worthless(w *world) bool {
	s, enough := w.e.Status(), w.e.spec.Definition.Spec.Budget.StopWhen
	most := s.Gain.Most
	if enough.Per == study.PerHour {
		most /= s.Gain.Seconds / 3600
	}
	return enough.Gain > 0 && s.Gain.Completed > 0 && most <= enough.Gain
}

// gainRig is a study of one trial at a time that ends once more trials gain at most 0.1.
func gainRig(t *testing.T) *rig {
	t.Helper()
	spec := newSpec(0, 100, 1)
	spec.Definition.Spec.Budget.StopWhen.Gain = 0.1
	r := newRig(t, spec, Settings{})
	r.step(Capacity{At: epoch, Slots: 1, Free: 1})
	return r
}

// trial plays a trial: the request is answered with a point and a forecast, and the trial completes.
func (r *rig) trial(gain *optimizer.Gain) {
	r.t.Helper()
	n := len(r.e.trials.all) + 1
	ask := r.e.suggestions.ask
	if ask == nil {
		r.t.Fatalf("nothing is asked for before trial %d: %s", n, describeStatus(r.e.Status()))
	}
	r.step(Suggested{At: epoch, Ask: ask, Gain: gain, Suggestions: []optimizer.Suggestion{{
		Point: study.Point{"x": float64(n) / 128}, Source: optimizer.SourceModel,
	}}})
	if r.e.Status().State.Terminal() {
		return
	}
	t, _ := r.e.Trial(n)
	id := messaging.AttemptID{Study: studyID, Trial: n, Attempt: 1, Nonce: t.Last().Nonce}
	r.step(Claimed{At: epoch, Claim: &messaging.Claim{AttemptID: id, Worker: "w", At: epoch}})
	r.step(Finished{At: epoch, Result: &messaging.Result{
		AttemptID: id, Worker: "w", Outcome: messaging.OutcomeCompleted, Values: study.Values{0.5}, Started: epoch, Ended: epoch,
	}})
	r.step(Capacity{At: epoch, Slots: 1, Free: 1})
}

// The optimiser is asked for a forecast once 24 trials have completed, and again after five more. The study goes on while the most
// that is to be expected is above the threshold, whatever is expected, and ends with a sentence once it is not; the next leader knows the
// forecast as well.
func TestStopsWhenMoreTrialsAreNotWorthIt(t *testing.T) {
	r := gainRig(t)
	var forecasts []int
	for n := range 31 {
		var gain *optimizer.Gain
		if r.e.suggestions.ask.Forecast {
			forecasts = append(forecasts, n)
			gain = &optimizer.Gain{Trials: 30, Expected: 0.01, Most: 0.2}
		}
		r.trial(gain)
	}
	// A request is made while the trial before it runs, so that it answers a trial later.
	if want := []int{optimizer.GainCompleted + 1, optimizer.GainCompleted + 1 + forecastEvery}; !slices.Equal(forecasts, want) {
		t.Fatalf("forecasts are asked for with the requests for trials after %v, want %v", forecasts, want)
	}
	if s := r.e.Status(); s.State != study.Running || s.Gain.Most != 0.2 || s.Gain.Completed != 29 {
		t.Fatalf("the study is %s: %s", s.State, describeStatus(s))
	}
	r.restart()
	if s := r.e.Status(); s.Gain.Most != 0.2 || s.Gain.Completed != 29 {
		t.Fatalf("the next leader knows the gain %+v", s.Gain)
	}
	r.step(Tick{At: epoch})
	r.step(Capacity{At: epoch, Slots: 1, Free: 1})
	r.trial(&optimizer.Gain{Trials: 30, Expected: 0.01, Most: 0.1})
	want := "30 more trials are expected to gain 0.01 and, in nine of ten cases, at most 0.1, which is not more than 0.1 (stopWhen.gain)"
	if s := r.e.Status(); s.State != study.Completed || s.Reason != want {
		t.Errorf("the study is %s: %s; want completed: %s", s.State, s.Reason, want)
	}
}

// A gain for an hour or a unit of cost ends a study by what 30 trials take; while that is not known, the study goes on.
func TestStopsWhenMoreTrialsAreNotWorthWhatTheyTake(t *testing.T) {
	for per, want := range map[study.Per]string{
		study.PerHour: "at most 0.4, and to take 5 hours together: at most 0.08 an hour, which is not more than 0.1 (stopWhen.gain)",
		study.PerCost: "at most 0.4, and to cost 8 dollars together: at most 0.05 for each, which is not more than 0.1 (stopWhen.gain)",
	} {
		spec := newSpec(0, 100, 1)
		spec.Definition.Spec.Budget.StopWhen, spec.Definition.Spec.Cost = study.StopWhen{Gain: 0.1, Per: per}, &study.Cost{Metric: "dollars"}
		r := newRig(t, spec, Settings{})
		r.step(Capacity{At: epoch, Slots: 1, Free: 1})
		for _, gain := range []*optimizer.Gain{
			nil, {Trials: 30, Most: 0.04}, {Trials: 30, Most: 0.4, Seconds: 3600, Cost: 3}, {Trials: 30, Most: 0.4, Seconds: math.NaN()},
		} {
			r.trial(gain)
			if s := r.e.Status(); s.State != study.Running {
				t.Fatalf("%s: after a gain %+v the study is %s: %s", per, gain, s.State, s.Reason)
			}
		}
		r.trial(&optimizer.Gain{Trials: 30, Expected: 0.01, Most: 0.4, Seconds: 5 * 3600, Cost: 8})
		if s := r.e.Status(); s.State != study.Completed || !strings.HasSuffix(s.Reason, want) {
			t.Errorf("%s: the study is %s: %s; want completed: … %s", per, s.State, s.Reason, want)
		}
	}
}

// A study without stopWhen asks for no forecast, and does not end by one. Numbers that cannot be a gain count for nothing.
func TestForecastsThatCountForNothing(t *testing.T) {
	r := newRig(t, newSpec(0, 100, 1), Settings{})
	r.step(Capacity{At: epoch, Slots: 1, Free: 1})
	for range optimizer.GainCompleted + 2 {
		if r.e.suggestions.ask.Forecast {
			t.Fatal("a study without stopWhen asks for a forecast")
		}
		r.trial(&optimizer.Gain{Trials: 30})
	}
	if s := r.e.Status(); s.State != study.Running {
		t.Errorf("the study is %s: %s", s.State, s.Reason)
	}
	r = gainRig(t)
	r.trial(&optimizer.Gain{Trials: 30, Most: -1})
	r.trial(&optimizer.Gain{})
	if s := r.e.Status(); s.State != study.Running || s.Gain.Completed != 0 {
		t.Errorf("the study is %s and expects %+v", s.State, s.Gain)
	}
}

// A lower threshold lets a study go on that has ended, and a new space is not judged by the forecast of the old one.
func TestEditOfStopWhen(t *testing.T) {
	r := gainRig(t)
	r.trial(nil)
	r.trial(&optimizer.Gain{Trials: 30, Most: 0.05})
	if s := r.e.Status(); s.State != study.Completed || !strings.Contains(s.Reason, "stopWhen.gain") {
		t.Fatalf("the study is %s: %s", s.State, s.Reason)
	}
	edited := r.e.Spec()
	edited.Definition.Spec.Budget.StopWhen.Gain = 0.01
	r.step(Update{At: epoch, Study: edited})
	if s := r.e.Status(); s.State != study.Running || s.Gain.Most != 0.05 {
		t.Fatalf("with another threshold the study is %s: %s", s.State, describeStatus(s))
	}
	edited = r.e.Spec()
	edited.Definition.Spec.Parameters = append([]study.Parameter{}, edited.Definition.Spec.Parameters...)
	wider := 2.0
	edited.Definition.Spec.Parameters[0].Max = &wider
	r.step(Update{At: epoch, Study: edited})
	if s := r.e.Status(); s.Gain.Completed != 0 {
		t.Errorf("the forecast of the old space is %+v", s.Gain)
	}
}
