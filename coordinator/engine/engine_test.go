package engine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestAssignmentHoldsWhatAWorkerNeeds(t *testing.T) {
	spec := newSpec(0, 3, 1)
	spec.Definition.Spec.Trial.Env = map[string]string{"DATA": "/data"}
	r := newRig(t, spec, Settings{})
	out := r.suggest(0.5)
	want := []*messaging.Assignment{{
		Version:        messaging.SchemaVersion,
		AttemptID:      messaging.AttemptID{Study: studyID, Trial: 1, Attempt: 1, Nonce: "n1"},
		Pool:           "default",
		StudyName:      "test",
		Seed:           TrialSeed(7, 1),
		Parameters:     study.Point{"x": 0.5},
		Objective:      spec.Definition.Spec.Objective,
		Run:            spec.Definition.Spec.Trial,
		ParameterOrder: []string{"x"},
		TraceContext:   messaging.TraceContext{Traceparent: "00-" + strings.Repeat("0", 31) + "1-" + strings.Repeat("0", 15) + "1-01"},
	}}
	if diff := cmp.Diff(want, out.Publish); diff != "" {
		t.Error(diff)
	}
}

// TestTrialSeed checks that the seed is the same in every attempt, differs between trials
// and studies, and is small enough for any program.
func TestTrialSeed(t *testing.T) {
	seen := map[uint64]bool{}
	for s := range uint64(100) {
		for trial := 1; trial <= 100; trial++ {
			seed := TrialSeed(s, trial)
			if seed != TrialSeed(s, trial) || seed >= 1<<31 {
				t.Fatalf("seed of trial %d of study %d: %d", trial, s, seed)
			}
			seen[seed] = true
		}
	}
	// 10,000 draws of 2^31 hold 0.02 equal pairs on average (the birthday problem).
	if len(seen) < 9998 {
		t.Errorf("%d different seeds of 10000", len(seen))
	}
	// SplitMix64's first output for the state 1234567, from its authors' test vector.
	if got := mix(1234567 + golden); got != 6457827717110365317 {
		t.Errorf("SplitMix64(1234567) = %d", got)
	}
}

func TestHandedBackTooOftenFails(t *testing.T) {
	r := newRig(t, newSpec(0, 2, 1), Settings{})
	r.suggest(0.5)
	for i := 1; i <= study.MaxHandBacks; i++ {
		r.finish("w", 1, i, messaging.OutcomeHandedBack)
		if trial, _ := r.e.Trial(1); trial.State != study.TrialQueued || len(trial.Attempts) != i+1 {
			t.Fatalf("after %d hand-backs: %s, %d attempts", i, trial.State, len(trial.Attempts))
		}
	}
	r.finish("w", 1, study.MaxHandBacks+1, messaging.OutcomeHandedBack)
	trial, _ := r.e.Trial(1)
	if trial.State != study.TrialFailed || trial.Last().Failure == nil {
		t.Fatalf("trial %s, failure %v", trial.State, trial.Last().Failure)
	}
}

// Attempts that nobody can claim are replaced only up to the limit of hand-backs.
func TestWithdrawnTooOftenFails(t *testing.T) {
	r := newRig(t, newSpec(0, 2, 1), Settings{})
	r.suggest(0.5)
	for i := 1; i <= study.MaxHandBacks+1; i++ {
		if trial, _ := r.e.Trial(1); trial.State != study.TrialQueued || len(trial.Attempts) != i {
			t.Fatalf("after %d withdrawals: %s, %d attempts", i-1, trial.State, len(trial.Attempts))
		}
		r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: r.id(1, i), Worker: messaging.LeaderName, At: r.now}})
	}
	trial, _ := r.e.Trial(1)
	if trial.State != study.TrialFailed || trial.Last().Failure == nil || trial.Ended == 0 {
		t.Fatalf("trial %s, failure %v", trial.State, trial.Last().Failure)
	}
}

