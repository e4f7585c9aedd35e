package disk

import (
	"context"
	"log/slog"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// historyEvery is how often the leader looks at etcd's history.
	historyEvery = 10 * time.Minute
	// The leader warns if nobody has compacted the history for historyAge and it has at least
	// historyLeast revisions. With periodic compaction and a retention of an hour, nothing is
	// older than two hours.
	historyAge, historyLeast = 3 * time.Hour, 100_000
	// historyAgain is how often it warns.
	historyAgain = 24 * time.Hour
)

// History warns of an etcd whose history nobody compacts: it grows until etcd is full and
// refuses every write.
type History struct {
	log *slog.Logger
	// read returns the oldest revision that etcd has, and the latest one.
	read func(ctx context.Context) (oldest, latest int64, err error)

	oldest        int64
	since, warned time.Time // of oldest, and of the last warning
}

// NewHistory returns a History that asks read.
func NewHistory(log *slog.Logger, read func(ctx context.Context) (oldest, latest int64, err error)) *History {
	return &History{log: log, read: read}
}

// Run looks at the history until ctx ends.
func (h *History) Run(ctx context.Context) error {
	for range backoff.Every(ctx, historyEvery) {
		reading, stop := context.WithTimeout(ctx, callTimeout)
		oldest, latest, err := h.read(reading)
		stop()
		if err == nil {
			h.note(time.Now(), oldest, latest)
		} else if ctx.Err() == nil {
			h.log.Debug("cannot look at etcd's history", telemetry.LogError, err)
		}
	}
	return ctx.Err()
}

// note notes which revisions etcd has, and warns if they are old and many.
func (h *History) note(now time.Time, oldest, latest int64) {
	if oldest != h.oldest || h.since.IsZero() {
		h.oldest, h.since = oldest, now
	}
	kept := latest - oldest + 1
	if kept < historyLeast || now.Sub(h.since) < historyAge || !h.warned.IsZero() && now.Sub(h.warned) < historyAgain {
		return
	}
	h.warned = now
	h.log.Warn("nobody compacts etcd's history: it grows until etcd is full and refuses writes. "+
		"Start etcd with --auto-compaction-mode=periodic --auto-compaction-retention=1h",
		"revisions", kept, "oldest", oldest, "notCompactedFor", now.Sub(h.since).Round(time.Minute).String())
}
