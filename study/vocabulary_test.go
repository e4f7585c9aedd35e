package study_test

import (
	"bytes"
	"encoding/json"
	"regexp"
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

// TestDurationReadsBack holds that JSON and YAML give any duration back.
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

// TestNewID holds the form of an id. The ULID specification's own example,
// 01ARZ3NDEKTSV4RRFFQ69G5FAV, begins with the time 1469922850259.
func TestNewID(t *testing.T) {
	at := time.UnixMilli(1469922850259)
	id := study.NewID(bytes.NewReader(make([]byte, 10)), at)
	if want := "01arz3ndek" + "0000000000000000"; id != want {
		t.Errorf("NewID = %s, want %s", id, want)
	}
	if !regexp.MustCompile(`^[0-9a-z]{26}$`).MatchString(id) {
		t.Errorf("%s is not 26 lower-case letters and digits", id)
	}
	later := study.NewID(bytes.NewReader(bytes.Repeat([]byte{1}, 10)), at.Add(time.Millisecond))
	if later <= id {
		t.Errorf("%s does not sort after %s", later, id)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic without entropy")
		}
	}()
	study.NewID(bytes.NewReader(nil), at)
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
