package disk

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A leader warns of a history that nobody compacts, once a day, and of no other.
func TestHistoryThatNobodyCompacts(t *testing.T) {
	for name, c := range map[string]struct {
		oldest func(hours int64) int64
		rate   int64 // revisions an hour
		want   int   // warnings in 30 hours
	}{
		"never compacted":  {func(int64) int64 { return 1 }, 50_000, 2},
		"each hour":        {func(h int64) int64 { return max(1, (h-1)*50_000) }, 50_000, 0},
		"stopped":          {func(h int64) int64 { return max(1, min(h, 20)*50_000-1) }, 50_000, 1},
		"hardly anything":  {func(int64) int64 { return 1 }, 1_000, 0},
		"cannot be looked": {func(int64) int64 { return 0 }, 50_000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				began := time.Now()
				h := &History{log: slog.New(slog.NewTextHandler(&out, nil)), read: func(context.Context) (int64, int64, error) {
					hours := int64(time.Since(began) / time.Hour)
					if c.oldest(hours) == 0 {
						return 0, 0, errors.New("denied")
					}
					return c.oldest(hours), hours*c.rate + 1, nil
				}}
				ended := make(chan error, 1)
				go func() { ended <- h.Run(ctx) }()
				<-time.After(30*time.Hour - time.Minute)
				stop()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("it ended with %v", err)
				}
				if got := strings.Count(out.String(), "--auto-compaction-retention=1h"); got != c.want {
					t.Errorf("%d warnings, want %d:\n%s", got, c.want, out.String())
				}
			})
		})
	}
}
