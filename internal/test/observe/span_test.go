package observe

import (
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// span is one span as a backend has it.
type span struct {
	service, name     string
	trace, id, parent string
	start, end        time.Time
	failed            bool
	attributes        map[string]string // of the span
	resource          map[string]string // of the process
	links             []string          // the ids of the traces
}

func (s *span) duration() time.Duration { return s.end.Sub(s.start) }

// distinct keeps one of the spans that a backend has twice: a leader sends again
// what the one before sent last, and knows no better than the ledger, which cannot
// say when its last commit ended. The longer is the one of whoever made that.
func distinct(spans []span) []span {
	byID := map[string]int{}
	var list []span
	for _, s := range spans {
		i, again := byID[s.id]
		switch {
		case !again:
			byID[s.id] = len(list)
			list = append(list, s)
		case s.duration() > list[i].duration():
			list[i] = s
		}
	}
	return list
}

// tolerance is by how much the parts of a trial may miss its whole: backends keep
// microseconds, and a trial has about ten parts.
const tolerance = 20 * time.Microsecond

// checkTrial holds the spans of a trial's trace against its record: one tree with
// the coordinator, the worker and the program in it, whose parts add up.
func checkTrial(t *testing.T, tr *record.Trial, all []span) {
	t.Helper()
	spans := distinct(all)
	byID, names, services := map[string]*span{}, map[string]int{}, map[string]bool{}
	for i := range spans {
		byID[spans[i].id] = &spans[i]
		names[spans[i].name]++
		services[spans[i].service] = true
	}
	whole := byID[tr.SpanID]
	if whole == nil || whole.name != telemetry.SpanTrial || whole.parent != "" {
		t.Errorf("trial %d: the trace %s has no root %s: %v", tr.Number, tr.TraceID, tr.SpanID, names)
		return
	}
	for _, service := range []string{"fantasia-coordinator", "fantasia-worker", "digits"} {
		if !services[service] {
			t.Errorf("trial %d: no span of %s: %v", tr.Number, service, names)
		}
	}
	var parts time.Duration
	for i := range spans {
		s := &spans[i]
		if s.id != whole.id && byID[s.parent] == nil {
			t.Errorf("trial %d: the parent of %q is missing", tr.Number, s.name)
		}
		if s.parent == whole.id {
			parts += s.duration()
		}
	}
	if miss := (whole.duration() - parts).Abs(); miss > tolerance {
		t.Errorf("trial %d took %v, its parts %v: %v", tr.Number, whole.duration(), parts, names)
	}
	for _, name := range []string{telemetry.SpanSuggest, telemetry.SpanQueue, telemetry.SpanClaim, telemetry.SpanEvaluate,
		telemetry.SpanReport, telemetry.SpanSend, telemetry.SpanFold, "train"} {
		if names[name] != 1 {
			t.Errorf("trial %d has %d spans %q, want 1", tr.Number, names[name], name)
		}
	}
	checkProgram(t, tr, spans, byID)
	if whole.failed != (tr.State == study.TrialFailed) {
		t.Errorf("trial %d is %s, its span failed: %v", tr.Number, tr.State, whole.failed)
	}
}

// checkProgram holds that the program's spans lie within the evaluation's.
func checkProgram(t *testing.T, tr *record.Trial, spans []span, byID map[string]*span) {
	t.Helper()
	for i := range spans {
		s := &spans[i]
		if s.name != "train" {
			continue
		}
		e := byID[s.parent]
		if e == nil || e.name != telemetry.SpanEvaluate || s.start.Before(e.start) || s.end.After(e.end) {
			t.Errorf("trial %d: the program ran from %v to %v, not within its evaluation %+v", tr.Number, s.start, s.end, e)
		}
	}
}
