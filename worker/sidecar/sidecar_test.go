package sidecar

import (
	"context"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// inTime runs a test in virtual time.
func inTime(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestTheWayOfATrial(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{Checkpoints: "/shared"})
		r.offer(7)
		got := r.post(http.StatusOK, "/v1/next", "")
		want := map[string]any{
			"id": "7.2.nonce-7", "study": "study", "trial": 7.0, "attempt": 2.0, "slot": 0.0, "seed": 42.0,
			"parameters": map[string]any{"x": 3.0, "n": 5.0, "amp": true}, "metric": "error", "direction": "minimize",
			"checkpoint": "s3://before", "checkpointDir": "/shared/study-id/7",
			"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("next (-want +got):\n%s", diff)
		}
		id := got["id"]
		if answer := r.post(http.StatusOK, "/v1/report",
			`{"id": %q, "step": 1, "metrics": {"error": 0.5, "loss": NaN}, "checkpoint": "s3://now"}`, id); answer["stop"] != false {
			t.Errorf("report answers %v", answer)
		}
		if answer := r.post(http.StatusOK, "/v1/report", `{"id": %q, "step": 1, "metrics": {"error": 0.4}}`, id); answer["ignored"] == nil {
			t.Errorf("a second value for a step is taken: %v", answer)
		}
		if reason := r.stops(id.(string)); reason != nil {
			t.Errorf("should stop: %v", reason)
		}
		answer := r.post(http.StatusOK, "/v1/complete", `{"id": %q, "metrics": {"error": 0.25}}`, id)
		warning := `warning: steps must grow: a second value of "error" for step 1 was left out`
		if diff := cmp.Diff(map[string]any{"taken": true, "outcome": "completed", "message": warning}, answer); diff != "" {
			t.Errorf("complete (-want +got):\n%s", diff)
		}
		ending, _ := r.ending(7)
		wantEnding := evaluation.Ending{
			Outcome: messaging.OutcomeCompleted, Values: []float64{0.25}, Metrics: map[string]float64{"error": 0.25}, Checkpoint: "s3://now",
			Failure: &messaging.Failure{Reason: messaging.ReasonReports, Message: warning},
		}
		if diff := cmp.Diff(wantEnding, ending); diff != "" {
			t.Errorf("ending (-want +got):\n%s", diff)
		}
		wantMeasured := map[int64]map[string]float64{1: {"error": 0.5, "loss": math.NaN()}, 2: {"error": 0.25}}
		if diff := cmp.Diff(wantMeasured, r.measured[7], cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("measured (-want +got):\n%s", diff)
		}
		// What comes later changes nothing, and is answered the same.
		for _, late := range []string{`{"id": %q, "metrics": {"error": 0.25}}`, `{"id": %q, "failed": "late"}`} {
			if again := r.post(http.StatusOK, "/v1/complete", late, id); !cmp.Equal(again, answer) {
				t.Errorf("complete again answers %v, want %v", again, answer)
			}
		}
		if reason := r.stops(id.(string)); reason != stopEnded {
			t.Errorf("after its end should-stop says %v", reason)
		}
	})
}

