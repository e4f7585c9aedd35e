package coordinator

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

// roster lists the workers for users. Every replica keeps one, since every replica
// receives heartbeats. Safe for concurrent use.
type roster struct {
	lease time.Duration

	mu      sync.Mutex
	workers map[string]Worker
	swept   time.Time // when workers that had been gone for long were removed
}

func newRoster(lease time.Duration) *roster {
	return &roster{lease: lease, workers: map[string]Worker{}}
}

// listen receives heartbeats until ctx ends. It retries, since a replica may be
// started before its broker.
func (r *roster) listen(ctx context.Context, bus messaging.Leader, log *slog.Logger) {
	for ctx.Err() == nil {
		if err := r.follow(ctx, bus); err != nil && ctx.Err() == nil {
			log.Warn("could not listen for heartbeats, so no workers are listed; retrying", telemetry.LogError, err)
		}
		backoff.Sleep(ctx, retryEvery)
	}
}

// follow receives heartbeats until the subscription ends.
func (r *roster) follow(ctx context.Context, bus messaging.Leader) error {
	beats, err := bus.Heartbeats(ctx)
	if err != nil {
		return fmt.Errorf("subscribe to heartbeats: %w", err)
	}
	for h := range beats {
		r.hear(h, time.Now())
	}
	return nil
}

// hear stores a heartbeat and, once a lease, removes workers that have been gone for long.
func (r *roster) hear(h messaging.Heartbeat, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers[h.Worker] = Worker{Heartbeat: h, Seen: now}
	if now.Sub(r.swept) < r.lease {
		return
	}
	r.swept = now
	for name, w := range r.workers {
		if now.Sub(w.Seen) > 2*r.lease {
			delete(r.workers, name)
		}
	}
}

// list returns the workers that were heard within a lease, by name.
func (r *roster) list(now time.Time) []Worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Worker
	for _, w := range r.workers {
		if now.Sub(w.Seen) <= r.lease {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b Worker) int { return strings.Compare(a.Worker, b.Worker) })
	return out
}

// Workers returns the workers that this replica has heard within their lease, by name.
func (c *Coordinator) Workers() []Worker { return c.roster.list(time.Now()) }
