package coordinator

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/membus"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// One trace a trial: the root has the ids of the trial's record, the rest are its
// children and lie within it.
func TestTraces(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(telemetry.IDGenerator()), sdktrace.WithSpanProcessor(spans))
	c := r.leader(func(o *Options) { o.Tracer = provider.Tracer(telemetry.ScopeName) })
	r.hand("w", 2, func(a *messaging.Assignment) *messaging.Result {
		if a.Trial == 2 {
			return fails(a)
		}
		return completes(a)
	})
	s := r.create(c, "traced", 5, 2)
	r.ends(s.ID)
	c.stop()
	stored := r.verify(s.ID, 5, 4)
	names := map[string]map[string]int{} // by trace
	for _, span := range spans.Ended() {
		id := span.SpanContext().TraceID().String()
		if names[id] == nil {
			names[id] = map[string]int{}
		}
		names[id][span.Name()]++
	}
	if len(names) != 5 {
		t.Errorf("%d traces, want one for each of 5 trials", len(names))
	}
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		for _, want := range []string{telemetry.SpanTrial, telemetry.SpanSuggest, telemetry.SpanCommit, telemetry.SpanQueue, telemetry.SpanFold} {
			if n := names[tr.TraceID][want]; n != 1 {
				t.Errorf("trial %d has %d spans %q, want 1", tr.Number, n, want)
			}
		}
	}
	for _, span := range spans.Ended() {
		i := 0
		for i < 5 && stored.Trials[i].TraceID != span.SpanContext().TraceID().String() {
			i++
		}
		if i == 5 {
			t.Fatalf("span %q is in no trial's trace", span.Name())
		}
		tr := &stored.Trials[i]
		root := span.Name() == telemetry.SpanTrial
		switch {
		case root && span.SpanContext().SpanID().String() != tr.SpanID:
			t.Errorf("the root of trial %d is %s, want %s", tr.Number, span.SpanContext().SpanID(), tr.SpanID)
		case root && span.Parent().IsValid():
			t.Errorf("the root of trial %d has a parent", tr.Number)
		case root && (span.Status().Code == codes.Error) != (tr.Value == nil):
			t.Errorf("trial %d is %s, its span %v", tr.Number, tr.State, span.Status())
		case !root && span.Parent().SpanID().String() != tr.SpanID:
			t.Errorf("%q of trial %d is the child of %s", span.Name(), tr.Number, span.Parent().SpanID())
		}
		if span.EndTime().Before(span.StartTime()) || span.StartTime().Before(tr.Times.Asked.Add(-1)) {
			t.Errorf("%q of trial %d lies from %v to %v, the trial began at %v", span.Name(), tr.Number, span.StartTime(), span.EndTime(), tr.Times.Asked)
		}
	}
}

// What a scrape of the leader shows after a study.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	tel, err := telemetry.Setup(r.ctx(), telemetry.Options{Service: "test", Logs: logTo{t}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tel.Shutdown(r.ctx()); err != nil {
			t.Error(err)
		}
	}()
	c := r.leader(func(o *Options) { o.Meter = tel.Meter() })
	r.hand("w", 2, nil)
	s := r.create(c, "measured", 6, 2)
	r.ends(s.ID)
	scrape := func() string {
		w := httptest.NewRecorder()
		tel.MetricsHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	r.eventually(func() error { return contains(scrape(), `fantasia_pool_slots{`, `fantasia_pool_slots_free{`) })
	text := scrape()
	if err := contains(text,
		`fantasia_trials_ended_total{`, `fantasia_study_name="measured"`, `fantasia_trial_state="COMPLETED"`,
		`fantasia_results_total{fantasia_result_disposition="folded"`, `fantasia_leader_leading`,
		`fantasia_leader_takeovers_total`, `fantasia_trial_queue_wait_seconds_bucket`, `fantasia_trial_evaluation_seconds_bucket`,
		`fantasia_trial_overhead_seconds_bucket`, `fantasia_optimizer_suggest_seconds_bucket`, `fantasia_ledger_commit_seconds_bucket`,
		`fantasia_suggestion_staleness_bucket`, `fantasia_trials_pending`, `fantasia_pool_useful_parallelism`,
	); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "fantasia_trials_ended_total{") && !strings.HasSuffix(strings.TrimSpace(line), " 6") {
			t.Errorf("6 trials have ended: %s", line)
		}
	}
}