func TestEndings(t *testing.T) {
	for _, tt := range []struct {
		name, complete string
		want           string
		message        string
	}{
		{"a value", `"metrics": {"error": 0.5}`, "completed", ""},
		{"a value in a string", `"metrics": {"error": "0.5"}`, "completed", ""},
		{"no value", `"metrics": {"loss": 1}`, "failed: no-value", `no "error"; saw ["loss"]`},
		{"nothing", `"checkpoint": "c"`, "failed: no-value", `no "error"; no metric was reported`},
		{"not a number", `"metrics": {"error": NaN}`, "infeasible: diverged", ""},
		{"null", `"metrics": {"error": null}`, "infeasible: diverged", ""},
		{"failed", `"failed": "out of disk", "metrics": {"error": 0.5}`, "failed: reported", "the program reported an error: out of disk"},
		{"failed without a reason", `"failed": true`, "failed: reported", "the program reported an error"},
		{"infeasible", `"infeasible": "out of memory"`, "infeasible: infeasible", "infeasible: out of memory"},
		{"retry", `"retry": "pre-empted"`, "handed-back: retry", "the program asked for a retry: pre-empted"},
		{"words that say no", `"failed": false, "infeasible": null, "metrics": {"error": 0.5}`, "completed", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				r := newRig(t, Options{})
				r.offer(1)
				answer := r.post(http.StatusOK, "/v1/complete", `{"id": %q, `+tt.complete+`}`, r.next(""))
				if got := r.outcome(1); got != tt.want || answer["taken"] != true {
					t.Errorf("%s, answered %v; want %s", got, answer, tt.want)
				}
				e, _ := r.ending(1)
				if tt.message != "" && (e.Failure.Message != tt.message || answer["message"] != tt.message) {
					t.Errorf("says %q and answers %q, want %q", e.Failure.Message, answer["message"], tt.message)
				}
			})
		})
	}
}

func TestTheBestIsTakenWhereTheStudySaysSo(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{})
		a := assigned(1)
		a.Objective.Take = study.TakeBest
		r.queue <- a
		id := r.next("")
		for _, v := range []float64{3, 1, 2} {
			r.post(http.StatusOK, "/v1/report", `{"id": %q, "metrics": {"error": %v}}`, id, v)
		}
		r.post(http.StatusOK, "/v1/complete", `{"id": %q}`, id)
		if e, _ := r.ending(1); len(e.Values) == 0 || e.Values.First() != 1 {
			t.Errorf("the ending is %+v, want the value 1", e)
		}
	})
}

func TestATrialIsTakenOnlyForAClientThatWaits(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{Slots: 3})
		r.offer(1, 2, 3)
		synctest.Wait()
		if n := len(r.queue); n != 3 {
			t.Fatalf("%d trials are queued, want 3: nobody has asked", n)
		}
		r.next("a")
		synctest.Wait()
		if n := len(r.queue); n != 2 {
			t.Errorf("%d trials are queued, want 2: one client has asked", n)
		}
	})
}

func TestAClientThatHasGoneGetsNoTrial(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{})
		if r.post(http.StatusNoContent, "/v1/next", `{"wait": 5}`) != nil {
			t.Error("204 with a body")
		}
		time.Sleep(linger - time.Millisecond)
		synctest.Wait()
		r.Sidecar.mu.Lock()
		reserved := r.reserved
		r.Sidecar.mu.Unlock()
		if reserved != 1 {
			t.Errorf("%d slots fetch between two requests of a client, want 1", reserved)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		r.offer(1)
		synctest.Wait()
		if len(r.queue) != 1 {
			t.Error("a trial was taken for a client that has gone")
		}
	})
}

// A client that ends its trial, or breaks its request off, may have gone: only one
// that was told to ask again is waited for.
func TestOnlyAClientThatWasToldToAskAgainIsWaitedFor(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.offer(1, 2)
		r.post(http.StatusOK, "/v1/complete", `{"id": %q, "retry": "SIGTERM"}`, r.next(""))
		synctest.Wait()
		if len(r.queue) != 1 {
			t.Error("a trial was taken for a client that did not ask for another")
		}
		<-r.queue
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.do(ctx, http.MethodPost, "/v1/next", "")
		}()
		synctest.Wait()
		cancel()
		<-done
		synctest.Wait()
		r.offer(3)
		synctest.Wait()
		if len(r.queue) != 1 {
			t.Error("a trial was taken for a client that broke its request off")
		}
	})
}

