package evaluation

import (
	"log/slog"
	"testing"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

func TestReported(t *testing.T) {
	why, none := "out of memory", ""
	for _, tt := range []struct {
		infeasible, retry, failed *string
		outcome                   messaging.Outcome
		reason, message           string
	}{
		{&why, nil, nil, messaging.OutcomeInfeasible, messaging.ReasonInfeasible, "infeasible: out of memory"},
		{nil, &none, nil, messaging.OutcomeHandedBack, messaging.ReasonRetry, "the program asked for a retry"},
		{nil, nil, &why, messaging.OutcomeFailed, messaging.ReasonReported, "the program reported an error: out of memory"},
		{&none, &why, &why, messaging.OutcomeInfeasible, messaging.ReasonInfeasible, "infeasible"},
	} {
		e := Reported(tt.infeasible, tt.retry, tt.failed)
		if e == nil || e.Outcome != tt.outcome || e.Failure.Reason != tt.reason || e.Failure.Message != tt.message {
			t.Errorf("got %+v, want %+v", e, tt)
		}
	}
	if e := Reported(nil, nil, nil); e != nil {
		t.Errorf("nothing reported is %+v", e)
	}
}

// A step that does not grow is said to whoever reports it, though its value may still be the trial's.
func TestLateStepsAreSaid(t *testing.T) {
	r := &Reports{
		Collector: report.NewCollector([]study.Objective{{Metric: "error", Direction: study.Minimize}}), Log: slog.New(slog.DiscardHandler),
	}
	add := func(step int64) []string {
		return r.Add(report.Report{Step: &step, Metrics: map[string]float64{"error": 0.5}})
	}
	if ignored := add(5); ignored != nil {
		t.Errorf("the first step: %q", ignored)
	}
	want := `steps must grow: step 3 of "error" came after step 5, and is not in the trial's curve`
	if ignored := add(3); len(ignored) != 1 || ignored[0] != want {
		t.Errorf("an earlier step: %q, want %q", ignored, want)
	}
}

func TestBoundedCutsNoCharacter(t *testing.T) {
	for n := range 8 {
		if got := Bounded("aäöb", n); len(got) > n || !utf8.ValidString(got) {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
	if got := Bounded("aäöb", 6); got != "aäöb" {
		t.Errorf("got %q", got)
	}
}