func TestResultsThatAreNotFiniteAreInfeasible(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(-1)
	tests := []struct {
		name   string
		values []float64
		want   study.TrialState
	}{
		{"one", []float64{1}, study.TrialCompleted},
		{"NaN", []float64{nan}, study.TrialInfeasible},
		{"-Inf", []float64{inf}, study.TrialInfeasible},
		{"none", nil, study.TrialInfeasible},
		{"one too many", []float64{1, 2}, study.TrialFailed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, newSpec(0, 9, 1), Settings{})
			r.suggest(0.5)
			res := r.result("w", 1, 1, messaging.OutcomeCompleted)
			res.Values, res.Metrics = test.values, map[string]float64{"good": 2, "nan": nan, "inf": inf}
			r.step(Finished{At: r.now, Result: res}) // commits: JSON refuses NaN
			trial, _ := r.e.Trial(1)
			if trial.State != test.want {
				t.Errorf("%s, want %s", trial.State, test.want)
			}
			if _, bad := trial.Metrics["nan"]; bad || len(trial.Metrics) > 1 {
				t.Errorf("metrics %v", trial.Metrics)
			}
		})
	}
}

// ledgerTakes is the largest record in bytes that the ledger accepts: see
// ledger.MaxBytes.
const ledgerTakes = 1 << 20

// failing fails a trial's attempts, as many as it gets, by results that are as
// long as they may be, and returns its last record. The record always fits. So
// many attempts are copies of the ninth, to save time.
func failing(t *testing.T, reason string, copies int) record.Trial {
	spec := newSpec(0, 10, 1)
	most := 1000
	spec.Definition.Spec.Trial.Retries = study.Retries{Failed: &most}
	r := newRig(t, spec, Settings{})
	r.suggest(0.5)
	for n := 1; ; n++ {
		res := r.result("gpu.worker-7f9c5d-abcde", 1, n, messaging.OutcomeFailed)
		res.Failure = &messaging.Failure{Reason: reason, Message: strings.Repeat("<", messaging.MaxMessage)}
		res.Logs = strings.Repeat("&", messaging.MaxReference)
		long := strings.Repeat("&", messaging.MaxSite)
		res.Site = &messaging.Site{Job: long, Node: long, Devices: long}
		res.Stages = &messaging.Stages{Started: r.now}
		if n == 20 {
			repeat(&r.e.trials.all[0].rec, 9, copies)
			n += copies
			res.AttemptID = r.id(1, n)
		}
		r.step(Finished{At: r.now, Result: res})
		if stored := len(r.ledger.trials[1]); stored > ledgerTakes {
			t.Fatalf("with %d attempts the record has %d bytes", n, stored)
		}
		if rec, _ := r.e.Trial(1); rec.State.Terminal() {
			return rec
		}
	}
}

// repeat puts n copies of an attempt behind it.
func repeat(t *record.Trial, attempt, n int) {
	t.Attempts = slices.Insert(t.Attempts, attempt, slices.Repeat(t.Attempts[attempt-1:attempt], n)...)
	for i := range t.Attempts {
		t.Attempts[i].Number = i + 1
	}
}

// A trial may be retried a thousand times, however long its programs' messages are: only
// the first and the last attempts keep them.
func TestAThousandAttemptsFitTheLedger(t *testing.T) {
	rec := failing(t, "exit", 900)
	if len(rec.Attempts) != 1001 {
		t.Fatalf("the trial is %s after %d attempts: %.300v", rec.State, len(rec.Attempts), rec.Last().Failure)
	}
	for i := range rec.Attempts {
		a := &rec.Attempts[i]
		if a.Nonce == "" || a.Outcome == "" || a.Failure == nil || a.Failure.Reason != "exit" {
			t.Fatalf("attempt %d: %.300v", a.Number, a)
		}
		kept := i < textsFirst || i >= len(rec.Attempts)-1-textsLast
		if (a.Failure.Message != "") != kept || (a.Logs != "") != kept || (a.Site != nil) != kept || (a.Stages != nil) != kept {
			t.Errorf("attempt %d of %d says %.20q, see %.20q", a.Number, len(rec.Attempts), a.Failure.Message, a.Logs)
		}
	}
}

