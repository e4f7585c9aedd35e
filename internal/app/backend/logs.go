package backend

import (
	"context"
	"iter"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
)

// TailLogs implements server.Backend.
func (b *Backend) TailLogs(ctx context.Context, nameOrID string, number int, o server.LogTail) iter.Seq2[server.LogPart, error] {
	return func(yield func(server.LogPart, error) bool) {
		id, err := b.l.id(ctx, nameOrID)
		if err != nil {
			yield(server.LogPart{}, err)
			return
		}
		t, err := b.l.trial(ctx, id, number)
		if err != nil {
			yield(server.LogPart{}, err)
			return
		}
		for p, err := range b.c.TailLogs(ctx, id, &t, coordinator.LogTail(o)) {
			if !yield(server.LogPart(p), translate(err)) {
				return
			}
		}
	}
}
