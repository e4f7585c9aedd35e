package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

// ended is an interceptor that learns how each request and each stream has ended, and returns
// the error with which it ends.
type ended func(ctx context.Context, spec connect.Spec, peer connect.Peer, took time.Duration, err error) error

var _ connect.Interceptor = ended(nil)

// WrapUnary calls f once a request has been answered.
func (f ended) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		start := time.Now()
		resp, err := next(ctx, req)
		return resp, f(ctx, req.Spec(), req.Peer(), time.Since(start), err)
	}
}

// WrapStreamingClient returns clients unchanged.
func (ended) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler calls f once a stream has ended.
func (f ended) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		start := time.Now()
		err := next(ctx, conn)
		return f(ctx, conn.Spec(), conn.Peer(), time.Since(start), err)
	}
}

// check is an interceptor that returns the error of a request that is not to be answered. It sees
// requests that have been validated, if it comes after their interceptor.
type check func(ctx context.Context, procedure string, request any) error

var _ connect.Interceptor = check(nil)

// WrapUnary checks a request.
func (f check) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if err := f(ctx, req.Spec().Procedure, req.Any()); err != nil {
			return nil, toConnect(err)
		}
		return next(ctx, req)
	}
}

// WrapStreamingClient returns clients unchanged.
func (check) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler checks the request of a stream when it is received.
func (f check) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, &checkedConn{conn, ctx, f})
	}
}

// checkedConn is a stream whose request is checked.
type checkedConn struct {
	connect.StreamingHandlerConn
	ctx   context.Context //nolint:containedctx // connect's connections have no other way to it
	check check
}

// Receive implements connect.StreamingHandlerConn.
func (c *checkedConn) Receive(message any) error {
	if err := c.StreamingHandlerConn.Receive(message); err != nil {
		return err
	}
	return toConnect(c.check(c.ctx, c.Spec().Procedure, message))
}

// logged logs one line per request.
func logged(logger *slog.Logger) ended {
	return func(ctx context.Context, spec connect.Spec, peer connect.Peer, took time.Duration, err error) error {
		level, code := slog.LevelDebug, "ok"
		if err != nil {
			code = connect.CodeOf(err).String()
			switch connect.CodeOf(err) {
			case connect.CodeInternal, connect.CodeUnknown, connect.CodeDataLoss:
				level = slog.LevelWarn
			}
		}
		attrs := []slog.Attr{
			slog.String("procedure", spec.Procedure), slog.String("protocol", peer.Protocol),
			slog.String("code", code), slog.Duration("took", took),
		}
		if err != nil {
			attrs = append(attrs, slog.Any(telemetry.LogError, cause(err)))
		}
		logger.LogAttrs(ctx, level, "request", attrs...)
		return err
	}
}

// stillWaiting replaces the error canceled by unavailable for callers that still wait. They
// have cancelled nothing: something in the server has ended, such as the time of a leader.
func stillWaiting(ctx context.Context, _ connect.Spec, _ connect.Peer, _ time.Duration, err error) error {
	if connect.CodeOf(err) != connect.CodeCanceled || ctx.Err() != nil {
		return err
	}
	return connect.NewError(connect.CodeUnavailable, &Reworded{
		"the coordinator gave up the request: check whether it took effect before you try again", err,
	})
}

// cause returns the error that an internal error hides from the caller.
func cause(err error) error {
	if hidden, ok := errors.AsType[*internalError](err); ok {
		return hidden.cause
	}
	return err
}

// recovered turns a handler's panic into an internal error and logs its stack.
func recovered(logger *slog.Logger) func(context.Context, connect.Spec, http.Header, any) error {
	return func(ctx context.Context, spec connect.Spec, _ http.Header, panicked any) error {
		logger.ErrorContext(ctx, "a handler panicked", slog.String("procedure", spec.Procedure),
			slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
		return connect.NewError(connect.CodeInternal, &internalError{cause: fmt.Errorf("panic: %v", panicked)})
	}
}