// The trial fails if retries allow more attempts than its record has room for.
func TestTooManyAttemptsForTheLedger(t *testing.T) {
	rec := failing(t, strings.Repeat("<", messaging.MaxReason), 0)
	if rec.State != study.TrialFailed || rec.Last().Failure.Reason != "too many attempts" {
		t.Errorf("the trial is %s: %.300v", rec.State, rec.Last().Failure)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	r := newRig(t, newSpec(0, 9, 1), Settings{})
	r.suggest(0.5)
	res := r.result("w", 1, 1, messaging.OutcomeFailed)
	res.Failure = &messaging.Failure{Message: strings.Repeat("é", messaging.MaxMessage)}
	r.step(Finished{At: r.now, Result: res})
	trial, _ := r.e.Trial(1)
	m := trial.Last().Failure.Message
	if len(m) > messaging.MaxMessage || !utf8.ValidString(m) {
		t.Errorf("a message of %d bytes was kept, valid: %t", len(m), utf8.ValidString(m))
	}
	if len(res.Failure.Message) == len(m) {
		t.Error("the caller's result was changed")
	}
}

// TestRequestIsASnapshot checks that later steps do not change a problem that an optimiser
// is reading.
func TestRequestIsASnapshot(t *testing.T) {
	r := newRig(t, newSpec(0, 99, 2), Settings{})
	r.step(Capacity{At: r.now, Slots: 2, Free: 2})
	r.suggest(0.5)
	r.suggest(0.25)
	r.complete("w", 1, 1, 3)
	p := r.ask.Problem
	copied := fmt.Sprint(p.Observations, p.Pending, p.First)
	r.suggest(0.75)
	for i := 2; i <= 30; i++ {
		r.complete("w", i, 1, float64(i))
		r.suggest(float64(i) / 100)
	}
	if now := fmt.Sprint(p.Observations, p.Pending, p.First); now != copied {
		t.Errorf("the problem was\n%s\nand is\n%s", copied, now)
	}
	if cap(p.Observations) != len(p.Observations) {
		t.Error("an append to the snapshot would write into the engine's history")
	}
}

// TestReasonsThatAreNotFiniteAreDropped: JSON has no infinity, and LogEI does.
func TestReasonsThatAreNotFiniteAreDropped(t *testing.T) {
	r := newRig(t, newSpec(0, 9, 1), Settings{})
	nan, sd := math.NaN(), 0.5
	r.answer([]optimizer.Suggestion{{Point: study.Point{"x": 0.1}, Reasons: optimizer.Reasons{
		Mean: &nan, SD: &sd, Acquisition: map[string]float64{"LogEI": math.Inf(-1), "UCB": 1},
	}}}, nil) // commits
	trial, _ := r.e.Trial(1)
	want := optimizer.Reasons{SD: &sd, Acquisition: map[string]float64{"UCB": 1}}
	if diff := cmp.Diff(want, trial.Reasons); diff != "" {
		t.Error(diff)
	}
}

// TestPointsSurviveARestart: JSON knows no integers, but a space does.
func TestPointsSurviveARestart(t *testing.T) {
	spec := newSpec(0, 9, 1)
	lo, hi := 1.0, 64.0
	spec.Definition.Spec.Parameters = []study.Parameter{
		{Name: "layers", Type: study.Int, Min: &lo, Max: &hi},
		{Name: "width", Type: study.Ordinal, Values: []any{int64(8), int64(16)}},
		{Name: "mix", Type: study.Categorical, Values: []any{"a", 0.5, true}},
		{Name: "rate", Type: study.Float, Min: &lo, Max: &hi, When: map[string][]any{"mix": {0.5}}},
	}
	r := newRig(t, spec, Settings{})
	point := study.Point{"layers": int64(3), "width": int64(16), "mix": 0.5, "rate": 2.0}
	r.answer([]optimizer.Suggestion{{Point: point}}, nil)
	r.complete("w", 1, 1, 1)
	r.restart()
	if diff := cmp.Diff(point, r.e.Problem().Observations[0].Point); diff != "" {
		t.Error(diff)
	}
	if out := r.after(0); out.Ask == nil || len(out.Warnings) > 0 {
		t.Errorf("the study does not go on: %v", describe(out))
	}
}

// TestRepeatsOnPurpose checks that a point of a finite space is evaluated again only if
// the optimiser repeats it on purpose, and that the space is not exhausted then.
func TestRepeatsOnPurpose(t *testing.T) {
	spec := newSpec(0, 9, 1)
	lo, hi := 1.0, 2.0
	spec.Definition.Spec.Parameters = []study.Parameter{{Name: "n", Type: study.Int, Min: &lo, Max: &hi}}
	r := newRig(t, spec, Settings{})
	point := func(n int64, repeat bool) []optimizer.Suggestion {
		return []optimizer.Suggestion{{Point: study.Point{"n": n}, Repeat: repeat}}
	}
	for trial, s := range [][]optimizer.Suggestion{point(1, false), point(2, false), point(1, true), point(1, true)} {
		r.answer(s, nil)
		r.complete("w", trial+1, 1, float64(trial))
	}
	if got := r.e.Problem().Observations; len(got) != 4 || r.e.Status().State.Terminal() {
		t.Fatalf("%d evaluations, the study is %s; want 4 of a study that goes on", len(got), r.e.Status().State)
	}
	out := r.answer(point(2, false), nil)
	if len(out.Warnings) == 0 || len(r.e.Problem().Pending) != 0 {
		t.Errorf("a repeat by mistake is taken: %v", describe(out))
	}
}

// TestLookAhead: how many attempts are queued with so many free slots.
func TestLookAhead(t *testing.T) {
	tests := []struct {
		name        string
		slots, free int
		mean        time.Duration
		want        int
	}{
		{"no worker yet", 0, 0, 0, 1},
		{"one free slot", 1, 1, 0, 1},
		{"eight free slots", 8, 8, 0, 8},
		{"all free, short evaluations", 8, 8, time.Millisecond, 9},
		{"all free, long evaluations", 8, 8, time.Minute, 8},
		{"others hold the pool", 8, 0, time.Minute, 1},
		{"others hold most of it", 64, 2, time.Minute, 10},
		{"large pool, short evaluations", 80, 10, time.Millisecond, 20},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, newSpec(0, 1000, 100), Settings{Fallback: true})
			if test.mean > 0 {
				r.e.evaluations.add(&record.Attempt{Started: epoch, Ended: epoch.Add(test.mean)}, epoch)
			}
			r.step(Capacity{At: r.now, Slots: test.slots, Free: test.free})
			for range 3 {
				r.after(3 * time.Second)
			}
			if got := r.e.Status().Counts.Queued; got != test.want {
				t.Errorf("%d queued, want %d", got, test.want)
			}
		})
	}
}

