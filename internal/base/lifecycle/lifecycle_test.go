package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

func TestCloseRunsInReverseAndJoinsErrors(t *testing.T) {
	var s lifecycle.Stack
	var order []string
	broken := errors.New("broken")
	s.PushClose("first", func() error { order = append(order, "first"); return broken })
	s.Push("second", func(ctx context.Context) error {
		order = append(order, "second")
		if _, ok := ctx.Deadline(); !ok {
			t.Error("a clean-up has no deadline")
		}
		return nil
	})
	err := s.Close(time.Second)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "close first") {
		t.Errorf("Close: %v, want the first step's error by name", err)
	}
	if got := strings.Join(order, " "); got != "second first" {
		t.Errorf("closed %s, want second first", got)
	}
	if err := s.Close(time.Second); err != nil || len(order) != 2 {
		t.Errorf("a second Close ran steps again (%v, %v)", order, err)
	}
}
