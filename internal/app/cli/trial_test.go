package cli_test

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/study"
)

// trial get says of a trial that runs how long it is expected to take, by those that have completed: eight of nine took a minute.
func TestTrialGetSaysWhatATrialTakes(t *testing.T) {
	b, now := backend(t), time.Now()
	for i := range 8 {
		start := now.Add(-time.Hour)
		b.Put("digits", record.Trial{
			Number: 4 + i, State: study.TrialCompleted, Values: study.Values{0.1}, Metrics: map[string]float64{"error": 0.1},
			Point: study.Point{"lr": 1e-3, "width": int64(8 + 30*i)}, Times: record.Times{Started: start, Ended: start.Add(time.Minute)},
		})
	}
	b.Put("digits", record.Trial{
		Number: 12, State: study.TrialRunning, Point: study.Point{"lr": 1e-3, "width": int64(100)},
		Times: record.Times{Started: now.Add(-20 * time.Second)},
	})
	url, stop := serveOn(t, "127.0.0.1:0", b)
	defer stop()
	get := func(args ...string) string {
		run := start(t.Context(), append([]string{"trial", "get", "digits", "--server", url}, args...)...)
		if code := <-run.code; code != cli.ExitOK {
			t.Fatalf("exit code %d: %s", code, run.errs)
		}
		return run.out.String()
	}
	if out := get("12"); !regexp.MustCompile(`Takes: +about ([45]\d(\.\d)?s|1m \d\ds) in all, likely .* to .*; it has run for 2\d(\.\d)?s`).MatchString(out) {
		t.Errorf("of a trial that runs it says\n%s", out)
	}
	var v view.Trial
	if err := json.Unmarshal([]byte(get("12", "-o", "json")), &v); err != nil || v.Takes == nil || !(v.Takes.Low < 60 && 60 < v.Takes.High) {
		t.Errorf("of a trial that runs, %+v is expected, %v", v.Takes, err)
	}
	if out := get("5"); regexp.MustCompile(`Takes:`).MatchString(out) {
		t.Errorf("of a trial that has completed it says\n%s", out)
	}
}
