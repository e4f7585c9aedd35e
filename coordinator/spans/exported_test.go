package spans

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// What has been exported is known up to the first trial that waits, in whatever order
// spans are exported.
func TestExportedThrough(t *testing.T) {
	t.Parallel()
	id := func(n byte) trace.SpanID { return trace.SpanID{n} }
	var e exported
	if !e.Through().IsZero() || !e.Idle() {
		t.Error("something was exported before there was anything")
	}
	for n := range byte(4) {
		e.add(id(n+1), second(int(n)+1))
	}
	for i, c := range []struct {
		done  []trace.SpanID
		found bool
		want  time.Time
	}{
		{nil, false, second(1).Add(-1)},
		{[]trace.SpanID{id(2), id(77)}, true, second(1).Add(-1)},
		{[]trace.SpanID{id(1)}, true, second(3).Add(-1)},
		{[]trace.SpanID{id(1)}, false, second(3).Add(-1)},
		{[]trace.SpanID{id(4), id(3)}, true, second(4)},
	} {
		if found := e.Done(c.done); found != c.found {
			t.Errorf("step %d: a trial was found: %v, want %v", i, found, c.found)
		}
		if got := e.Through(); !got.Equal(c.want) {
			t.Errorf("step %d: exported through %v, want %v", i, got, c.want)
		}
	}
	e.add(id(5), second(5))
	e.add(id(6), second(30))
	if got := e.Through(); !got.Equal(second(30).Add(-1)) {
		t.Errorf("exported through %v; want spans that wait for 25 s to be given up", got)
	}
}
