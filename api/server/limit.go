package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Limits bound what one caller may send: the bearer of a token, or without tokens a
// machine. Requests beyond them are refused with connect.CodeResourceExhausted. Without
// tokens, all whose requests another replica forwards count as that replica.
type Limits struct {
	// Rate is how many requests a second a caller may send for long, and Burst how many at
	// once. Default 2,000 and 4,000.
	Rate  float64
	Burst int
	// Streams is how many streams a machine may have open without tokens, such as watches (a
	// token has a quota), and AllStreams how many all callers together. Default 500 and 2,000.
	Streams, AllStreams int
	// Suggestions is how many calls of a caller may wait for trials at the same time. Default
	// 500; the leader lets 2,000 of all callers wait.
	Suggestions int
	// AtOnce is how many requests of a caller are worked on at the same time. Further requests wait
	// for their turn. A stream needs one until its first message was sent, or for as long as Beginning,
	// and a call that waits for trials needs none. Default 8. A request that
	// has waited for Patience goes on without a turn, so that requests which take long, such as in an
	// outage of etcd, do not hold up others of their caller. Default 4 s.
	AtOnce   int
	Patience time.Duration
	// Beginning is how long a stream has a turn at most: its reader may be slow, and some streams have
	// nothing to send for long. Default 100 ms.
	Beginning time.Duration
	// Files is how many study files of a caller are read at the same time, and AllFiles how
	// many of all callers. Further requests wait for a while. Default 2 and 4, but fewer than
	// the processor has cores if it has several, so that the leader never waits for a core.
	Files, AllFiles int
	// Bytes is how much the requests of a caller may have in memory at the same time, and
	// AllBytes how much those of all callers. Default 32 MiB and 128 MiB.
	Bytes, AllBytes int64
}

const (
	// filePatience is how long a study file waits to be read.
	filePatience = 10 * time.Second
	// maxWaitingFiles bounds a caller's study files that wait.
	maxWaitingFiles = 64
	// limitRetry is when those who exceeded a limit may try again.
	limitRetry = time.Second
)

func (l Limits) withDefaults() Limits {
	unlessSet(&l.Rate, 2000)
	unlessSet(&l.Burst, 4000)
	unlessSet(&l.Streams, 500)
	unlessSet(&l.AllStreams, 2000)
	unlessSet(&l.Suggestions, 500)
	unlessSet(&l.AtOnce, 8)
	unlessSet(&l.Patience, 4*time.Second)
	unlessSet(&l.Beginning, 100*time.Millisecond)
	unlessSet(&l.AllFiles, max(1, min(4, runtime.GOMAXPROCS(0)-1)))
	unlessSet(&l.Files, min(2, l.AllFiles))
	unlessSet(&l.Bytes, 32<<20)
	unlessSet(&l.AllBytes, 128<<20)
	return l
}

// unlessSet sets an option that is not positive to its default.
func unlessSet[T int | int64 | float64 | time.Duration](option *T, usual T) {
	if *option <= 0 {
		*option = usual
	}
}

// maxCallers is how many callers a limiter remembers before it forgets quiet ones.
const maxCallers = 4096

// limiter passes on only what the limits allow.
type limiter struct {
	next    http.Handler
	limits  Limits
	maxBody int64
	now     func() time.Time
	logger  *slog.Logger
	quotas  *Quotas

	mu      sync.Mutex
	callers map[string]*caller
	streams int
	bytes   int64         // of requests in memory
	files   chan struct{} // a place for each study file that is read
	refused *telemetry.Refusals
}

// caller is what a limiter knows of a caller.
type caller struct {
	requests *rate.Limiter
	streams  int
	suggests int   // calls that wait for trials
	bytes    int64 // of requests in memory
	// turns has a place for each request that is worked on.
	turns chan struct{}
	// files has a place for each study file that is read; waiting counts those that have none.
	files   chan struct{}
	waiting int
}

func newLimiter(next http.Handler, o Options) *limiter {
	limits := o.Limits.withDefaults()
	return &limiter{
		next: next, limits: limits, maxBody: int64(o.MaxBody), now: o.Now, logger: o.Logger, quotas: o.Quotas,
		callers: map[string]*caller{}, files: make(chan struct{}, limits.AllFiles),
		refused: telemetry.NewRefusals(o.Logger, "refused a request", o.Now),
	}
}

