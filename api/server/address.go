package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

// AddressLimits bound what one address may send before anybody looks for a token. An address
// can be a proxy or a whole network behind one, so the defaults are about as much as a
// server can answer. The zero value of each field means its default.
type AddressLimits struct {
	// Rate is how many requests a second an address may send for long, and Burst how many at
	// once. Default 10,000 and 40,000.
	Rate  float64
	Burst int
	// Open is how many requests of an address may be in progress. Default 20,000.
	Open int
	// Failures is how many requests a second of an address may fail for want of a valid token,
	// and FailureBurst how many at once. Default 100 and 2,000. Requests with a valid token are
	// not affected.
	Failures     float64
	FailureBurst int
	// Pause is how long a request beyond the limits waits for its answer. It slows down those
	// who send one request after another. Default 1 s.
	Pause time.Duration
}

func (l AddressLimits) withDefaults() AddressLimits {
	l.Rate = cmp.Or(l.Rate, 10_000)
	l.Burst = cmp.Or(l.Burst, 40_000)
	l.Open = cmp.Or(l.Open, 20_000)
	l.Failures = cmp.Or(l.Failures, 100)
	l.FailureBurst = cmp.Or(l.FailureBurst, 2000)
	l.Pause = cmp.Or(l.Pause, limitRetry)
	return l
}

const (
	// maxAddresses is how many addresses are known at the same time. Others share one allowance.
	maxAddresses = 65536
	// maxPausing bounds the requests that wait for their refusal. Others are refused at once.
	maxPausing = 1000
)

// Addresses bound what each address may send. They are safe for concurrent use.
type Addresses struct {
	limits  AddressLimits
	now     func() time.Time
	logger  *slog.Logger
	refused *telemetry.Refusals
	pausing chan struct{}

	mu     sync.Mutex
	known  map[netip.Prefix]*address
	tidied time.Time
}

// address is what is known of an address.
type address struct {
	name               string
	requests, failures *rate.Limiter
	open               int
}

// NewAddresses returns addresses that have sent nothing. now is the clock.
func NewAddresses(limits AddressLimits, logger *slog.Logger, now func() time.Time) *Addresses {
	return &Addresses{
		limits: limits.withDefaults(), now: now, logger: logger, known: map[netip.Prefix]*address{},
		refused: telemetry.NewRefusals(logger, "refused a request", now), pausing: make(chan struct{}, maxPausing),
	}
}

// probes are asked for by who starts a process anew that does not answer. Their address can be
// that of callers: the one of a node.
var probes = []string{"/healthz", "/readyz", "/grpc.health.v1.Health/Check"}

// visit is a request of an address.
type visit struct {
	all  *Addresses
	from *address
}

// visitKey is the context key of a request's visit.
type visitKey struct{}

// Limit passes on the requests that the limits allow. Those of a socket, and probes of the
// process, are not limited.
func (a *Addresses) Limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, ok := Network(r.RemoteAddr)
		if !ok || slices.Contains(probes, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		v, err := a.enter(from)
		if err != nil {
			a.pause(r.Context())
			a.refuse(w, r, err)
			return
		}
		defer a.leave(v)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, visit{a, v})))
	})
}

// Network returns the network that counts as one address, of a remote address with its port: of
// IPv6, what one customer gets. It returns false for a socket.
func Network(remote string) (netip.Prefix, bool) {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}, false
	}
	ip := at.Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() && !ip.IsLoopback() {
		bits = 64
	}
	network, err := ip.Prefix(bits)
	return network, err == nil
}

// enter counts a request, which ends with leave. The error says which limit it exceeds.
func (a *Addresses) enter(from netip.Prefix) (*address, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	v := a.find(from, now)
	switch {
	case !v.requests.AllowN(now, 1):
		return nil, exhausted("%s sends more than %g requests a second; try again later", v.name, a.limits.Rate)
	case v.open >= a.limits.Open:
		return nil, exhausted("%s has %d requests in progress, as many as it may; try again later", v.name, v.open)
	}
	v.open++
	return v, nil
}

func (a *Addresses) leave(v *address) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v.open--
}

// find returns what is known of an address. The caller MUST hold the lock.
func (a *Addresses) find(from netip.Prefix, now time.Time) *address {
	if v := a.known[from]; v != nil {
		return v
	}
	if len(a.known) >= maxAddresses && now.Sub(a.tidied) > time.Second {
		a.tidied = now
		a.forget(now)
	}
	name := from.Addr().String()
	if len(a.known) >= maxAddresses {
		from, name = netip.Prefix{}, "one of very many addresses"
		if v := a.known[from]; v != nil {
			return v
		}
	}
	v := &address{
		name: name, requests: rate.NewLimiter(rate.Limit(a.limits.Rate), a.limits.Burst),
		failures: rate.NewLimiter(rate.Limit(a.limits.Failures), a.limits.FailureBurst),
	}
	a.known[from] = v
	return v
}

// forget forgets the addresses that have their whole allowance again. The caller MUST hold
// the lock.
func (a *Addresses) forget(now time.Time) {
	for from, v := range a.known {
		if v.open == 0 && v.requests.TokensAt(now) >= float64(a.limits.Burst) && v.failures.TokensAt(now) >= float64(a.limits.FailureBurst) {
			delete(a.known, from)
		}
	}
}

// pause waits before a refusal, unless many do so already.
func (a *Addresses) pause(ctx context.Context) {
	select {
	case a.pausing <- struct{}{}:
	default:
		return
	}
	defer func() { <-a.pausing }()
	t := time.NewTimer(a.limits.Pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// refuse refuses a request.
func (a *Addresses) refuse(w http.ResponseWriter, r *http.Request, why error) {
	a.refused.Log(r, errors.New(message(why)))
	tooMany(w, r, a.logger, why)
}

// tooMany answers a request beyond a limit.
func tooMany(w http.ResponseWriter, r *http.Request, logger *slog.Logger, why error) {
	w.Header().Set("Retry-After", strconv.Itoa(int(limitRetry.Seconds())))
	refuse(w, r, logger, why, http.StatusTooManyRequests, message(why))
}

// Failed counts a request, given its context, that had no valid token. If its address has sent
// too many of them, Failed returns the error to answer with, after a pause.
func Failed(ctx context.Context) error {
	v, ok := ctx.Value(visitKey{}).(visit)
	if !ok || v.from.failures.AllowN(v.all.now(), 1) {
		return nil
	}
	v.all.pause(ctx)
	return exhausted("%s sends more than %g requests a second without a valid token; try again later", v.from.name, v.all.limits.Failures)
}
