package telemetry

import (
	"context"
	"maps"
	"slices"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Exports tells which spans have left the process. It is safe for concurrent use.
type Exports struct {
	provider *sdktrace.TracerProvider // nil if no traces are exported

	mu       sync.Mutex
	watchers map[int]func([]trace.SpanID)
	next     int
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
	return x.provider.ForceFlush(ctx)
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

// telling is an exporter that tells what it has delivered.
type telling struct {
	sdktrace.SpanExporter
	exports *Exports
}

func (e telling) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		e.exports.tellEnded(spans)
	}
	return err
}
