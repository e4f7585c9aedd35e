package telemetry_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

func setup(t *testing.T, o telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.Setup(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tel.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tel
}

func TestMetricsAreScrapedWithoutAnyEnvironment(t *testing.T) {
	tel := setup(t, telemetry.Options{Service: "test", Version: "v0"})
	counter, err := tel.Meter().Int64Counter(telemetry.MetricTrials)
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(t.Context(), 3)
	w := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if got := w.Body.String(); !strings.Contains(got, "fantasia_trials_ended_total{") || !strings.Contains(got, "} 3") {
		t.Errorf("the scrape lacks the counter:\n%s", got)
	}
}

func TestSpansAreExportedWhereTheEnvironmentAsks(t *testing.T) {
	bodies := make(chan string, 16)
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		select {
		case bodies <- r.URL.Path + " " + b.String():
		default:
		}
	}))
	defer backend.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	t.Setenv("OTEL_LOGS_EXPORTER", "none")
	tel := setup(t, telemetry.Options{Service: "test"})
	_, span := tel.Tracer().Start(t.Context(), "hello-span")
	span.End()
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case body := <-bodies:
		if !strings.HasPrefix(body, "/v1/traces ") || !strings.Contains(body, "hello-span") {
			t.Errorf("the backend got %q", body)
		}
	default:
		t.Error("the backend got nothing although OTEL_EXPORTER_OTLP_ENDPOINT names it")
	}
}

// A histogram bucket has an exemplar that leads to a measured trace, if the scraper
// accepts OpenMetrics and traces are exported.
func TestHistogramsHaveExemplars(t *testing.T) {
	scrape := func() string {
		tel := setup(t, telemetry.Options{Service: "test"})
		histogram, err := tel.Meter().Float64Histogram(telemetry.MetricEvaluation)
		if err != nil {
			t.Fatal(err)
		}
		ctx, span := tel.Tracer().Start(telemetry.WithSpan(t.Context(), trace.TraceID{1, 2}, trace.SpanID{3}), "trial")
		histogram.Record(ctx, 1)
		span.End()
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		w := httptest.NewRecorder()
		tel.MetricsHandler().ServeHTTP(w, r)
		return w.Body.String()
	}
	const exemplar = `trace_id="01020000000000000000000000000000"`
	if text := scrape(); strings.Contains(text, exemplar) {
		t.Errorf("an exemplar leads to a trace that is not exported:\n%s", text)
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "none") // enabled, but exported nowhere
	if text := scrape(); !strings.Contains(text, exemplar) {
		t.Errorf("no exemplar leads to the trace:\n%s", text)
	}
}

// The ids of a trial's root span are drawn when the trial is suggested and are
// known to workers before the span is emitted.
func TestWithSpanChoosesTheRootsIDs(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "none") // enabled, but exported nowhere
	tel := setup(t, telemetry.Options{Service: "test"})
	traceID := trace.TraceID{1, 2, 3}
	spanID := trace.SpanID{4, 5, 6}
	ctx, root := tel.Tracer().Start(telemetry.WithSpan(t.Context(), traceID, spanID), "root")
	if got := root.SpanContext(); got.TraceID() != traceID || got.SpanID() != spanID {
		t.Errorf("root is %s/%s, want %s/%s", got.TraceID(), got.SpanID(), traceID, spanID)
	}
	_, child := tel.Tracer().Start(ctx, "child")
	if got := child.SpanContext(); got.TraceID() != traceID || got.SpanID() == spanID {
		t.Errorf("child is %s/%s: want the root's trace and a span id of its own", got.TraceID(), got.SpanID())
	}
	chosen := telemetry.ChildID(traceID, telemetry.SpanReport, 2)
	within, part := tel.Tracer().Start(telemetry.WithChild(ctx, chosen), "part")
	if got := part.SpanContext(); got.TraceID() != traceID || got.SpanID() != chosen {
		t.Errorf("part is %s/%s, want the id %s", got.TraceID(), got.SpanID(), chosen)
	}
	if _, below := tel.Tracer().Start(within, "below"); below.SpanContext().SpanID() == chosen {
		t.Error("a child of the part has the part's id")
	}
	_, remote := tel.Tracer().Start(trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled,
	})), "remote child")
	if got := remote.SpanContext(); got.TraceID() != traceID || got.SpanID() == spanID {
		t.Errorf("remote child is %s/%s", got.TraceID(), got.SpanID())
	}
}

func TestLogsAreText(t *testing.T) {
	var out bytes.Buffer
	tel := setup(t, telemetry.Options{Service: "test", Logs: &out, Level: slog.LevelInfo})
	tel.Logger().Debug("hidden")
	tel.Logger().Info("shown", telemetry.LogStudy, "digits")
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "msg=shown study=digits") {
		t.Errorf("logged %q", text)
	}
}

// The ids of a trial's parts and of refits are functions of the ledger's content: every
// process computes the same ones, and they are all distinct.
func TestDerivedIDs(t *testing.T) {
	asked := time.Unix(1, 5)
	seen := map[string]string{}
	add := func(what, id string) {
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s are both %s", what, other, id)
		}
		seen[id] = what
	}
	for _, name := range []string{telemetry.SpanReport, telemetry.SpanFold} {
		for attempt := range 3 {
			for _, id := range []trace.TraceID{{1}, {2}} {
				got := telemetry.ChildID(id, name, attempt)
				if got != telemetry.ChildID(id, name, attempt) || !got.IsValid() {
					t.Errorf("ChildID(%s, %s, %d) = %s", id, name, attempt, got)
				}
				add(fmt.Sprint(id, name, attempt), got.String())
			}
		}
	}
	for _, c := range []trace.SpanContext{
		telemetry.RefitSpan("a", 1, asked), telemetry.RefitSpan("a", 11, asked), telemetry.RefitSpan("b", 1, asked),
		telemetry.RefitSpan("a", 1, asked.Add(1)),
	} {
		if !c.IsValid() || !c.IsSampled() {
			t.Errorf("%v is no sampled span context", c)
		}
		add("a refit", c.TraceID().String())
	}
	utc := asked.UTC()
	if a, b := telemetry.RefitSpan("a", 1, asked), telemetry.RefitSpan("a", 1, utc); !a.Equal(b) {
		t.Error("a refit's ids depend on the time zone")
	}
}
