package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/otelconnect"
	"connectrpc.com/validate"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
)

// DefaultMaxBody bounds a request, in bytes: a study file and some room.
const DefaultMaxBody = 2 << 20

// Options tune the handlers; the zero value of each field means its default.
type Options struct {
	// Leader finds the leader for writes; nil where this process is the only
	// replica.
	Leader Leader
	// Tokens are who may do what; nil lets everybody do everything.
	Tokens *Tokens
	// ForwardTLS is how a leader that advertises an address with https:// is
	// spoken to; nil trusts whom the system trusts.
	ForwardTLS *tls.Config
	// ForwardTimeout bounds a write that is sent on. Default 10 s.
	ForwardTimeout time.Duration
	// Draining is closed when the server begins to shut down: watches then end, and
	// ask their callers to watch again. A nil channel never closes.
	Draining <-chan struct{}
	// MaxBody bounds a request in bytes. Default DefaultMaxBody.
	MaxBody int
	// Now is the clock that studies' elapsed times are taken by. Default time.Now.
	Now func() time.Time
	// Logger gets a line a request: debug where all is well, warn where the
	// server is at fault. Default: none.
	Logger *slog.Logger
	// Tracer and Meter provide for spans and metrics. Default: the global ones.
	Tracer trace.TracerProvider
	Meter  metric.MeterProvider
}

// service implements the handlers.
type service struct {
	backend  Backend
	now      func() time.Time
	draining <-chan struct{}
}

var _ fantasiav1connect.StudyServiceHandler = (*service)(nil)

// New returns the API's handler and the path to mount it at.
func New(b Backend, o Options) (path string, handler http.Handler, err error) {
	o = o.withDefaults()
	if o.Tokens != nil {
		b = authorized{b}
	}
	traced, err := otelconnect.NewInterceptor(o.telemetry()...)
	if err != nil {
		return "", nil, fmt.Errorf("make the interceptor of traces: %w", err)
	}
	path, handler = fantasiav1connect.NewStudyServiceHandler(
		&service{backend: b, now: o.Now, draining: o.Draining},
		connect.WithInterceptors(traced, &requestLog{logger: o.Logger}, validate.NewInterceptor()),
		connect.WithRecover(recovered(o.Logger)),
		connect.WithReadMaxBytes(o.MaxBody),
	)
	if o.Leader != nil {
		handler = newForward(handler, o)
	}
	if o.Tokens != nil {
		handler = newAuthorizer(handler, o)
	}
	return path, handler, nil
}

func (o Options) withDefaults() Options {
	if o.ForwardTimeout <= 0 {
		o.ForwardTimeout = 10 * time.Second
	}
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// telemetry makes a caller's span the parent: the callers are the project's own programs.
func (o Options) telemetry() []otelconnect.Option {
	options := []otelconnect.Option{otelconnect.WithTrustRemote(), otelconnect.WithPropagator(propagation.TraceContext{})}
	if o.Tracer != nil {
		options = append(options, otelconnect.WithTracerProvider(o.Tracer))
	}
	if o.Meter != nil {
		options = append(options, otelconnect.WithMeterProvider(o.Meter))
	}
	return options
}
