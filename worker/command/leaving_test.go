package command

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// A program can be the first to end by a signal that a batch system sends to the worker too: then its
// trial is handed back. A program that ends otherwise, or alone, has failed.
func TestLeavingToo(t *testing.T) {
	for name, test := range map[string]struct {
		how   exit
		after time.Duration // when the worker is told; 0 is never
		want  error
	}{
		"by SIGTERM, like the worker":   {exit{code: -1, signal: syscall.SIGTERM}, time.Second, evaluation.ErrLeaving},
		"a shell's child by SIGTERM":    {exit{code: 143}, time.Second, evaluation.ErrLeaving},
		"by SIGTERM, long before":       {exit{code: -1, signal: syscall.SIGTERM}, time.Minute, nil},
		"by SIGTERM alone":              {exit{code: -1, signal: syscall.SIGTERM}, 0, nil},
		"by SIGKILL":                    {exit{code: -1, signal: syscall.SIGKILL}, time.Second, nil},
		"by itself, with an error":      {exit{code: 1}, time.Second, nil},
		"by itself, with a good result": {exit{}, time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				if test.after > 0 {
					timer := time.AfterFunc(test.after, func() { stop(evaluation.ErrLeaving) })
					defer timer.Stop()
				}
				if got := leavingToo(ctx, test.how); !errors.Is(got, test.want) {
					t.Errorf("%v, want %v", got, test.want)
				}
			})
		})
	}
}
