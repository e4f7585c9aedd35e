package lease

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Worker is a worker as described by its last heartbeat.
type Worker struct {
	messaging.Heartbeat
	// Seen is when this replica received the heartbeat.
	Seen time.Time
}

// listenAgain is how long Listen waits before it subscribes again.
const listenAgain = time.Second

// Directory lists the workers for users. Every replica keeps one, since every replica
// receives heartbeats. Safe for concurrent use.
type Directory struct {
	lease time.Duration

	mu      sync.Mutex
	workers map[string]Worker
	swept   time.Time // when workers that had been gone for long were removed
}

// NewDirectory returns an empty list. It drops workers that have been silent for a lease.
func NewDirectory(lease time.Duration) *Directory {
	return &Directory{lease: lease, workers: map[string]Worker{}}
}

// Listen receives heartbeats until ctx ends. It retries, since a replica may be
// started before its broker.
func (d *Directory) Listen(ctx context.Context, bus messaging.Leader, log *slog.Logger) {
	for ctx.Err() == nil {
		if err := d.follow(ctx, bus); err != nil && ctx.Err() == nil {
			log.Warn("could not listen for heartbeats, so no workers are listed; retrying", telemetry.LogError, err)
		}
		backoff.Sleep(ctx, listenAgain)
	}
}

// follow receives heartbeats until the subscription ends.
func (d *Directory) follow(ctx context.Context, bus messaging.Leader) error {
	beats, err := bus.Heartbeats(ctx)
	if err != nil {
		return fmt.Errorf("subscribe to heartbeats: %w", err)
	}
	for h := range beats {
		d.hear(h, time.Now())
	}
	return nil
}

// hear stores a heartbeat and, once a lease, removes workers that have been gone for long.
func (d *Directory) hear(h messaging.Heartbeat, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.workers[h.Worker] = Worker{Heartbeat: h, Seen: now}
	if now.Sub(d.swept) < d.lease {
		return
	}
	d.swept = now
	for name, w := range d.workers {
		if now.Sub(w.Seen) > 2*d.lease {
			delete(d.workers, name)
		}
	}
}

// List returns the workers that were heard within a lease, by name.
func (d *Directory) List(now time.Time) []Worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Worker
	for _, w := range d.workers {
		if now.Sub(w.Seen) <= d.lease {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b Worker) int { return strings.Compare(a.Worker, b.Worker) })
	return out
}
