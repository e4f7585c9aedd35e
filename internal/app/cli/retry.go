package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

// retryEvery is the time between retries if the server does not set one.
const retryEvery = 500 * time.Millisecond

// retry repeats requests, until their context ends, while the coordinators elect a
// leader, and after a connection was lost. It repeats only requests that the server has not
// begun and those that are safe to repeat. It calls waiting before the first wait of each
// request, with the server's words unless it waits for a leader.
func retry(waiting func(said string)) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			for tries := 0; ; tries++ {
				resp, err := next(ctx, req)
				err = uncancelled(ctx, err)
				delay, ok := retryable(req.Spec(), err)
				if !ok {
					return resp, err
				}
				if tries == 0 {
					waiting(reason(err))
				}
				if !backoff.Sleep(ctx, delay) {
					return nil, err
				}
			}
		}
	}
}

// retryable reports whether a failed request can be repeated, and after what time.
func retryable(spec connect.Spec, err error) (after time.Duration, ok bool) {
	connected, is := errors.AsType[*connect.Error](err)
	if !is || connected.Code() != connect.CodeUnavailable {
		return 0, false
	}
	if !connect.IsWireError(err) { // without a connection, the address may be wrong
		return retryEvery, cut(err) && spec.IdempotencyLevel != connect.IdempotencyUnknown
	}
	for _, detail := range connected.Details() {
		value, err := detail.Value()
		if err != nil {
			continue // a detail of another version
		}
		switch info := value.(type) {
		case *errdetails.RetryInfo:
			return info.GetRetryDelay().AsDuration(), true
		case *errdetails.ErrorInfo:
			if info.GetDomain() == view.ErrorDomain && info.GetReason() == view.ReasonEtcdAway {
				return 0, false // the server has waited for it
			}
		}
	}
	return retryEvery, spec.IdempotencyLevel != connect.IdempotencyUnknown
}

// reason returns what a server says of why a request cannot be served now; empty if that is the election of a leader, or if
// nothing answered.
func reason(err error) string {
	connected, is := errors.AsType[*connect.Error](err)
	if !is || !connect.IsWireError(err) {
		return ""
	}
	for _, detail := range connected.Details() {
		if value, err := detail.Value(); err == nil {
			if _, elects := value.(*errdetails.RetryInfo); elects {
				return ""
			}
		}
	}
	return connected.Message()
}

// uncancelled returns the error of a request. If it says that the request was cancelled
// although its caller still waits, it becomes connect.CodeUnavailable: connect says so of a
// connection that was reset, and so does a server that gave up the request as it ended.
func uncancelled(ctx context.Context, err error) error {
	connected, ok := errors.AsType[*connect.Error](err)
	if !ok || connected.Code() != connect.CodeCanceled || ctx.Err() != nil {
		return err
	}
	if connect.IsWireError(err) {
		return connect.NewWireError(connect.CodeUnavailable, connected.Unwrap())
	}
	return connect.NewError(connect.CodeUnavailable, fmt.Errorf("%w: %w", errReset, connected.Unwrap()))
}

// errReset says that the connection was reset in the middle of a request.
var errReset = errors.New("the connection was reset")

// cut reports whether an error is of a connection that was made and then lost. HTTP/2 has
// only a text for a connection that a server ends.
func cut(err error) bool {
	return errors.Is(err, errReset) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "http2: server sent GOAWAY")
}
