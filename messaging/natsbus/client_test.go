package natsbus

import (
	"context"
	"errors"
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// The context of a call made after Close has ended before the call begins.
func TestContextAfterClose(t *testing.T) {
	for range 100 {
		c := &client{}
		c.life, c.end = context.WithCancelCause(t.Context())
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		ctx, release := c.during(t.Context())
		if err := context.Cause(ctx); !errors.Is(err, messaging.ErrClosed) {
			t.Fatalf("the context's cause is %v, want ErrClosed", err)
		}
		release()
	}
}
