package server

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/fantasia-hpo/fantasia/study"
)

// errDraining is why a watch ends when its server shuts down.
var errDraining = fmt.Errorf("%w: the server is shutting down; watch again", study.ErrUnavailable)

// errExpired is why a stream ends with its bearer's token.
var errExpired = errors.New("the token has expired; watch again with a new one")

// watch returns the context of a watch. It ends with the request or when the server
// begins to shut down. The caller MUST call end.
func (s *service) watch(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.draining:
			cancel(errDraining)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// watchError returns the error that ends a watch: the reason that its context ended, or
// else the backend's error.
func watchError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
		if errors.Is(cause, errExpired) {
			err = connect.NewError(connect.CodeUnauthenticated, cause)
		}
	} else if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %w", study.ErrUnavailable, err)
	}
	return toConnect(err)
}
