package coordinator

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Exports tells which spans have left the process. It is safe for concurrent use.
type Exports interface {
	// Watch calls f, which returns soon, with the ids of spans that were exported, until
	// stop is called.
	Watch(f func(ids []trace.SpanID)) (stop func())
	// Flush exports the spans that have ended so far.
	Flush(ctx context.Context) error
}

// exportTime bounds the export at the end of a term, which delays the next leader.
const exportTime = 500 * time.Millisecond

// noExports is for processes that export no spans.
type noExports struct{}

func (noExports) Watch(func([]trace.SpanID)) (stop func()) { return func() {} }
func (noExports) Flush(context.Context) error              { return nil }
