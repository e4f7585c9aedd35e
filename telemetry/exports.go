package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

// Exports tells which spans have left the process. It is safe for concurrent use.
type Exports struct {
	provider *sdktrace.TracerProvider // nil if no traces are exported

	mu       sync.Mutex
	watchers map[int]func([]trace.SpanID)
	next     int
	failed   error // of the last export
}

// Watch calls f with the ids of spans once the exporter has delivered them, until stop is
// called. f MUST return soon; a call may still be running when stop returns.
func (x *Exports) Watch(f func(ids []trace.SpanID)) (stop func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.watchers == nil {
		x.watchers = map[int]func([]trace.SpanID){}
	}
	id := x.next
	x.next++
	x.watchers[id] = f
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.watchers, id)
	}
}

// Flush exports the spans that have ended so far. It returns an error if ctx ends first or
// the exporter fails.
func (x *Exports) Flush(ctx context.Context) error {
	if x.provider == nil {
		return nil
	}
	err := x.provider.ForceFlush(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	return errors.Join(err, x.failed)
}

// note records how an export ended.
func (x *Exports) note(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failed = err
}

func (x *Exports) tellEnded(spans []sdktrace.ReadOnlySpan) {
	x.mu.Lock()
	watchers := slices.Collect(maps.Values(x.watchers))
	x.mu.Unlock()
	if len(watchers) == 0 {
		return
	}
	ids := make([]trace.SpanID, len(spans))
	for i, s := range spans {
		ids[i] = s.SpanContext().SpanID()
	}
	for _, f := range watchers {
		f(ids)
	}
}

// failedExportEvery is how often a failed export is logged at most.
const failedExportEvery = time.Minute

// telling is an exporter that tells what it has delivered, and logs what it has not: the SDK would
// write a line of its own form for each try.
type telling struct {
	sdktrace.SpanExporter
	exports *Exports
	log     *slog.Logger
	lines   *rate.Limiter
	lost    *atomic.Int64 // spans since the last line
}

func newTelling(e sdktrace.SpanExporter, exports *Exports, log *slog.Logger) telling {
	return telling{e, exports, log, rate.NewLimiter(rate.Every(failedExportEvery), 1), &atomic.Int64{}}
}

func (e telling) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.exports.note(err)
	if err == nil {
		e.exports.tellEnded(spans)
		return nil
	}
	if lost := e.lost.Add(int64(len(spans))); e.lines.Allow() {
		e.lost.Add(-lost)
		e.log.Warn("cannot export spans", "spans", lost, LogError, err)
	}
	return nil
}
