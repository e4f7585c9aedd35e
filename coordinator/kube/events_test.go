package kube

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// A study's way in events; what repeats itself is told once.
func TestEvents(t *testing.T) {
	r, now := resource(t), began
	step := func(v Verdict, ledger view, want ...string) {
		t.Helper()
		next := r.next(v, ledger, now)
		var got []string
		for _, e := range r.events(&next) {
			kind := "Normal "
			if e.warning {
				kind = "Warning "
			}
			got = append(got, kind+e.reason+": "+e.message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		r.Status = next
		if again := r.next(v, ledger, now); len(r.events(&again)) > 0 {
			t.Errorf("the same again makes the events %+v", r.events(&again))
		}
	}
	denied := Verdict{Reason: ReasonDenied, Message: "may not use pool gpu"}
	step(denied, view{}, "Warning Rejected: Denied: may not use pool gpu")
	id := r.ID()
	running := view{id: id, status: &record.Status{State: study.Running, Started: began}, stall: stall{ReasonNoWorkers, "no worker"}}
	step(good, running, "Normal Accepted: "+good.Message, "Normal Started: study team-a.digits has started, with the id "+id,
		"Warning NoWorkers: no worker")
	running.stall = stall{}
	step(good, running)
	r.Generation++
	step(good, running, "Normal Accepted: "+good.Message)
	step(Verdict{Reason: ReasonIncompatible, Message: "other bounds"}, running, "Warning Rejected: Incompatible: other bounds")
	step(good, running, "Normal Accepted: "+good.Message)
	ended := view{id: id, status: &record.Status{State: study.Completed, Reason: "10 trials", Started: began, Ended: began}}
	step(good, ended, "Normal Completed: 10 trials")
	step(good, running, "Normal Continued: the study continues after it had ended")
	ended.status = &record.Status{State: study.Failed, Reason: "5 trials failed"}
	step(good, ended, "Warning Failed: 5 trials failed")
	step(good, running, "Normal Continued: the study continues after it had ended")
	step(Verdict{Reason: ReasonDeleted, Message: "gone"}, view{}, "Warning Deleted: gone")
}

// Whoever waits for the end of a study waits for one of these conditions.
func TestConditionsOfTheEnds(t *testing.T) {
	for state, want := range map[study.State][]string{
		study.Running: {ConditionProgressing}, study.Completed: {ConditionComplete, ConditionFinished},
		study.Stopped: {ConditionComplete, ConditionFinished}, study.Failed: {ConditionFailed, ConditionFinished},
		StateRejected: {ConditionFailed, ConditionFinished}, StateDeleted: {ConditionFailed, ConditionFinished},
	} {
		s := Status{State: state, Reason: "why"}
		var got []string
		for _, c := range s.progress(stall{}) {
			if c.Status == "True" {
				got = append(got, c.Type)
			}
			if c.Reason == "" || c.Message != "why" {
				t.Errorf("%s: %+v lacks its reason", state, c)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the conditions %q, want %q", state, got, want)
		}
	}
}
