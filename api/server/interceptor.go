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

// requestLog logs one line per request.
type requestLog struct{ logger *slog.Logger }

var _ connect.Interceptor = (*requestLog)(nil)

// WrapUnary logs a request once it has been answered.
func (l *requestLog) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		start := time.Now()
		resp, err := next(ctx, req)
		l.log(ctx, req.Spec().Procedure, req.Peer().Protocol, time.Since(start), err)
		return resp, err
	}
}

// WrapStreamingClient returns clients unchanged.
func (l *requestLog) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler logs a stream once it has ended.
func (l *requestLog) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		start := time.Now()
		err := next(ctx, conn)
		l.log(ctx, conn.Spec().Procedure, conn.Peer().Protocol, time.Since(start), err)
		return err
	}
}

func (l *requestLog) log(ctx context.Context, procedure, protocol string, took time.Duration, err error) {
	level, code := slog.LevelDebug, "ok"
	if err != nil {
		code = connect.CodeOf(err).String()
		switch connect.CodeOf(err) {
		case connect.CodeInternal, connect.CodeUnknown, connect.CodeDataLoss:
			level = slog.LevelWarn
		}
	}
	attrs := []slog.Attr{
		slog.String("procedure", procedure), slog.String("protocol", protocol),
		slog.String("code", code), slog.Duration("took", took),
	}
	if err != nil {
		attrs = append(attrs, slog.Any(telemetry.LogError, cause(err)))
	}
	l.logger.LogAttrs(ctx, level, "request", attrs...)
}

// waited replaces the error canceled by unavailable for callers that still wait. They have
// cancelled nothing: something in the server has ended, such as the time of a leader.
type waited struct{}

var _ connect.Interceptor = waited{}

// WrapUnary replaces the error of a request.
func (waited) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		resp, err := next(ctx, req)
		return resp, stillWaiting(ctx, err)
	}
}

// WrapStreamingClient returns clients unchanged.
func (waited) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler replaces the error of a stream.
func (waited) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return stillWaiting(ctx, next(ctx, conn))
	}
}

func stillWaiting(ctx context.Context, err error) error {
	if connect.CodeOf(err) != connect.CodeCanceled || ctx.Err() != nil {
		return err
	}
	return connect.NewError(connect.CodeUnavailable, &plainError{
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
