package server

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"
)

// Limits bound what one caller may send: the bearer of a token, or without tokens a
// machine. Requests beyond them are refused with connect.CodeResourceExhausted. Without
// tokens, all whose requests another replica forwards count as that replica.
type Limits struct {
	// Rate is how many requests a second a caller may send for long, and Burst how many at
	// once. Default 2,000 and 4,000.
	Rate  float64
	Burst int
	// Streams is how many streams a caller may have open, such as watches, and AllStreams
	// how many all callers together. Default 500 and 2,000.
	Streams, AllStreams int
}

func (l Limits) withDefaults() Limits {
	if l.Rate <= 0 {
		l.Rate = 2000
	}
	if l.Burst <= 0 {
		l.Burst = 4000
	}
	if l.Streams <= 0 {
		l.Streams = 500
	}
	if l.AllStreams <= 0 {
		l.AllStreams = 2000
	}
	return l
}

// maxCallers is how many callers a limiter remembers before it forgets quiet ones.
const maxCallers = 4096

// limiter passes on only what the limits allow.
type limiter struct {
	next   http.Handler
	limits Limits
	now    func() time.Time
	logger *slog.Logger

	mu      sync.Mutex
	callers map[string]*caller
	streams int
	// lines bounds the log's lines about refusals; unsaid counts those since the last line.
	lines  *rate.Limiter
	unsaid int
}

// caller is what a limiter knows of a caller.
type caller struct {
	requests *rate.Limiter
	streams  int
}

func newLimiter(next http.Handler, o Options) *limiter {
	return &limiter{
		next: next, limits: o.Limits.withDefaults(), now: o.Now, logger: o.Logger,
		callers: map[string]*caller{}, lines: rate.NewLimiter(1, 1),
	}
}

// ServeHTTP implements http.Handler.
func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := callerOf(r)
	if name == "" { // this process itself
		l.next.ServeHTTP(w, r)
		return
	}
	leave, refused := l.enter(name, procedures[r.URL.Path].streams)
	if refused != nil {
		l.refuse(w, r, refused)
		return
	}
	defer leave()
	l.next.ServeHTTP(w, r)
}

// callerOf names who sent a request; empty for this process.
func callerOf(r *http.Request) string {
	if g, ok := r.Context().Value(grantKey{}).(Grant); ok {
		return "the token " + g.Name
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr // of a socket
	}
	return host
}

// enter counts a request, which ends with leave. The error says which limit it exceeds.
func (l *limiter) enter(name string, stream bool) (leave func(), refused error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c := l.callers[name]
	if c == nil {
		l.forget(now)
		c = &caller{requests: rate.NewLimiter(rate.Limit(l.limits.Rate), l.limits.Burst)}
		l.callers[name] = c
	}
	if !c.requests.AllowN(now, 1) {
		return nil, fmt.Errorf("%s sends more than %g requests a second; try again later", name, l.limits.Rate)
	}
	switch {
	case !stream:
		return func() {}, nil
	case c.streams >= l.limits.Streams:
		return nil, fmt.Errorf("%s has %d streams open, as many as it may; end some, or try again later", name, c.streams)
	case l.streams >= l.limits.AllStreams:
		return nil, fmt.Errorf("this server has %d streams open, as many as it serves; try again later", l.streams)
	}
	c.streams++
	l.streams++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.streams--
		l.streams--
	}, nil
}

// forget forgets callers that have their whole allowance again, if there are too many
// callers. The others must stay, or they would get a new allowance. The caller MUST hold
// the lock.
func (l *limiter) forget(now time.Time) {
	if len(l.callers) < maxCallers {
		return
	}
	for name, c := range l.callers {
		if c.streams == 0 && c.requests.TokensAt(now) >= float64(l.limits.Burst) {
			delete(l.callers, name)
		}
	}
}

// refuse refuses a request. At most once a second the log says so, and how many requests
// have been refused since it last did.
func (l *limiter) refuse(w http.ResponseWriter, r *http.Request, why error) {
	l.mu.Lock()
	l.unsaid++
	count, say := l.unsaid, l.lines.AllowN(l.now(), 1)
	if say {
		l.unsaid = 0
	}
	l.mu.Unlock()
	if say {
		l.logger.WarnContext(r.Context(), "refused a request", "procedure", r.URL.Path, "from", r.RemoteAddr, "why", why.Error(), "count", count)
	}
	w.Header().Set("Retry-After", "1")
	refuse(w, r, l.logger, connect.NewError(connect.CodeResourceExhausted, why), http.StatusTooManyRequests, why.Error())
}
