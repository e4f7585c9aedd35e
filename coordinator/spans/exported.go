package spans

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
)

const (
	// exportGivenUp is how long spans count as not exported. The exporter drops spans when
	// it has too many, without telling.
	exportGivenUp = 10 * time.Second
)

// exported knows up to which fold the spans of all trials have been exported. The ledger
// keeps this time, so that the next leader does not send them again. It is safe for
// concurrent use.
type exported struct {
	mu      sync.Mutex
	waiting map[trace.SpanID]time.Time // when trials whose root span waits were folded
	last    time.Time                  // when the last of all trials was folded
}

// add notes a trial whose spans were emitted.
func (e *exported) add(root trace.SpanID, folded time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == nil {
		e.waiting = map[trace.SpanID]time.Time{}
	}
	e.waiting[root] = folded
	if folded.After(e.last) {
		e.last = folded
	}
}

// Done notes exported spans. It returns whether a trial's is among them.
func (e *exported) Done(ids []trace.SpanID) (found bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		if _, ok := e.waiting[id]; ok {
			delete(e.waiting, id)
			found = true
		}
	}
	return found
}

// Through returns a time for which the spans of all trials that were folded until then
// have been exported; zero if there is none.
func (e *exported) Through() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	until := e.last
	for id, folded := range e.waiting {
		if e.last.Sub(folded) > exportGivenUp {
			delete(e.waiting, id)
		} else if !folded.After(until) {
			until = folded.Add(-1)
		}
	}
	return until
}

// Idle reports whether no spans wait.
func (e *exported) Idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) == 0
}
