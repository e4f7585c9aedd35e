package messaging_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/messaging"
)

func TestSubjects(t *testing.T) {
	tests := map[string]messaging.Envelope{
		"fantasia.assign.0.gpu.01J.7.2": assignment(),
		"fantasia.claim.0.gpu.01J.7.2":  claim(),
		"fantasia.result.0.w-1.01J.7.2": result(),
		"fantasia.metric.0.01J.7.2":     measurement(),
		"fantasia.heartbeat.0.w-1":      heartbeat(),
		"fantasia.control.0.w-1":        control(),
	}
	for want, e := range tests {
		if got := e.Subject(messaging.Shard); got != want {
			t.Errorf("%T: subject %s, want %s", e, got, want)
		}
	}
	filters := map[string]string{
		messaging.Filter(messaging.KindFence, "0"):                                  "fantasia.fence.0",
		messaging.Filter(messaging.KindClaim, "0"):                                  "fantasia.claim.0.>",
		messaging.PoolFilter("0", "gpu"):                                            "fantasia.assign.0.gpu.>",
		strings.Join(messaging.StudyFilters(messaging.KindAssign, "0", "01J"), " "): "fantasia.assign.0.*.01J.>",
		strings.Join(messaging.StudyFilters(messaging.KindResult, "0", "01J"), " "): "fantasia.result.0.*.01J.> fantasia.result.0.*.*.01J.>",
		strings.Join(messaging.StudyFilters(messaging.KindMetric, "0", "01J"), " "): "fantasia.metric.0.01J.>",
		messaging.Subject{Kind: "dlq", Shard: "0", Worker: "w"}.String():            "fantasia.dlq.0.w",
	}
	for got, want := range filters {
		if got != want {
			t.Errorf("filter %s, want %s", got, want)
		}
	}
}

func TestParseSubjectRefuses(t *testing.T) {
	for _, s := range []string{
		"", ".", "fantasia", "fantasia.claim.0", "other.fence.0", "fantasia.other.0", "fantasia.fence.0.x",
		"fantasia.claim.0.gpu.s.1", "fantasia.claim.0.gpu.s.1.1.1", "fantasia.claim.0.gpu.s.0.1",
		"fantasia.claim.0.gpu.s.01.1", "fantasia.claim.0.gpu.s.+1.1", "fantasia.claim.0.gpu.s.-1.1",
		"fantasia.claim.0.gpu.s.99999999999999999999.1", "fantasia.claim.0.*.s.1.1", "fantasia.claim.0..s.1.1",
		"fantasia.heartbeat.0", "fantasia.heartbeat.0.gpu.w.x", "fantasia.result.0.gpu..s.1.1", "fantasia.result.0.gpu.w.x.s.1.1",
		"fantasia.heartbeat.0.>", "fantasia.heartbeat.0." + strings.Repeat("w", 129),
	} {
		if got, err := messaging.ParseSubject(s); !errors.Is(err, messaging.ErrSubject) {
			t.Errorf("%q was read as %+v, %v", s, got, err)
		}
	}
}

// ParseSubject reads back what String formats, for every kind.
func TestSubjectRoundTrip(t *testing.T) {
	kinds := []messaging.Kind{messaging.KindAssign, messaging.KindFence, messaging.KindClaim, messaging.KindResult,
		messaging.KindMetric, messaging.KindHeartbeat, messaging.KindControl, messaging.KindLog, messaging.KindDeadLetter}
	token := rapid.StringMatching(`[A-Za-z0-9_-]{1,20}`)
	rapid.Check(t, func(t *rapid.T) {
		s := messaging.Subject{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Shard: token.Draw(t, "shard")}
		switch s.Kind {
		case messaging.KindAssign, messaging.KindClaim:
			s.Pool = token.Draw(t, "pool")
		case messaging.KindResult, messaging.KindHeartbeat, messaging.KindControl, messaging.KindLog, messaging.KindDeadLetter:
			s.Worker = token.Draw(t, "worker")
			if rapid.Bool().Draw(t, "of a pool") {
				s.Worker = messaging.WorkerName(token.Draw(t, "pool"), s.Worker)
			}
		}
		switch s.Kind {
		case messaging.KindAssign, messaging.KindClaim, messaging.KindResult, messaging.KindMetric:
			s.ID = messaging.AttemptID{Study: token.Draw(t, "study"),
				Trial: rapid.IntMin(1).Draw(t, "trial"), Attempt: rapid.IntMin(1).Draw(t, "attempt")}
		}
		got, err := messaging.ParseSubject(s.String())
		if err != nil || got != s {
			t.Errorf("%s: read as %+v, %v, want %+v", s, got, err, s)
		}
	})
}

func TestToken(t *testing.T) {
	for in, want := range map[string]string{
		"gpu-1": "gpu-1", "host.example.com": "host-example-com", "": "-", "a b*>": "a-b--", "é": "--",
		strings.Repeat("x", 200): strings.Repeat("x", 128),
	} {
		if got := messaging.Token(in); got != want || !messaging.ValidToken(got) {
			t.Errorf("Token(%q) is %q, want %q", in, got, want)
		}
	}
}

func FuzzParseSubject(f *testing.F) {
	f.Add("fantasia.claim.0.gpu.01J.7.2")
	f.Add("fantasia.fence.0")
	f.Add("fantasia.dlq.0.w")
	f.Fuzz(func(t *testing.T, subject string) {
		if s, err := messaging.ParseSubject(subject); err == nil && s.String() != subject {
			t.Errorf("%q was read as %q", subject, s.String())
		}
	})
}
