package lease

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// What a worker says of an attempt is shown for that attempt, while it is open, and counted for
// its study.
func TestShowWaiting(t *testing.T) {
	id := messaging.AttemptID{Study: "s", Trial: 3, Attempt: 2, Nonce: "n"}
	beat := messaging.Heartbeat{Worker: "w", Running: []messaging.AttemptID{id, {Study: "other", Trial: 1, Attempt: 1, Nonce: "o"}}}
	beat.SetWaiting(map[messaging.AttemptID]string{id: "no node"})
	workers := []Worker{{Heartbeat: beat}}
	if n, cause := Waits(workers, "s"); n != 1 || cause != "no node" {
		t.Errorf("%d wait for %q", n, cause)
	}
	if n, _ := Waits(workers, "other"); n != 0 {
		t.Errorf("%d of another study's trials wait", n)
	}
	trial := func() record.Trial {
		return record.Trial{Number: 3, State: study.TrialRunning, Attempts: []record.Attempt{
			{Number: 1, Nonce: "n1", Worker: "w"}, {Number: 2, Nonce: "n", Worker: "w"},
		}}
	}
	for name, test := range map[string]struct {
		change func(*record.Trial)
		want   string
	}{
		"open":                        {func(*record.Trial) {}, "no node"},
		"it has ended":                {func(r *record.Trial) { r.State = study.TrialFailed }, ""},
		"another worker has it now":   {func(r *record.Trial) { r.Attempts[1].Worker = "v" }, ""},
		"the last attempt is another": {func(r *record.Trial) { r.Attempts[1].Nonce = "m" }, ""},
	} {
		r := trial()
		test.change(&r)
		if ShowWaiting(workers, &r); r.Attempts[1].Waiting != test.want || r.Attempts[0].Waiting != "" {
			t.Errorf("%s: it waits for %q, want %q", name, r.Attempts[1].Waiting, test.want)
		}
	}
}
