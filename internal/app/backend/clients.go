package backend

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// Suggest implements server.Clients.
func (b *Backend) Suggest(ctx context.Context, nameOrID, client string, count int, wait time.Duration) (coordinator.Suggestions, error) {
	got, err := b.c.Suggest(ctx, nameOrID, client, count, wait)
	return got, translate(err)
}

// Heartbeat implements server.Clients.
func (b *Backend) Heartbeat(ctx context.Context, nameOrID, client string, held []coordinator.HeldAttempt) ([]engine.Instruction, error) {
	list, err := b.c.Heartbeat(ctx, nameOrID, client, held)
	return list, translate(err)
}

// Measure implements server.Clients.
func (b *Backend) Measure(ctx context.Context, nameOrID, client string, held coordinator.HeldAttempt,
	reports []coordinator.Report) (engine.Instruction, error) {
	return write(ctx, b.l, func(ctx context.Context) (engine.Instruction, error) {
		return b.c.Measure(ctx, nameOrID, client, held, reports)
	})
}

// Tell implements server.Clients.
func (b *Backend) Tell(ctx context.Context, nameOrID string, event func(now time.Time) engine.Event) (record.Trial, error) {
	return write(ctx, b.l, func(ctx context.Context) (record.Trial, error) { return b.c.Tell(ctx, nameOrID, event) })
}
