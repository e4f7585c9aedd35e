package kube

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
)

var good = Verdict{Accepted: true, Reason: ReasonAccepted, Message: "the study runs by this spec"}

// conditions are a status' as type=status/reason.
func conditions(s Status) map[string]string {
	out := map[string]string{}
	for _, c := range s.Conditions {
		out[c.Type] = string(c.Status) + "/" + c.Reason
	}
	return out
}

// A study's way: rejected, taken up, better, ended, recommended, gone.
func TestStatusOnAStudysWay(t *testing.T) {
	r, now := resource(t), began.Add(2*time.Hour)
	step := func(v Verdict, ledger view, state study.State, want map[string]string) {
		t.Helper()
		now = now.Add(time.Minute)
		r.Status = r.next(v, ledger, now)
		if r.Status.State != state || r.Status.ObservedGeneration != r.Generation || r.Status.Study != "team-a.digits" {
			t.Errorf("the status is %+v, want the state %s", r.Status, state)
		}
		if diff := cmp.Diff(want, conditions(r.Status)); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
		again := r.next(v, ledger, now.Add(time.Hour))
		if diff := cmp.Diff(r.Status, again); diff != "" {
			t.Errorf("the same again changes the status:\n%s", diff)
		}
	}
	step(Verdict{Reason: ReasonDenied, Message: "no"}, view{}, StateRejected,
		map[string]string{"Accepted": "False/Denied", "Progressing": "False/Rejected", "Complete": "False/Rejected", "Failed": "True/Rejected",
			"Finished": "True/Rejected"})
	if r.Status.ID != "" || r.Status.Reason != "no" {
		t.Errorf("a rejected resource has the status %+v", r.Status)
	}
	denied := meta.FindStatusCondition(r.Status.Conditions, ConditionAccepted).LastTransitionTime

	id, started := r.ID(), now
	at := view{id: id, status: &record.Status{State: study.Running, Started: started, Counts: record.Counts{Queued: 2, Running: 1}}}
	step(good, at, study.Running, map[string]string{"Accepted": "True/Accepted", "Progressing": "True/Running", "Complete": "False/Running",
		"Failed": "False/Running", "Finished": "False/Running"})
	if r.Status.ID != id || r.Status.Best != nil || !r.Status.StartTime.Equal(instant(started)) {
		t.Errorf("a running study has the status %+v", r.Status)
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, ConditionAccepted); !c.LastTransitionTime.After(denied.Time) {
		t.Error("the condition has turned at no time")
	}

	value := 0.25
	at.status = &record.Status{State: study.Running, Started: started, Best: 2, Counts: record.Counts{Running: 3, Completed: 2, Failed: 1}}
	at.best = &record.Trial{Number: 2, Values: []float64{value}, Point: study.Point{"x": 0.5, "k": int64(1)}}
	step(good, at, study.Running, map[string]string{"Accepted": "True/Accepted", "Progressing": "True/Running", "Complete": "False/Running",
		"Failed": "False/Running", "Finished": "False/Running"})
	want := &Best{Trial: 2, Value: 0.25, Text: "0.25", Parameters: map[string]any{"x": 0.5, "k": int64(1)}}
	if diff := cmp.Diff(want, r.Status.Best); diff != "" || r.Status.Done != 3 {
		t.Errorf("%d are done, want 3; best:\n%s", r.Status.Done, diff)
	}

	at.best = nil // known already
	at.status = &record.Status{State: study.Completed, Reason: "10 trials", Started: started, Ended: now, Best: 2,
		Counts: record.Counts{Completed: 9, Failed: 1}}
	step(good, at, study.Completed, map[string]string{"Accepted": "True/Accepted", "Progressing": "False/Completed",
		"Complete": "True/Completed", "Failed": "False/Completed", "Finished": "True/Completed"})
	if r.Status.Best == nil || r.Status.CompletionTime == nil {
		t.Errorf("an ended study has the status %+v", r.Status)
	}
	at.recommended = &optimizer.Recommendation{Trial: 3, Mean: 0.30004321, SD: 0.1, Point: study.Point{"x": 0.4}}
	step(good, at, study.Completed, map[string]string{"Accepted": "True/Accepted", "Progressing": "False/Completed",
		"Complete": "True/Completed", "Failed": "False/Completed", "Finished": "True/Completed"})
	at.recommended = nil // is kept
	step(good, at, study.Completed, map[string]string{"Accepted": "True/Accepted", "Progressing": "False/Completed",
		"Complete": "True/Completed", "Failed": "False/Completed", "Finished": "True/Completed"})
	if r.Status.Recommended == nil || r.Status.Recommended.Trial != 3 || r.Status.Recommended.Text != "0.3" {
		t.Errorf("recommended is %+v", r.Status.Recommended)
	}

	// A larger budget: the recommendation, of fewer trials, stays until there is another.
	at.status = &record.Status{State: study.Running, Started: started, Best: 2, Counts: record.Counts{Running: 1, Completed: 9, Failed: 1}}
	step(good, at, study.Running, map[string]string{"Accepted": "True/Accepted", "Progressing": "True/Running", "Complete": "False/Running",
		"Failed": "False/Running", "Finished": "False/Running"})
	if r.Status.Recommended == nil || r.Status.CompletionTime != nil {
		t.Errorf("a study that goes on has the status %+v", r.Status)
	}
	at.recommended = &optimizer.Recommendation{Trial: 5, Mean: 0.2, SD: 0.1, Point: study.Point{"x": 0.6}}
	step(good, at, study.Running, map[string]string{"Accepted": "True/Accepted", "Progressing": "True/Running", "Complete": "False/Running",
		"Failed": "False/Running", "Finished": "False/Running"})
	if r.Status.Recommended == nil || r.Status.Recommended.Trial != 5 {
		t.Errorf("recommended is %+v, want trial 5", r.Status.Recommended)
	}
	// It is stopped with that many trials: what was recommended is of fewer.
	at.recommended, at.status = nil, &record.Status{State: study.Stopped, Reason: "enough", Started: started, Ended: now, Best: 2,
		Counts: record.Counts{Completed: 9, Failed: 1}}
	step(good, at, study.Stopped, map[string]string{"Accepted": "True/Accepted", "Progressing": "False/Stopped", "Complete": "True/Stopped",
		"Failed": "False/Stopped", "Finished": "True/Stopped"})
	if r.Status.Recommended != nil {
		t.Errorf("an ended study has the recommendation %+v of fewer trials", r.Status.Recommended)
	}
	at.status = &record.Status{State: study.Running, Started: started, Best: 2, Counts: record.Counts{Running: 1, Completed: 9, Failed: 1}}
	step(good, at, study.Running, map[string]string{"Accepted": "True/Accepted", "Progressing": "True/Running", "Complete": "False/Running",
		"Failed": "False/Running", "Finished": "False/Running"})

	gone := Verdict{Reason: ReasonDeleted, Message: "gone"}
	step(gone, view{}, StateDeleted, map[string]string{"Accepted": "False/Deleted", "Progressing": "False/Deleted",
		"Complete": "False/Deleted", "Failed": "True/Deleted", "Finished": "True/Deleted"})
	if r.Status.Best == nil || r.Status.Done != 10 {
		t.Errorf("what was found is gone as well: %+v", r.Status)
	}
}

