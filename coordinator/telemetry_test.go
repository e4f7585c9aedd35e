package coordinator

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// traced runs a study of trials, of which the second fails, and returns its
// records and the leader's spans by their traces.
func traced(t *testing.T, trials int) (*ledger.Records, map[string][]sdktrace.ReadOnlySpan) {
	t.Helper()
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
	s := r.create(c, "traced", trials, 2)
	r.ends(s.ID)
	r.eventually(func() error { // what the ledger has is emitted at once, but after
		roots := 0
		for _, span := range spans.Ended() {
			if span.Name() == telemetry.SpanTrial {
				roots++
			}
		}
		if roots < trials {
			return fmt.Errorf("%d of %d trials have been emitted", roots, trials)
		}
		return nil
	})
	c.stop()
	byTrace := map[string][]sdktrace.ReadOnlySpan{}
	for _, span := range spans.Ended() {
		id := span.SpanContext().TraceID().String()
		byTrace[id] = append(byTrace[id], span)
	}
	return r.verify(s.ID, trials, trials-1), byTrace
}

// Each trial has one trace. The root span has the ids of the trial's record; the others
// are its children, and together with the worker's time they cover the whole trial.
func TestTraces(t *testing.T) {
	t.Parallel()
	stored, traces := traced(t, 5)
	published := 0
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		if !tr.Last().Published.IsZero() {
			published++
		}
		var root sdktrace.ReadOnlySpan
		var sum time.Duration
		names := map[string]int{}
		for _, span := range traces[tr.TraceID] {
			names[span.Name()]++
			if span.Name() == telemetry.SpanTrial {
				root = span
				continue
			}
			sum += span.EndTime().Sub(span.StartTime())
			if span.Parent().SpanID().String() != tr.SpanID {
				t.Errorf("%q of trial %d is the child of %s", span.Name(), tr.Number, span.Parent().SpanID())
			}
		}
		for _, want := range []string{telemetry.SpanTrial, telemetry.SpanSuggest, telemetry.SpanCommit, telemetry.SpanPublish,
			telemetry.SpanQueue, telemetry.SpanReport, telemetry.SpanFold} {
			n := 1
			if (want == telemetry.SpanCommit || want == telemetry.SpanPublish) && tr.Last().Published.IsZero() {
				n = 0 // its result arrived before the broker's acknowledgement
			}
			if names[want] != n {
				t.Errorf("trial %d has %d spans %q, want %d", tr.Number, names[want], want, n)
			}
		}
		if root == nil {
			continue
		}
		if root.SpanContext().SpanID().String() != tr.SpanID || root.Parent().IsValid() {
			t.Errorf("the root of trial %d is %s below %v, want %s", tr.Number, root.SpanContext().SpanID(), root.Parent(), tr.SpanID)
		}
		if (root.Status().Code == codes.Error) != (len(tr.Values) == 0) {
			t.Errorf("trial %d is %s, its span %v", tr.Number, tr.State, root.Status())
		}
		a := tr.Last() // the worker's spans are those between claim and end
		whole, got := root.EndTime().Sub(root.StartTime()), sum+a.Ended.Sub(cmp.Or(a.Claimed, a.Started))
		// A record holds wall-clock times only, which are read slightly apart.
		if d := (whole - got).Abs(); d > time.Microsecond {
			t.Errorf("trial %d took %v, its parts %v", tr.Number, whole, got)
		}
	}
	if published == 0 {
		t.Error("no trial's record says when it was published")
	}
}

