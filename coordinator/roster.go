package coordinator

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Worker is a worker as its last heartbeat told.
type Worker struct {
	messaging.Heartbeat
	// Seen is when this replica heard it.
	Seen time.Time
}

// roster lists the workers for people: every replica hears heartbeats. Safe for
// concurrent use.
type roster struct {
	lease time.Duration

	mu      sync.Mutex
	workers map[string]Worker
}

func newRoster(lease time.Duration) *roster {
	return &roster{lease: lease, workers: map[string]Worker{}}
}

// listen hears heartbeats until ctx ends; a replica may be started before its broker.
func (r *roster) listen(ctx context.Context, bus messaging.Leader, log *slog.Logger) {
	for ctx.Err() == nil {
		if err := r.follow(ctx, bus); err != nil && ctx.Err() == nil {
			log.Warn("workers cannot be listed for now", telemetry.LogError, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryEvery):
		}
	}
}

// follow hears heartbeats until the subscription ends.
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

// hear takes a heartbeat in, and forgets who has been gone for long.
func (r *roster) hear(h messaging.Heartbeat, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers[h.Worker] = Worker{Heartbeat: h, Seen: now}
	for name, w := range r.workers {
		if now.Sub(w.Seen) > 2*r.lease {
			delete(r.workers, name)
		}
	}
}

// list returns the workers heard within a lease, by name.
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

// Workers lists the workers that this replica has heard within their lease, by name.
func (c *Coordinator) Workers() []Worker { return c.roster.list(time.Now()) }
