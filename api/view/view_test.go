package view_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// equal holds a value's JSON equal to a text, key for key and in its order.
func equal(t *testing.T, v any, want string) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStudy(t *testing.T) {
	spec := record.Study{ID: "ID1", Definition: study.Study{Metadata: study.Metadata{Name: "digits"}}}
	status := record.Status{State: study.Completed, Started: begin, Ended: begin.Add(61234567 * time.Microsecond)}
	status.Counts.Completed, status.Counts.Failed = 60, 4
	best := record.Trial{Number: 42, Values: []float64{0.0125},
		Point: study.Point{"lr": 1.0, "width": int64(64), "solver": "adam", "bias": true}}
	recommended := &optimizer.Recommendation{Trial: 41, Mean: 0.013, SD: 0.001, Point: study.Point{"lr": 1e-7}}
	equal(t, view.OfStudy(spec, status, &best, recommended, begin.Add(time.Hour)), `{
  "study": "digits",
  "state": "COMPLETED",
  "trials": {
    "pending": 0,
    "queued": 0,
    "running": 0,
    "completed": 60,
    "failed": 4,
    "infeasible": 0,
    "pruned": 0,
    "cancelled": 0
  },
  "best": {
    "trial": 42,
    "value": 0.0125,
    "parameters": {
      "bias": true,
      "lr": 1,
      "solver": "adam",
      "width": 64
    }
  },
  "recommended": {
    "trial": 41,
    "mean": 0.013,
    "sd": 0.001,
    "parameters": {
      "lr": 1e-7
    }
  },
  "seconds": 61.235
}`)
}

// TestEmptyStudy holds that what is unknown is null, not missing.
func TestEmptyStudy(t *testing.T) {
	spec := record.Study{Definition: study.Study{Metadata: study.Metadata{Name: "digits"}}}
	v := view.OfStudy(spec, record.Status{State: study.Running}, nil, nil, begin)
	if v.Best != nil || v.Recommended != nil || v.Seconds != 0 {
		t.Errorf("a study that has not started is shown as %+v", v)
	}
	v = view.OfStudy(spec, record.Status{State: study.Running, Started: begin}, &record.Trial{Number: 1}, nil,
		begin.Add(1500*time.Millisecond))
	if v.Best != nil || v.Seconds != 1.5 {
		t.Errorf("a study without a value is shown as %+v", v)
	}
	// Pauses between runs are no time of the study: neither after it has ended, nor once it was resumed.
	paused := record.Status{Started: begin, Ended: begin.Add(45 * time.Second), Ran: 3 * time.Second}
	if d := view.Elapsed(paused, begin.Add(time.Hour)); d != 3*time.Second {
		t.Errorf("elapsed %v, want the 3s that it ran", d)
	}
	resumed := record.Status{Started: begin, Idle: 40 * time.Second, Ran: 3 * time.Second}
	if d := view.Elapsed(resumed, begin.Add(45*time.Second)); d != 5*time.Second {
		t.Errorf("elapsed %v in a record of an earlier version, want the 5s that it was not ended", d)
	}
	resumed.Counted = begin.Add(44 * time.Second)
	if d := view.Elapsed(resumed, begin.Add(45*time.Second)); d != 4*time.Second {
		t.Errorf("elapsed %v, want the 3s that it had run, and the second since", d)
	}
	// A clock that went back makes no negative time.
	if d := view.Elapsed(record.Status{Started: begin}, begin.Add(-time.Second)); d != 0 {
		t.Errorf("elapsed %v before the start", d)
	}
}

