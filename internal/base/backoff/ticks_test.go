package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

// TestTicks counts the turns of a loop, which ends with its context or by break.
func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		start, turns := time.Now(), 0
		for range backoff.Ticks(ctx, 10*time.Second) {
			turns++
			if at := time.Since(start); at != time.Duration(turns)*10*time.Second {
				t.Errorf("turn %d is after %v", turns, at)
			}
		}
		if turns != 3 || ctx.Err() == nil {
			t.Errorf("%d turns, want 3 until the context ends", turns)
		}
		for range backoff.Every(t.Context(), time.Hour) {
			break
		}
		if at := time.Since(start); at != 35*time.Second {
			t.Errorf("the first turn of Every is after %v, want at once", at)
		}
	})
}
