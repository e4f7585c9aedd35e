package backend

import (
	"context"
	"iter"

	"github.com/fantasia-hpo/fantasia/coordinator"
)

// TailLogs implements server.Backend.
func (b *Backend) TailLogs(ctx context.Context, nameOrID string, number int, o coordinator.LogTail) iter.Seq2[coordinator.LogPart, error] {
	return func(yield func(coordinator.LogPart, error) bool) {
		id, err := b.l.id(ctx, nameOrID)
		if err != nil {
			yield(coordinator.LogPart{}, err)
			return
		}
		t, err := b.l.trial(ctx, id, number)
		if err != nil {
			yield(coordinator.LogPart{}, err)
			return
		}
		b.c.TailLogs(ctx, id, &t, o)(yield)
	}
}