func TestModelIsCommittedWithItsFirstSuggestionOnly(t *testing.T) {
	r := newRig(t, newSpec(0, 9, 2), Settings{})
	r.step(Capacity{At: r.now, Slots: 2, Free: 1})
	ask := r.ask
	list := []optimizer.Suggestion{{Point: study.Point{"x": 0.1}, Source: optimizer.SourceModel}}
	out := r.step(Suggested{At: r.now, Ask: ask, Suggestions: list, State: optimizer.State("s")})
	if out.Model == nil || string(out.Model.State) != "s" || out.Model.Request != 1 {
		t.Errorf("model %v", out.Model)
	}
	if out := r.step(Suggested{At: r.now, Ask: ask, Suggestions: list, State: optimizer.State("s")}); len(out.Trials) != 0 ||
		out.Model != nil {
		t.Errorf("a second answer to the same request made %v", describe(out))
	}
	r.ask = r.e.suggestions.ask
	if r.ask != nil && string(r.ask.State) != "s" {
		t.Errorf("the next request holds the state %q", r.ask.State)
	}
}

// In a continuous space, the engine drops suggested points that became trials after the
// request. Points that were trials before are repeated on purpose.
func TestOvertakenSuggestionIsNotRepeated(t *testing.T) {
	r := newRig(t, newSpec(0, 9, 4), Settings{})
	r.step(Capacity{At: r.now, Slots: 4, Free: 4})
	first := r.ask
	r.suggest(0.1)
	second := r.ask
	if second == nil || second == first {
		t.Fatal("four free slots and one suggestion make no second request")
	}
	r.suggest(0.2, 0.1)
	// Both again, as an answer that was asked for before the second of them would.
	r.e.suggestions.ask = second
	r.ask = second
	r.suggest(0.2, 0.1, 0.3)
	var points []any
	for n := 1; n <= r.e.Status().Trials; n++ {
		trial, _ := r.e.Trial(n)
		points = append(points, trial.Point["x"])
	}
	if diff := cmp.Diff([]any{0.1, 0.2, 0.1, 0.3}, points); diff != "" {
		t.Errorf("points of trials (-want +got):\n%s", diff)
	}
}

func TestStateThatIsTooLargeIsNotKept(t *testing.T) {
	r := newRig(t, newSpec(0, 9, 1), Settings{})
	out := r.step(Suggested{
		At: r.now, Ask: r.ask, State: make(optimizer.State, optimizer.MaxStateSize+1),
		Suggestions: []optimizer.Suggestion{{Point: study.Point{"x": 0.1}, Source: optimizer.SourceModel}},
	})
	if len(out.Trials) != 1 || out.Model == nil || out.Model.State != nil || len(out.Warnings) != 1 {
		t.Errorf("%v, model %v", describe(out), out.Model)
	}
}