// A client that asks, and dies between the fetch of its trial and its answer.
func TestATrialThatNobodyTakesIsHandedBack(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.post(http.StatusNoContent, "/v1/next", `{"wait": 0}`)
		r.offer(1)
		synctest.Wait()
		time.Sleep(offerTimeout)
		synctest.Wait()
		if got := r.outcome(1); got != "handed-back: client" {
			t.Errorf("%q, want it handed back", got)
		}
		if e, _ := r.ending(1); e.Checkpoint != "s3://before" {
			t.Errorf("the checkpoint is %q, want that of the attempt before", e.Checkpoint)
		}
	})
}

func TestARestartedClientGetsItsTrialAgain(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{Slots: 2})
		r.offer(1, 2, 3)
		first := r.next("a")
		other := r.next("b")
		if first == other {
			t.Fatal("two clients got one trial")
		}
		for range maxHanded - 1 {
			if again := r.next("a"); again != first {
				t.Errorf("a restarted client got %s, want its own %s", again, first)
			}
		}
		// It has died of the trial as often as it may.
		third := r.next("a")
		if third == first || third == other {
			t.Errorf("got %s after dying of %s %d times", third, first, maxHanded)
		}
		if got := r.outcome(1); got != "failed: client" {
			t.Errorf("the trial ended as %q, want a failure", got)
		}
		if reason := r.stops(first); reason != stopEnded {
			t.Errorf("should-stop says %v", reason)
		}
	})
}

func TestASilentClientFailsItsTrial(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{ClientTimeout: time.Minute})
		r.offer(1)
		id := r.next("")
		for range 3 { // each word counts
			time.Sleep(50 * time.Second)
			r.stops(id)
			time.Sleep(50 * time.Second)
			r.post(http.StatusOK, "/v1/report", `{"id": %q}`, id)
		}
		time.Sleep(time.Minute - time.Millisecond)
		synctest.Wait()
		if got := r.outcome(1); got != "" {
			t.Fatalf("ended as %q before its time", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := r.outcome(1); got != "failed: client" {
			t.Errorf("ended as %q, want a failure", got)
		}
		answer := r.post(http.StatusOK, "/v1/complete", `{"id": %q, "metrics": {"error": 1}}`, id)
		if answer["taken"] != false || answer["outcome"] != "failed" {
			t.Errorf("a completion that comes too late is answered %v", answer)
		}
	})
}

func TestAClientMaySayNothingForEver(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{ClientTimeout: 0})
		r.offer(1)
		r.next("")
		time.Sleep(1000 * time.Hour)
		synctest.Wait()
		if got := r.outcome(1); got != "" {
			t.Errorf("ended as %q", got)
		}
	})
}

