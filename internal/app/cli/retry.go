package cli

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/fantasia-hpo/fantasia/api/view"
)

// retryEvery is the time between retries if the server does not set one.
const retryEvery = 500 * time.Millisecond

// retry repeats requests, until their context ends, while the coordinators elect a
// leader. It repeats only requests that the server has not begun and those that are
// safe to repeat. It calls waiting before the first wait of each request.
func retry(waiting func()) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			for tries := 0; ; tries++ {
				resp, err := next(ctx, req)
				delay, ok := retryable(req.Spec(), err)
				if !ok {
					return resp, err
				}
				if tries == 0 {
					waiting()
				}
				select {
				case <-time.After(delay):
				case <-ctx.Done():
					return nil, err
				}
			}
		}
	}
}

// retryable reports whether a failed request can be repeated, and after what time.
func retryable(spec connect.Spec, err error) (after time.Duration, ok bool) {
	connected, is := errors.AsType[*connect.Error](err)
	if !is || connected.Code() != connect.CodeUnavailable || !connect.IsWireError(err) {
		return 0, false
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
