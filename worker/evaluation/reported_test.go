package evaluation

import (
	"testing"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/messaging"
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