// A refit has its own trace. Each trial's suggestion links to its refit, and each refit
// links to the trials whose results it was the first to use.
func TestRefitsAreLinkedToTheTrialsThatTheyFold(t *testing.T) {
	t.Parallel()
	const trials = 10
	stored, traces := traced(t, trials)
	byTrace, folded := map[string]*record.Trial{}, map[int]int{}
	for i := range stored.Trials {
		byTrace[stored.Trials[i].TraceID] = &stored.Trials[i]
	}
	refits := map[string]sdktrace.ReadOnlySpan{}
	for id, spans := range traces {
		if byTrace[id] != nil {
			continue
		}
		if len(spans) != 1 || spans[0].Name() != telemetry.SpanRefit {
			t.Errorf("the trace %s is neither a trial's nor a refit's: %d spans", id, len(spans))
			continue
		}
		refits[spans[0].SpanContext().SpanID().String()] = spans[0]
		for _, l := range spans[0].Links() {
			tr := byTrace[l.SpanContext.TraceID().String()]
			if tr == nil || tr.SpanID != l.SpanContext.SpanID().String() {
				t.Fatalf("a refit is linked to %v, which is no trial", l.SpanContext)
			}
			folded[tr.Number]++
		}
	}
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		for _, span := range traces[tr.TraceID] {
			if span.Name() != telemetry.SpanSuggest {
				continue
			}
			if len(span.Links()) != 1 || refits[span.Links()[0].SpanContext.SpanID().String()] == nil {
				t.Errorf("trial %d's suggestion has the links %v, want one to a refit", tr.Number, span.Links())
			}
		}
		if folded[tr.Number] > 1 {
			t.Errorf("trial %d was folded by %d refits", tr.Number, folded[tr.Number])
		}
	}
	known := int64(0) // by the refit that knows most
	for _, span := range refits {
		set := attribute.NewSet(span.Attributes()...)
		n, _ := set.Value(telemetry.AttrObservations)
		known = max(known, n.AsInt64())
		if f, _ := set.Value(telemetry.AttrFolded); f.AsInt64() != int64(len(span.Links())) {
			t.Errorf("a refit has folded %d trials and %d links", f.AsInt64(), len(span.Links()))
		}
	}
	if known == 0 || int64(len(folded)) != known {
		t.Errorf("refits are linked to the trials %v, the last knows %d", folded, known)
	}
}

// The leader's metrics after a study.
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
	r.eventually(func() error {
		return contains(scrape(), `fantasia_pool_slots{`, `fantasia_pool_slots_free{`, `fantasia_pool_slots_idle_seconds_total{`)
	})
	for attempt, raw := range []string{``, `{"version":1,"study":"none","trial":1,"attempt":2,"nonce":"n","worker":"w","outcome":"failed"}`} {
		id := messaging.AttemptID{Study: "none", Trial: 1, Attempt: attempt + 1}
		r.broker.Inject(messaging.Subject{Kind: messaging.KindResult, Shard: messaging.Shard, Worker: "w", ID: id}.String(), []byte(raw))
	}
	r.eventually(func() error {
		return contains(scrape(), `fantasia_results_total{fantasia_result_disposition="poison"`,
			`fantasia_results_total{fantasia_result_disposition="unknown"`)
	})
	text := scrape()
	if err := contains(text,
		`fantasia_trials_ended_total{`, `fantasia_study_name="measured"`, `fantasia_trial_state="COMPLETED"`,
		`fantasia_results_total{fantasia_result_disposition="folded"`, `fantasia_leader_leading`,
		`fantasia_leader_takeovers_total`, `fantasia_trial_queue_wait_seconds_bucket`, `fantasia_trial_evaluation_seconds_bucket`,
		`fantasia_trial_overhead_seconds_bucket`, `fantasia_optimizer_suggest_seconds_bucket`, `fantasia_ledger_commit_seconds_bucket`,
		`fantasia_suggestion_staleness_bucket`, `fantasia_trials_pending`, `fantasia_pool_useful_parallelism`, `fantasia_pool_workers{`,
		`fantasia_studies_running`,
		`fantasia_attempts_ended_total{fantasia_attempt_state="succeeded"`,
	); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "fantasia_trials_ended_total{") && !strings.HasSuffix(strings.TrimSpace(line), " 6") {
			t.Errorf("6 trials have ended: %s", line)
		}
	}
}
