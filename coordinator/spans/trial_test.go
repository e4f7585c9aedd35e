package spans

import (
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// wayOf emits the spans of a trial that began at second 0 and was folded at
// second 30, with its fold durable at 31, and returns them.
func wayOf(t *testing.T, attempts []record.Attempt) []sdktrace.ReadOnlySpan {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(telemetry.IDGenerator()), sdktrace.WithSpanProcessor(spans))
	x := New(provider.Tracer("test"), messaging.Shard)
	x.SetEpoch(7)
	trial := record.Trial{
		Number: 1, State: study.TrialCompleted, Attempts: attempts,
		TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7",
		Times: record.Times{Asked: second(0), Suggested: second(1), Created: second(2), Folded: second(30)},
	}
	x.Trial(t.Context(), &record.Study{ID: "s"}, &trial, second(31))
	return spans.Ended()
}

func second(n int) time.Time { return time.Unix(int64(1e9+n), 0) }

// at is an attempt that passed its stages at these seconds; 0 for never.
func at(number int, state study.AttemptState, outcome messaging.Outcome, opened, committed, published, claimed, started,
	ended int) record.Attempt {
	set := func(n int) time.Time {
		if n == 0 {
			return time.Time{}
		}
		return second(n)
	}
	return record.Attempt{
		Number: number, State: state, Outcome: outcome, Worker: "w", Opened: set(opened), Committed: set(committed), Published: set(published),
		Claimed: set(claimed), Started: set(started), Ended: set(ended),
	}
}

// The spans of a trial cover all of it, together with the time for which workers emit
// the spans.
func TestPartsOfATrialAddUp(t *testing.T) {
	t.Parallel()
	last := at(3, study.AttemptSucceeded, messaging.OutcomeCompleted, 20, 21, 22, 23, 24, 28)
	for name, c := range map[string]struct {
		attempts []record.Attempt
		worker   int // seconds that workers emit
		parts    map[string]int
	}{
		"one attempt": {
			[]record.Attempt{at(1, study.AttemptSucceeded, messaging.OutcomeCompleted, 2, 3, 4, 6, 7, 27)}, 21,
			map[string]int{"suggest": 1, "ready": 1, "commit": 1, "publish": 1, "queue": 2, "report": 3, "fold": 1},
		},
		"lost, handed back, completed": {
			[]record.Attempt{
				at(1, study.AttemptLost, "", 2, 3, 4, 5, 6, 10),
				at(2, study.AttemptHandedBack, messaging.OutcomeHandedBack, 11, 12, 13, 14, 15, 18), last,
			}, 9,
			map[string]int{"suggest": 1, "ready": 1, "commit": 1 + 2 + 1, "publish": 3, "queue": 3, "lost": 5, "report": 2 + 2, "fold": 1},
		},
		"a leader died before it noted that it had published": {
			[]record.Attempt{at(1, study.AttemptSucceeded, messaging.OutcomeCompleted, 2, 0, 0, 6, 7, 27)}, 21,
			map[string]int{"suggest": 1, "ready": 1, "queue": 4, "report": 3, "fold": 1},
		},
		"claimed before the acknowledgement": {
			[]record.Attempt{at(1, study.AttemptSucceeded, messaging.OutcomeCompleted, 2, 3, 9, 6, 7, 27)}, 21,
			map[string]int{"suggest": 1, "ready": 1, "commit": 1, "publish": 3, "report": 3, "fold": 1},
		},
		"the worker's clock is two seconds ahead": {
			[]record.Attempt{at(1, study.AttemptSucceeded, messaging.OutcomeCompleted, 2, 3, 4, 8, 9, 29)}, 21,
			map[string]int{"suggest": 1, "ready": 1, "commit": 1, "publish": 1, "queue": 4, "report": 1, "fold": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts, sum, whole := map[string]int{}, c.worker, 0
			for _, span := range wayOf(t, c.attempts) {
				took := int(span.EndTime().Sub(span.StartTime()).Seconds())
				if took < 0 {
					t.Errorf("%s ends before it begins", span.Name())
				}
				if span.Name() == telemetry.SpanTrial {
					whole = took
					continue
				}
				sum += took
				parts[span.Name()] += took
			}
			if sum != whole || whole != 31 {
				t.Errorf("the trial took %d s, its parts %d: %v", whole, sum, parts)
			}
			for part, want := range c.parts {
				if parts[part] != want {
					t.Errorf("%s took %d s, want %d", part, parts[part], want)
				}
			}
		})
	}
}

// A worker's clock may be off by more than the durations of the spans around its own. No
// span is negative, and all stay within the trial.
func TestClocksThatAreFarOff(t *testing.T) {
	t.Parallel()
	for _, off := range []int{-20, 20} {
		a := at(1, study.AttemptSucceeded, messaging.OutcomeCompleted, 2, 3, 4, 6+off, 7+off, 27+off)
		for _, span := range wayOf(t, []record.Attempt{a}) {
			if span.EndTime().Before(span.StartTime()) {
				t.Errorf("with a clock %d s off, %s lies from %v to %v", off, span.Name(), span.StartTime(), span.EndTime())
			}
		}
	}
}