// ServeHTTP implements http.Handler.
func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := callerOf(r)
	if name == "" { // this process itself
		l.next.ServeHTTP(w, r)
		return
	}
	c, leave, refused := l.enter(r.Context(), name, procedures[r.URL.Path])
	if refused != nil {
		l.refuse(w, r, refused)
		return
	}
	defer leave()
	request := &inFlight{l: l, c: c, name: name}
	defer request.shrink(0)
	metered, refused := request.meter(r, l.maxBody)
	if refused != nil {
		l.refuse(w, r, refused)
		return
	}
	l.next.ServeHTTP(w, metered)
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
func (l *limiter) enter(ctx context.Context, name string, p procedure) (c *caller, leave func(), refused error) {
	grant, borne := ctx.Value(grantKey{}).(Grant)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c = l.callers[name]
	if c == nil {
		l.forget(now)
		c = &caller{requests: rate.NewLimiter(rate.Limit(l.limits.Rate), l.limits.Burst),
			turns: make(chan struct{}, l.limits.AtOnce), files: make(chan struct{}, l.limits.Files)}
		l.callers[name] = c
	}
	if !c.requests.AllowN(now, 1) {
		return nil, nil, exhausted("%s sends more than %g requests a second; try again later", name, l.limits.Rate)
	}
	switch {
	case p.suggests && c.suggests >= l.limits.Suggestions:
		return nil, nil, exhausted("%s has %d calls that wait for trials, as many as it may; try again later", name, c.suggests)
	case p.suggests:
		return c, l.leaves(&c.suggests), nil
	case !p.streams:
		return c, func() {}, nil
	case !borne && c.streams >= l.limits.Streams:
		return nil, nil, exhausted("%s has %d streams open, as many as it may; end some, or try again later", name, c.streams)
	case l.streams >= l.limits.AllStreams:
		return nil, nil, exhausted("this server has %d streams open, as many as it serves; try again later", l.streams)
	}
	if !borne {
		return c, l.leaves(&c.streams, &l.streams), nil
	}
	end, err := l.quotas.openStream(&grant)
	if err != nil {
		return nil, nil, exhausted("%w", err)
	}
	left := l.leaves(&c.streams, &l.streams)
	return c, func() { left(); end() }, nil
}

// leaves adds one to counts, and returns a function that takes it away. The caller MUST hold the
// lock.
func (l *limiter) leaves(counts ...*int) (leave func()) {
	for _, n := range counts {
		*n++
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, n := range counts {
			*n--
		}
	}
}

// read waits until a study file of a caller may be read; done says that it was. It is called where
// the file is read: a replica that forwards a request takes no place, since the leader may be
// itself by the time that the request arrives.
func (l *limiter) read(ctx context.Context, name string, c *caller) (done func(), refused error) {
	if err := l.queue(name, c); err != nil {
		return nil, err
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.waiting--
	}()
	ctx, cancel := context.WithTimeout(ctx, filePatience)
	defer cancel()
	for i, places := range []chan struct{}{c.files, l.files} {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-c.files
			}
			return nil, exhausted("this server reads as many study files as it may; try again later")
		}
	}
	return func() { <-l.files; <-c.files }, nil
}

// queue counts a study file that waits.
func (l *limiter) queue(name string, c *caller) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.waiting >= maxWaitingFiles {
		return exhausted("%s has %d study files waiting to be read; try again later", name, c.waiting)
	}
	c.waiting++
	return nil
}

// forget forgets callers that have their whole allowance again, if there are too many
// callers. The others must stay, or they would get a new allowance. The caller MUST hold
// the lock.
func (l *limiter) forget(now time.Time) {
	if len(l.callers) < maxCallers {
		return
	}
	for name, c := range l.callers {
		if c.streams == 0 && c.suggests == 0 && c.bytes == 0 && c.waiting == 0 && len(c.files) == 0 && len(c.turns) == 0 &&
			c.requests.TokensAt(now) >= float64(l.limits.Burst) {
			delete(l.callers, name)
		}
	}
}

// refuse refuses a request.
func (l *limiter) refuse(w http.ResponseWriter, r *http.Request, why error) {
	l.refused.Log(r, errors.New(message(why)))
	tooMany(w, r, l.logger, why)
}