// A study that had ended when it was deleted keeps its state.
func TestAnEndedStudyStaysEnded(t *testing.T) {
	r := resource(t)
	r.Status = r.next(good, view{id: r.ID(), status: &record.Status{State: study.Stopped, Reason: "enough"}}, began)
	got := r.next(Verdict{Reason: ReasonDeleted, Message: "gone"}, view{}, began)
	if got.State != study.Stopped || conditions(got)[ConditionAccepted] != "False/Deleted" {
		t.Errorf("%+v", got)
	}
}

// A status is read back from the API server as it was written.
func TestStatusInJSON(t *testing.T) {
	r := resource(t)
	value := 1.5
	s := r.next(good, view{id: r.ID(), status: &record.Status{State: study.Failed, Best: 1, Started: began, Ended: began.Add(time.Hour)},
		best: &record.Trial{Number: 1, Values: []float64{value}, Point: study.Point{"x": 0.5, "solver": "adam", "fast": true}}}, began)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Status
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || string(again) != string(text) {
		t.Errorf("%v\n%s\n%s", err, text, again)
	}
}

// The status of several objectives has the size of their front and its hypervolume, if it has one.
func TestStatusOfAFront(t *testing.T) {
	r := resource(t)
	at := view{id: r.ID(), status: &record.Status{State: study.Running, Started: began}}
	for _, c := range []struct {
		status *record.Front
		want   *Front
	}{
		{nil, nil},
		{&record.Front{Size: 3, Hypervolume: new(0.300043)}, &Front{Size: 3, Hypervolume: new(0.300043), Text: "0.3"}},
		{&record.Front{Size: 4}, &Front{Size: 4}},
	} {
		at.status.Front = c.status
		r.Status = r.next(good, at, began)
		if diff := cmp.Diff(c.want, r.Status.Front); diff != "" {
			t.Errorf("the front (-want +got):\n%s", diff)
		}
	}
}

