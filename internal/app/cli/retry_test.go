package cli

import (
	"context"
	"errors"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Whoever waits is told what for, in the server's words: a leader is only one of the reasons.
func TestWhatRequestsWaitFor(t *testing.T) {
	t.Parallel()
	keys := connect.NewWireError(connect.CodeUnavailable, errors.New("the keys of its issuer https://issuer.example.com cannot be read"))
	leader := connect.NewWireError(connect.CodeUnavailable, errors.New("no coordinator leads now; try again"))
	detail, err := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	leader.AddDetail(detail)
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"an issuer's keys":  {keys, "the keys of its issuer https://issuer.example.com cannot be read"},
		"a leader":          {leader, ""},
		"a lost connection": {connect.NewError(connect.CodeUnavailable, errReset), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, tries := "nothing", 0
			next := retry(func(text string) { said = text })(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
				if tries++; tries == 1 {
					return nil, tt.err
				}
				return nil, nil
			})
			if _, err := next(t.Context(), idempotent{connect.NewRequest(&struct{}{})}); err != nil || said != tt.want {
				t.Errorf("it is said to wait for %q (%v), want %q", said, err, tt.want)
			}
		})
	}
}

// idempotent is a request that may be repeated.
type idempotent struct{ *connect.Request[struct{}] }

func (idempotent) Spec() connect.Spec {
	return connect.Spec{IdempotencyLevel: connect.IdempotencyNoSideEffects}
}
