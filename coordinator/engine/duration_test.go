package engine

import (
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// takeover is a study of a maxDuration of an hour, of which leaders have run some time, with a
// new leader whose clock is off, and which begins to lead some time later.
func takeover(t *testing.T, ran, away, off time.Duration) (e *Engine, now time.Time) {
	t.Helper()
	spec := newSpec(0, 10, 1)
	spec.Definition.Spec.Budget.MaxDuration = study.Duration(time.Hour)
	e, out, err := New(spec, &counterIDs{}, Settings{}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	status := *out.Status
	for at := time.Minute; at <= ran; at += time.Minute { // a leader ticks; nothing else happens
		if out := e.Step(Tick{At: epoch.Add(at)}); out.Status != nil {
			status = *out.Status
		}
	}
	now = epoch.Add(ran + away + off)
	e, _, err = Load(spec, status, record.Model{}, nil, &counterIDs{prefix: "b"}, Settings{}, now)
	if err != nil {
		t.Fatal(err)
	}
	return e, now
}

// maxDuration counts the time for which leaders have run the study, whatever their clocks
// say, and not the time without a leader.
func TestMaxDurationIsOfTheLeaders(t *testing.T) {
	for _, c := range []struct{ ran, away, off time.Duration }{
		{20 * time.Minute, 0, 0}, {20 * time.Minute, 0, 10 * time.Hour}, {20 * time.Minute, 0, -10 * time.Hour},
		{20 * time.Minute, 5 * time.Hour, 0}, {0, 5 * time.Hour, 0},
	} {
		e, now := takeover(t, c.ran, c.away, c.off)
		left := time.Hour - c.ran
		e.Step(Tick{At: now})
		e.Step(Tick{At: now.Add(left - time.Second)})
		if got := e.Status(); got.State != study.Running {
			t.Errorf("%+v: %s a second too early: %s", c, got.State, got.Reason)
		}
		e.Step(Tick{At: now.Add(left)})
		if got := e.Status(); got.State == study.Running || got.Ran != time.Hour {
			t.Errorf("%+v: %s after %v, want an end after an hour", c, got.State, got.Ran)
		}
	}
}

// A study whose first trial is created at the instant of its start has run for no time. A
// leader that takes over later changes nothing.
func TestFirstTrialOfNoTime(t *testing.T) {
	spec := newSpec(0, 10, 1)
	e, first, err := New(spec, &counterIDs{}, Settings{}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	e.Step(Capacity{At: epoch, Slots: 1, Free: 1})
	ask := e.suggestions.ask
	if ask == nil {
		t.Fatal("no suggestion was asked for")
	}
	out := e.Step(
		Suggested{At: epoch, Ask: ask, Suggestions: []optimizer.Suggestion{{Point: study.Point{"x": 0.5}, Source: optimizer.SourceModel}}})
	if first.Status == nil || out.Status == nil || out.Status.Position == 0 {
		t.Fatalf("the statuses are %+v and %+v, want times and a trial", first.Status, out.Status)
	}
	loaded, mended, err := Load(spec, *out.Status, record.Model{}, out.Trials, &counterIDs{prefix: "b"}, Settings{}, epoch.Add(4*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if mended.Status != nil || loaded.Status().Ran != 0 {
		t.Errorf("the load changes the status to %+v, and counts %v", mended.Status, loaded.Status().Ran)
	}
}

// The optimiser is told how long the program took. What a Job waited for is no part of that. If a clock was set
// meanwhile, the time is not known.
func TestObservationHasSeconds(t *testing.T) {
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	for _, c := range []struct {
		attempt record.Attempt
		want    float64
	}{
		{record.Attempt{Opened: at(0), Started: at(1), Ended: at(8)}, 7},
		{record.Attempt{
			Opened: at(0), Started: at(1), Ended: at(80),
			Stages: &messaging.Stages{Created: at(2), Scheduled: at(30), Prepared: at(50), Started: at(60), Ended: at(75)},
		}, 15},
		{record.Attempt{Opened: at(0)}, 0},
		{record.Attempt{Opened: at(0), Started: at(8), Ended: at(1)}, 0},
		{record.Attempt{Opened: at(0), Started: at(-5000), Ended: at(8)}, 0},
	} {
		trial := &record.Trial{
			Number: 1, State: study.TrialCompleted, Values: study.Values{1}, Times: record.Times{Folded: at(90)},
			Attempts: []record.Attempt{{Opened: at(-9), Started: at(-8), Ended: at(-1)}, c.attempt},
		}
		if o, _ := Observation(&study.Spec{}, trial); o.Seconds != c.want {
			t.Errorf("an attempt %+v took %g s, want %g", c.attempt, o.Seconds, c.want)
		}
	}
}