// Of several objectives the status has the trials of the recommended front and the knee's parameters, and keeps
// them as long as nothing else is recommended. What was recommended while the study ran goes when it ends.
func TestStatusOfARecommendedFront(t *testing.T) {
	r := resource(t)
	status := &record.Status{State: study.Running, Started: began, Front: &record.Front{Size: 3}}
	at := view{id: r.ID(), status: status, recommended: &optimizer.Recommendation{
		Trial: 7, Mean: 0.25, SD: 0.1, Point: study.Point{"x": 0.5},
		Front: []optimizer.Expected{{Trial: 4}, {Trial: 7, Knee: true}, {Trial: 2}},
	}}
	want := Recommendation{Trial: 7, Mean: 0.25, SD: 0.1, Parameters: map[string]any{"x": 0.5}}
	for range 2 {
		r.Status = r.next(good, at, began)
		if r.Status.Recommended == nil {
			t.Fatal("nothing is recommended")
		}
		if diff := cmp.Diff(want, *r.Status.Recommended); diff != "" {
			t.Errorf("what is recommended (-want +got):\n%s", diff)
		}
		if got := r.Status.Front.Recommended; !slices.Equal(got, []int{4, 7, 2}) {
			t.Errorf("the recommended front is %v", got)
		}
		at.recommended = nil
	}
	status.State, status.Counts.Completed = study.Completed, 9
	if s := r.next(good, at, began); s.Recommended != nil || s.Front.Recommended != nil {
		t.Errorf("after the end %+v and %+v", s.Recommended, s.Front)
	}
}

// A message of any length fits into the status.
func TestLongMessages(t *testing.T) {
	r := resource(t)
	for text, want := range map[string]int{
		strings.Repeat("spec.parameters[0].max: -1 is below min\n", 1000): 8 << 10 / 40 * 40, // lines of 40 bytes
		strings.Repeat("é", 9000):                                         8<<10 + len("…"),
		"short":                                                           len("short"),
	} {
		got := r.next(Verdict{Reason: ReasonInvalid, Message: text}, view{}, began).Conditions[0].Message
		if len(got) > maxMessage+len("…") || len(got) < want-40 || !utf8.ValidString(got) ||
			!strings.HasPrefix(text, strings.TrimSuffix(got, "…")) {
			t.Errorf("%d bytes became %d, want about %d", len(text), len(got), want)
		}
	}
}