func TestTrial(t *testing.T) {
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	trial := record.Trial{
		Number: 7, State: study.TrialFailed, Point: study.Point{"lr": 0.5}, Source: optimizer.SourceModel, Staleness: 3,
		Attempts: []record.Attempt{
			{Number: 1, Worker: "w1", Failure: &messaging.Failure{Reason: "lost"}, Logs: "w1:/1"},
			{Number: 2, Worker: "w2", Started: at(3), Ended: at(7), Logs: "w2:/2",
				Failure: &messaging.Failure{Reason: "signal", Signal: "SIGKILL", Message: "out of memory"},
				Site:    &messaging.Site{Job: "4711_2", Node: "n17", Devices: "0,1"},
				Stages:  &messaging.Stages{Created: at(3).Add(250 * time.Millisecond), Scheduled: at(4), Started: at(4), Ended: at(6)}},
		},
		TraceID: "0af7651916cd43dd8448eb211c80319c",
		Times:   record.Times{Asked: at(0), Suggested: at(1), Created: at(1), Claimed: at(2), Started: at(3), Ended: at(7), Folded: at(8)},
	}
	if v := view.OfTrial(trial); v.Ran() != 2*time.Second {
		t.Errorf("the program itself ran for %v, want 2s", v.Ran())
	}
	equal(t, view.OfTrial(trial), `{
  "trial": 7,
  "state": "FAILED",
  "attempts": 2,
  "parameters": {
    "lr": 0.5
  },
  "metrics": {},
  "value": null,
  "worker": "w2",
  "source": "model",
  "staleness": 3,
  "failure": {
    "reason": "signal",
    "signal": "SIGKILL",
    "message": "out of memory"
  },
  "logs": "w2:/2",
  "job": "4711_2",
  "node": "n17",
  "devices": "0,1",
  "phases": [
    {
      "phase": "admit",
      "seconds": 0.25
    },
    {
      "phase": "schedule",
      "seconds": 0.75
    },
    {
      "phase": "start",
      "seconds": 0
    },
    {
      "phase": "run",
      "seconds": 2
    },
    {
      "phase": "finish",
      "seconds": 1
    }
  ],
  "times": {
    "suggested": "2026-03-01T12:00:01Z",
    "created": "2026-03-01T12:00:01Z",
    "claimed": "2026-03-01T12:00:02Z",
    "started": "2026-03-01T12:00:03Z",
    "ended": "2026-03-01T12:00:07Z",
    "folded": "2026-03-01T12:00:08Z"
  },
  "traceId": "0af7651916cd43dd8448eb211c80319c"
}`)
}

// TestEnums holds that every state and source of the ledger has a value of the
// API, and back.
func TestEnums(t *testing.T) {
	for _, s := range []study.State{study.Running, study.Completed, study.Stopped, study.Failed} {
		v, ok := fantasiav1.StudyState_value["STUDY_STATE_"+string(s)]
		if !ok || view.EnumName(fantasiav1.StudyState(v)) != string(s) {
			t.Errorf("study state %s becomes %d", s, v)
		}
	}
	for _, s := range []study.TrialState{
		study.TrialPending, study.TrialQueued, study.TrialClaimed, study.TrialRunning, study.TrialCompleted,
		study.TrialFailed, study.TrialInfeasible, study.TrialPruned, study.TrialCancelled,
	} {
		v, ok := fantasiav1.TrialState_value["TRIAL_STATE_"+string(s)]
		if !ok || view.EnumName(fantasiav1.TrialState(v)) != string(s) {
			t.Errorf("trial state %s becomes %d", s, v)
		}
		// The API's comment says which are terminal by their order.
		if s.Terminal() != (v >= int32(fantasiav1.TrialState_TRIAL_STATE_COMPLETED)) {
			t.Errorf("trial state %s is %d, terminal %v", s, v, s.Terminal())
		}
	}
}

func TestTrialName(t *testing.T) {
	name := view.TrialName("digits", 7)
	if s, n, err := view.ParseTrialName(name); s != "digits" || n != 7 || err != nil {
		t.Errorf("%s reads back as %s, %d, %v", name, s, n, err)
	}
	for _, bad := range []string{"", "digits/trials/7", "studies/digits", "studies/digits/trials/", "studies/digits/trials/0",
		"studies/digits/trials/x", "studies/digits/trials/-1"} {
		if s, n, err := view.ParseTrialName(bad); err == nil {
			t.Errorf("%q reads as %s, %d", bad, s, n)
		}
	}
}

// A study and its trials say in words what they have cost.
func TestCost(t *testing.T) {
	spec := &study.Spec{Cost: &study.Cost{Metric: "dollars"}, Budget: study.Budget{MaxCost: 100}}
	status := &record.Status{Spent: 12.5}
	if got := view.OfCost(spec, status).String(); got != "12.5 of 100 dollars" {
		t.Errorf("the study has cost %q", got)
	}
	spec.Budget.MaxCost = 0
	if got := view.OfCost(spec, status).String(); got != "12.5 dollars" {
		t.Errorf("without a budget the study has cost %q", got)
	}
	if got := view.OfCost(&study.Spec{}, status); got != nil {
		t.Errorf("a study without a cost has cost %v", got)
	}
	for want, r := range map[string]record.Trial{
		"":                 {State: study.TrialRunning},
		"3 expected":       {State: study.TrialRunning, Expected: 3},
		"2":                {State: study.TrialCompleted, Attempts: []record.Attempt{{Cost: new(2.0)}}},
		"5.5 (3 expected)": {State: study.TrialFailed, Expected: 3, Attempts: []record.Attempt{{Cost: new(2.0)}, {}, {Cost: new(3.5)}}},
		"counts as 3, which was expected of it: none was reported": {State: study.TrialCompleted, Expected: 3, Attempts: []record.Attempt{{}}},
	} {
		v := view.OfTrial(r)
		if got := v.CostText(); got != want {
			t.Errorf("a trial has cost %q, want %q", got, want)
		}
	}
}