// TestOptimizerThatNeverAnswers checks that fallbacks complete the study.
func TestOptimizerThatNeverAnswers(t *testing.T) {
	r := newRig(t, newSpec(0, 5, 1), Settings{Fallback: true})
	for i := 1; i <= 5; i++ {
		r.now = r.out.Wake
		if r.now.IsZero() {
			t.Fatalf("nothing would happen any more, with %s", describeStatus(r.e.Status()))
		}
		r.after(0)
		r.complete("w", i, 1, 1)
	}
	if s := r.e.Status(); s.State != study.Completed {
		t.Error(describeStatus(s))
	}
}

// TestFallbackThatFails checks that the engine neither gives up nor calls it in a loop.
func TestFallbackThatFails(t *testing.T) {
	calls := 0
	r := newRig(t, newSpec(0, 5, 1), Settings{Fallback: true})
	r.fallback = func(*optimizer.Problem, int) ([]optimizer.Suggestion, error) {
		calls++
		return nil, errors.New("no entropy")
	}
	r.answer(nil, errors.New("singular matrix"))
	for range 100 {
		r.after(100 * time.Millisecond)
	}
	if calls < 5 || calls > 11 {
		t.Errorf("%d calls in 10 s, want one a second", calls)
	}
	r.suggest(0.5)
	if r.e.Status().Trials != 1 {
		t.Errorf("the optimiser's answer was not used: %s", describeStatus(r.e.Status()))
	}
}

