package server

import (
	"cmp"
	"context"
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

// DefaultMaxBody bounds a request, in bytes. It has room for the largest study file.
const DefaultMaxBody = 2 << 20

// Options tune the handlers; the zero value of each field means its default.
type Options struct {
	// Leader finds the leader for writes. Leave it nil if this process is the only
	// replica.
	Leader Leader
	// Tokens knows what the bearers of tokens may do. Nil allows everybody everything.
	Tokens Bearers
	// ReadOnly, unless nil, is the error of every call that changes something.
	ReadOnly error
	// ForwardTLS configures connections to a leader that advertises an https://
	// address. Nil trusts the system's certificate authorities.
	ForwardTLS *tls.Config
	// ForwardTimeout bounds a forwarded request. Default 10 s.
	ForwardTimeout time.Duration
	// Draining is closed when the server begins to shut down. Watches then end with
	// an error that asks their callers to watch again. A nil channel never closes.
	Draining <-chan struct{}
	// MaxBody bounds a request in bytes. Default DefaultMaxBody.
	MaxBody int
	// Quotas bound what the bearers of Tokens use. Default: quota.Usual.
	Quotas *Quotas
	// Limits bound what one caller may send.
	Limits Limits
	// Now is the clock for studies' elapsed times. Default time.Now.
	Now func() time.Time
	// Logger gets one line per request, at level warn if the server is at fault and
	// debug otherwise. Default: no log.
	Logger *slog.Logger
	// Tracer and Meter provide spans and metrics. Default: the global ones.
	Tracer trace.TracerProvider
	Meter  metric.MeterProvider
}

// service implements the handlers.
type service struct {
	backend  Backend
	quotas   *Quotas
	now      func() time.Time
	draining <-chan struct{}
}

var _ fantasiav1connect.StudyServiceHandler = (*service)(nil)

// New returns the API's handler and the path at which to mount it.
func New(b Backend, o Options) (path string, handler http.Handler, err error) {
	o = o.withDefaults()
	traced, err := otelconnect.NewInterceptor(o.telemetry()...)
	if err != nil {
		return "", nil, fmt.Errorf("create the tracing interceptor: %w", err)
	}
	interceptors := []connect.Interceptor{sized{}, traced, logged(o.Logger), ended(stillWaiting), validate.NewInterceptor()}
	if o.Tokens != nil {
		interceptors = append(interceptors, mayCall(b))
		b = struct {
			Reader
			Writer
		}{Restrict(b), b}
	}
	if o.ReadOnly != nil {
		interceptors = append(interceptors, check(func(_ context.Context, procedure string, _ any) error {
			if procedures[procedure].readOnly {
				return nil
			}
			return o.ReadOnly
		}))
	}
	path, handler = fantasiav1connect.NewStudyServiceHandler(
		&service{backend: b, quotas: o.Quotas, now: o.Now, draining: o.Draining},
		connect.WithInterceptors(interceptors...),
		connect.WithRecover(recovered(o.Logger)),
		connect.WithReadMaxBytes(o.MaxBody),
	)
	handler = &mediaType{next: handler, logger: o.Logger}
	if o.Leader != nil {
		handler = newForward(handler, o)
	}
	handler = newLimiter(wellFormed{handler}, o)
	if o.Tokens != nil {
		handler = newAuthorizer(handler, o)
	}
	return path, handler, nil
}

func (o Options) withDefaults() Options {
	unlessSet(&o.ForwardTimeout, 10*time.Second)
	unlessSet(&o.MaxBody, DefaultMaxBody)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Quotas == nil {
		o.Quotas = NewQuotas(o.Tokens, nil, o.Now)
	}
	return o
}

// telemetry returns the options of the tracing interceptor. It trusts callers' spans as
// parents.
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
