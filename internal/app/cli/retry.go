package cli

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
)

// retryEvery is how long to wait before a request is sent again where the server
// does not say.
const retryEvery = 500 * time.Millisecond

// retry sends requests again, until their context ends, while the coordinators
// elect a leader: those that the server says nothing has been done of, and those
// that may be done twice. waiting is called before the first wait of each.
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

// retryable reports whether a request that failed can be sent again, and when.
func retryable(spec connect.Spec, err error) (after time.Duration, ok bool) {
	connected, is := errors.AsType[*connect.Error](err)
	if !is || connected.Code() != connect.CodeUnavailable || !connect.IsWireError(err) {
		return 0, false
	}
	for _, detail := range connected.Details() {
		value, err := detail.Value()
		if err != nil {
			continue // another version's
		}
		if info, ok := value.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return retryEvery, spec.IdempotencyLevel != connect.IdempotencyUnknown
}