// TestStops ends attempts from outside: what the client is told, how long it
// has, and what its answer counts for.
func TestStops(t *testing.T) {
	for _, tt := range []struct {
		name     string
		cause    error
		reason   string
		complete string        // after a second; empty for never
		lasts    time.Duration // from the stop to the end
		want     string
		taken    bool
	}{
		{"leaving, silent", evaluation.ErrLeaving, stopLeaving, "", 20 * time.Second, "handed-back: leaving", false},
		{"leaving, handed back", evaluation.ErrLeaving, stopLeaving, `"retry": true, "checkpoint": "s3://now"`, time.Second, "handed-back: retry",
			true},
		{"leaving, done in time", evaluation.ErrLeaving, stopLeaving, `"metrics": {"error": 1}`, time.Second, "completed", true},
		{"timeout, silent", evaluation.ErrTimeout, stopTimeout, "", 20 * time.Second, "timeout: timeout", false},
		{"timeout, done in the grace", evaluation.ErrTimeout, stopTimeout, `"metrics": {"error": 1}, "checkpoint": "s3://now"`, time.Second,
			"timeout: timeout", false},
		{"cancelled", evaluation.ErrCancelled, stopCancelled, "", 0, "cancelled: cancelled", false},
		{"cancelled, done", evaluation.ErrCancelled, stopCancelled, `"metrics": {"error": 1}`, 0, "cancelled: cancelled", false},
		{"pruned, silent", evaluation.ErrPruned, stopPruned, "", 20 * time.Second, "pruned", false},
		{"pruned, done in the grace", evaluation.ErrPruned, stopPruned, `"metrics": {"error": 1}`, time.Second, "pruned", false},
		{"another end", errStopped, stopLeaving, "", 20 * time.Second, "handed-back: leaving", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				r := newRig(t, Options{})
				r.offer(1)
				id := r.next("")
				r.stopAll(tt.cause)
				synctest.Wait()
				if reason := r.stops(id); reason != tt.reason {
					t.Errorf("should-stop says %v, want %s", reason, tt.reason)
				}
				start := time.Now()
				if tt.complete != "" {
					time.Sleep(time.Second)
					answer := r.post(http.StatusOK, "/v1/complete", `{"id": %q, `+tt.complete+`}`, id)
					if answer["taken"] != tt.taken {
						t.Errorf("complete answers %v, want taken %v", answer, tt.taken)
					}
				}
				if tt.lasts > time.Since(start) {
					time.Sleep(tt.lasts - time.Since(start) - time.Millisecond)
					synctest.Wait()
					if got := r.outcome(1); got != "" {
						t.Fatalf("ended as %q before its grace", got)
					}
					time.Sleep(time.Millisecond)
				}
				synctest.Wait()
				if got := r.outcome(1); got != tt.want {
					t.Errorf("ended as %q, want %q", got, tt.want)
				}
				e, _ := r.ending(1)
				if e.Checkpoint != "s3://before" && tt.complete == "" || e.Checkpoint == "" {
					t.Errorf("the checkpoint is %q", e.Checkpoint)
				}
			})
		})
	}
}

// TestATrialThatDidNotHearOfItsStopCompletes checks that the value of a client that was
// not told to stop early counts: it ran to its end.
func TestATrialThatDidNotHearOfItsStopCompletes(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.offer(1)
		id := r.next("")
		r.stopAll(evaluation.ErrPruned)
		synctest.Wait()
		if answer := r.post(http.StatusOK, "/v1/complete", `{"id": %q, "metrics": {"error": 1}}`, id); answer["taken"] != true {
			t.Errorf("complete answers %v, want taken", answer)
		}
		synctest.Wait()
		if got := r.outcome(1); got != "completed" {
			t.Errorf("ended as %q, want completed", got)
		}
	})
}

// TestAPrunedTrialKeepsItsValue checks that the value so far is in the result, and that
// the client gets its next trial.
func TestAPrunedTrialKeepsItsValue(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.offer(1)
		r.offer(2)
		id := r.next("")
		r.post(http.StatusOK, "/v1/report", `{"id": %q, "metrics": {"error": 0.5}}`, id)
		r.stopAll(evaluation.ErrPruned)
		synctest.Wait()
		answer := r.post(http.StatusOK, "/v1/report", `{"id": %q, "metrics": {"error": 0.25}}`, id)
		if answer["stop"] != true || answer["reason"] != stopPruned {
			t.Errorf("report answers %v, want a stop", answer)
		}
		if next := r.next(""); next == id || next == "" {
			t.Errorf("the next trial is %q after %q", next, id)
		}
		if e, _ := r.ending(1); len(e.Values) != 1 || e.Values[0] != 0.25 {
			t.Errorf("the pruned trial has the values %v, want 0.25", e.Values)
		}
	})
}

func TestAStoppedTrialEndsWhenItsClientAsksForAnother(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.offer(1, 2)
		r.next("")
		r.stopAll(evaluation.ErrTimeout)
		synctest.Wait()
		if id := r.next(""); id != "2.2.nonce-2" {
			t.Errorf("got %s, want the next trial", id)
		}
		if got := r.outcome(1); got != "timeout: timeout" {
			t.Errorf("ended as %q", got)
		}
	})
}