func TestLoadRefusesRecordsThatDoNotFit(t *testing.T) {
	one, nan := []float64{1}, []float64{math.NaN()}
	trial := func(n int, s study.TrialState, p study.Point, v []float64) record.Trial {
		return record.Trial{Number: n, State: s, Point: p, Values: v, Created: int64(2*n - 1), Ended: int64(2 * n)}
	}
	point := study.Point{"x": 0.5}
	tests := []struct {
		name   string
		made   int
		trials []record.Trial
		want   string
	}{
		{"missing", 2, []record.Trial{trial(2, study.TrialCompleted, point, one)}, "1 trials"},
		{"gap", 0, []record.Trial{trial(2, study.TrialCompleted, point, one)}, "expected trial 1"},
		{"state", 1, []record.Trial{trial(1, "DONE", point, one)}, `"DONE"`},
		{"value", 1, []record.Trial{trial(1, study.TrialCompleted, point, nil)}, "finite"},
		{"two values", 1, []record.Trial{trial(1, study.TrialCompleted, point, []float64{1, 2})}, "1 objectives"},
		{"NaN", 1, []record.Trial{trial(1, study.TrialCompleted, point, nan)}, "finite"},
		{"point", 1, []record.Trial{trial(1, study.TrialCompleted, study.Point{"y": 1.0}, one)}, "y"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status := record.Status{State: study.Running, Trials: test.made, Started: epoch}
			_, _, err := Load(newSpec(0, 9, 1), status, record.Model{}, test.trials, &counterIDs{}, Settings{}, epoch)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// TestLoadMendsACommitThatWasCutOff loads a study whose last commit stored either the
// trials or the status, but not both.
func TestLoadMendsACommitThatWasCutOff(t *testing.T) {
	r := newRig(t, newSpec(0, 9, 3), Settings{})
	r.step(Capacity{At: r.now, Slots: 3, Free: 3})
	r.suggest(0.1)
	r.suggest(0.2, 0.3)
	before := r.ledger.status
	trials := maps.Clone(r.ledger.trials)
	r.step(Stop{At: r.now, Reason: "enough"})
	after := r.ledger.status

	r.ledger.status = before
	out := r.restart()
	if s := r.e.Status(); out.Status == nil || s.Counts.Cancelled != 3 || s.Position != 6 {
		t.Errorf("trials without status: %s", describeStatus(s))
	}
	r.ledger.status, r.ledger.trials = after, trials
	out = r.restart()
	if s := r.e.Status(); len(out.Trials) != 3 || s.Counts.Cancelled != 3 || s.State != study.Stopped {
		t.Errorf("status without trials: %s, %v", describeStatus(s), describe(out))
	}
}

func TestNewRefusesASpaceThatCannotBe(t *testing.T) {
	spec := newSpec(0, 9, 1)
	spec.Definition.Spec.Parameters[0].Min = nil
	if _, _, err := New(spec, &counterIDs{}, Settings{}, epoch); err == nil || !strings.Contains(err.Error(), "test") {
		t.Errorf("error %v, want one that names the study", err)
	}
}

// The engine keeps a recommendation, even after the study's end, if it is a completed trial
// and uses newer observations than the last one.
func TestRecommended(t *testing.T) {
	r := newRig(t, newSpec(0, 3, 1), Settings{})
	r.suggest(0.25)
	r.complete("w", 1, 1, 3)
	r.suggest(0.5)
	recommend := func(trial int, mean float64, position int64) {
		r.step(Recommended{At: r.now, Recommendation: record.Recommendation{Trial: trial, Mean: mean, SD: 0.5, Position: position}})
	}
	want := func(trial int, position int64) {
		t.Helper()
		if got := r.e.Status().Recommended; got.Trial != trial || got.Position != position {
			t.Errorf("recommended is %+v, want trial %d of position %d", got, trial, position)
		}
	}
	at := r.e.Status().Position
	for _, refused := range []record.Recommendation{
		{Trial: 0, Position: at}, {Trial: 2, Position: at}, {Trial: 9, Position: at}, {Trial: -1, Position: at},
		{Trial: 1, Position: at + 1}, {Trial: 1, Mean: math.NaN(), Position: at}, {Trial: 1, Mean: math.Inf(1), Position: at},
	} {
		r.step(Recommended{At: r.now, Recommendation: refused})
		want(0, 0)
	}
	recommend(1, 2.5, at)
	want(1, at)
	if r.out.Status == nil || r.out.Status.Recommended.Mean != 2.5 || r.out.Status.Recommended.SD != 0.5 {
		t.Errorf("the step wrote the status %+v", r.out.Status)
	}
	r.complete("w", 2, 1, 1)
	recommend(2, 1.5, at) // of nothing newer
	want(1, at)
	r.restart()
	want(1, at)
	r.step(Stop{At: r.now})
	recommend(2, 1.5, r.e.Status().Position)
	want(2, r.e.Status().Position)
}

// A client that has got what it asked for, and ends it, gets nothing more until it asks
// again, whatever suggestions arrive meanwhile.
func TestClientsAreGivenNothingUnasked(t *testing.T) {
	spec := newSpec(0, 100, 4)
	spec.Definition.Spec.Trial.Command = nil
	r := newRig(t, spec, Settings{Fallback: true})
	for trial := 1; trial <= 3; trial++ {
		r.step(Seek{At: r.now, Client: "c", Want: 1})
		for r.ask != nil {
			r.suggest(float64(trial) / 10)
		}
		if held, _ := r.e.Held("c", 2); len(held) != 1 || held[0].Number != trial {
			t.Fatalf("the client asked for one trial and holds %v", held)
		}
		out := r.step(Told{At: r.now, Client: "c", Trial: trial, Outcome: messaging.OutcomeCompleted, Values: study.Values{1}})
		if out.Answer == nil || out.Answer.Err != nil {
			t.Fatalf("told: %+v", out.Answer)
		}
		for i := 0; r.ask != nil && i < 3; i++ {
			r.suggest(float64(trial)/10 + 0.05)
		}
		for range 3 {
			r.after(10 * time.Second)
		}
		if held, _ := r.e.Held("c", 2); len(held) > 0 {
			t.Fatalf("after trial %d the client was given trial %d, which it did not ask for", trial, held[0].Number)
		}
	}
}

// An evaluation during which the worker's clock was set says nothing about how long
// evaluations take.
func TestClockStepsDoNotCount(t *testing.T) {
	at := func(d time.Duration) time.Time { return epoch.Add(d) }
	var d durations
	for _, a := range []record.Attempt{
		{Opened: at(0), Started: at(time.Second), Ended: at(11 * time.Second)},
		{Opened: at(0), Started: at(-time.Hour), Ended: at(-time.Hour + 10*time.Second)}, // a clock that is wrong, but steady
		{Opened: at(0), Started: at(time.Second), Ended: at(365 * 24 * time.Hour)},
		{Opened: at(0), Started: at(time.Hour), Ended: at(10 * time.Second)},
		{Opened: at(0), Ended: at(10 * time.Second)},
	} {
		d.add(&a, at(12*time.Second))
	}
	if mean, ok := d.mean(); !ok || mean != 10*time.Second {
		t.Errorf("the mean is %v of %d evaluations, want 10s of 2", mean, d.n)
	}
}
