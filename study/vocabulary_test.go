package study_test

import (
	"encoding/json"
	"testing"
	"time"

	yaml "go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/study"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10m": 10 * time.Minute, "2h": 2 * time.Hour, "1h30m": 90 * time.Minute, "1h0m30s": time.Hour + 30*time.Second,
		"250ms": 250 * time.Millisecond, "0s": 0, "20s": 20 * time.Second, "1m40s": 100 * time.Second, "-5m": -5 * time.Minute,
	} {
		if got := study.Duration(want).String(); got != text {
			t.Errorf("%v is written %s, want %s", want, got, text)
		}
	}
	var d study.Duration
	if err := d.UnmarshalText([]byte("10 minutes")); err == nil {
		t.Error("10 minutes is read")
	}
}

// TestDurationReadsBack checks that JSON and YAML preserve any duration.
func TestDurationReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := study.Duration(rapid.Int64().Draw(t, "d"))
		var got study.Duration
		text, err := json.Marshal(want)
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got != want {
			t.Fatalf("JSON %s: %v, %v", text, got, err)
		}
		got = 0
		text, err = yaml.Marshal(want)
		if err == nil {
			err = yaml.Unmarshal(text, &got)
		}
		if err != nil || got != want {
			t.Fatalf("YAML %s: %v, %v", text, got, err)
		}
	})
}

func TestTerminal(t *testing.T) {
	for state, want := range map[study.State]bool{
		study.Running: false, study.Completed: true, study.Stopped: true, study.Failed: true,
	} {
		if state.Terminal() != want {
			t.Errorf("study %s: terminal %v", state, !want)
		}
	}
	for state, want := range map[study.TrialState]bool{
		study.TrialPending: false, study.TrialQueued: false, study.TrialClaimed: false, study.TrialRunning: false,
		study.TrialCompleted: true, study.TrialFailed: true, study.TrialInfeasible: true, study.TrialPruned: true,
		study.TrialCancelled: true,
	} {
		if state.Terminal() != want {
			t.Errorf("trial %s: terminal %v", state, !want)
		}
	}
}