// TestHandBack is a pod's end with a native sidecar: the preStop hook, the
// training container's end, and then SIGTERM.
func TestHandBack(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{Slots: 2})
		r.offer(1)
		id := r.next("a")
		waits := make(chan int, 1)
		go func() {
			code, _ := r.do(context.Background(), http.MethodPost, "/v1/next", `{"client": "b"}`)
			waits <- code
		}()
		synctest.Wait()
		for range 2 {
			if answer := r.post(http.StatusOK, "/v1/hand-back", ""); answer["open"] != 1.0 {
				t.Errorf("hand-back answers %v", answer)
			}
		}
		if code := <-waits; code != http.StatusGone {
			t.Errorf("a client that waits is answered %d, want 410", code)
		}
		if !r.left {
			t.Error("the worker does not leave")
		}
		if reason := r.stops(id); reason != stopLeaving {
			t.Errorf("should-stop says %v", reason)
		}
		r.stopAll(evaluation.ErrLeaving) // what a worker does that leaves
		time.Sleep(time.Second)
		r.Terminate()
		synctest.Wait()
		if got := r.outcome(1); got != "handed-back: leaving" {
			t.Errorf("ended as %q, want it handed back at once: nobody can complete it", got)
		}
		r.post(http.StatusGone, "/v1/next", `{"client": "a"}`)
	})
}

// The worker's own end may come later than the hand-back's.
func TestATrialGivenUpAfterAHandBackIsHandedBack(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.offer(1)
		r.next("")
		r.HandBack()
		r.post(http.StatusGone, "/v1/next", "")
		synctest.Wait()
		if got := r.outcome(1); got != "handed-back: leaving" {
			t.Errorf("ended as %q", got)
		}
	})
}

// Without a hand-back before, SIGTERM reaches worker and training code together.
func TestTerminateGivesGrace(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.offer(1)
		id := r.next("")
		r.Terminate()
		r.stopAll(evaluation.ErrLeaving)
		time.Sleep(10 * time.Second)
		answer := r.post(http.StatusOK, "/v1/complete", `{"id": %q, "retry": "SIGTERM", "checkpoint": "s3://now"}`, id)
		if e, _ := r.ending(1); answer["taken"] != true || e.Checkpoint != "s3://now" || r.outcome(1) != "handed-back: retry" {
			t.Errorf("answered %v, ended as %+v", answer, e)
		}
	})
}

func TestKillEndsTheGrace(t *testing.T) {
	inTime(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.offer(1)
		r.next("")
		r.stopAll(evaluation.ErrLeaving)
		synctest.Wait()
		close(r.kill)
		synctest.Wait()
		if got := r.outcome(1); got != "handed-back: leaving" {
			t.Errorf("ended as %q", got)
		}
	})
}

// The answer to a completion says that the result will not be lost.
func TestACompletionIsAnsweredWhenTheResultIsOnDisk(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, err := New(Options{Slots: 1, Leave: func() {}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, Sidecar: s, handler: s.Handler()}
		e, err := s.Evaluator(0)
		if err != nil {
			t.Fatal(err)
		}
		evaluated := make(chan struct{})
		go func() { // a slot whose disk is slow
			_, stop, _ := e.(evaluation.Gate).Await(t.Context())
			stop()
			e.Evaluate(t.Context(), evaluation.Task{Assignment: assigned(1)})
			close(evaluated)
		}()
		id := r.next("")
		start := time.Now()
		r.post(http.StatusServiceUnavailable, "/v1/complete", `{"id": %q, "metrics": {"error": 1}}`, id)
		<-evaluated
		if waited := time.Since(start); waited != durableTimeout {
			t.Errorf("answered after %s, want to wait %s for the slot to go on", waited, durableTimeout)
		}
		time.AfterFunc(time.Second, func() { _ = e.Close(context.Background()) })
		start = time.Now()
		answer := r.post(http.StatusOK, "/v1/complete", `{"id": %q, "metrics": {"error": 1}}`, id)
		if waited := time.Since(start); waited != time.Second || answer["taken"] != true {
			t.Errorf("answered %v after %s, want it when the slot goes on", answer, waited)
		}
	})
}
