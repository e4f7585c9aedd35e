package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// unreachable is an exporter whose collector does not answer until it is mended.
type unreachable struct {
	*tracetest.InMemoryExporter
	mended bool
}

func (u *unreachable) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if !u.mended {
		return errors.New("connection refused")
	}
	return u.InMemoryExporter.ExportSpans(ctx, spans)
}

// A collector that does not answer costs one structured line a minute, which counts the spans.
// Whoever flushes is told.
func TestFailedExportsAreFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		exporter := &unreachable{InMemoryExporter: tracetest.NewInMemoryExporter()}
		var exports Exports
		exports.provider = sdktrace.NewTracerProvider(
			sdktrace.WithBatcher(newTelling(exporter, &exports, slog.New(slog.NewTextHandler(&log, nil))), sdktrace.WithBatchTimeout(time.Second)))
		tracer := exports.provider.Tracer("test")
		time.Sleep(time.Second / 2) // no span ends in the instant of an export
		for range 90 {
			_, span := tracer.Start(t.Context(), "span")
			span.End()
			time.Sleep(time.Second)
		}
		synctest.Wait() // for the exporter's goroutine, which wrote them
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], `level=WARN msg="cannot export spans" spans=1 error="connection refused"`) ||
			!strings.Contains(lines[1], "spans=60 ") {
			t.Errorf("90 failed exports in 90 s are %d lines:\n%s", len(lines), &log)
		}
		_, span := tracer.Start(t.Context(), "span")
		span.End()
		if err := exports.Flush(t.Context()); err == nil {
			t.Error("a flush that failed says nothing")
		}
		synctest.Wait()
		exporter.mended = true
		_, span = tracer.Start(t.Context(), "span")
		span.End()
		if err := exports.Flush(t.Context()); err != nil || len(exporter.GetSpans()) == 0 {
			t.Errorf("the collector answers again: %v, %d spans", err, len(exporter.GetSpans()))
		}
		if err := exports.provider.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
