package telemetry

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxLoggedPath bounds what a log shows of a request's path, in bytes.
const maxLoggedPath = 200

// Refusals logs the requests that were refused for one kind of reason. Who sends requests
// that are refused must not be able to fill a disk with the log of them, so it has at most one
// line a second. Refusals are safe for concurrent use.
type Refusals struct {
	logger *slog.Logger
	text   string
	now    func() time.Time

	mu     sync.Mutex
	lines  *rate.Limiter
	unsaid int // refused since the last line
}

// NewRefusals returns refusals whose lines have a text. now is the clock.
func NewRefusals(logger *slog.Logger, text string, now func() time.Time) *Refusals {
	return &Refusals{logger: logger, text: text, now: now, lines: rate.NewLimiter(1, 1)}
}

// Log logs that a request was refused, and how many were since the last line; or it only
// counts it.
func (l *Refusals) Log(r *http.Request, why error) {
	l.mu.Lock()
	l.unsaid++
	count, say := l.unsaid, l.lines.AllowN(l.now(), 1)
	if say {
		l.unsaid = 0
	}
	l.mu.Unlock()
	if !say {
		return
	}
	path := r.URL.Path
	if len(path) > maxLoggedPath {
		path = path[:maxLoggedPath] + "…"
	}
	l.logger.WarnContext(r.Context(), l.text, "path", path, "from", r.RemoteAddr, "why", why.Error(), "count", count)
}
