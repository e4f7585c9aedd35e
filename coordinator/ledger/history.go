package ledger

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// History returns the oldest revision that etcd still has, and the latest one. The oldest
// moves only when somebody compacts etcd's history.
func (l *Ledger) History(ctx context.Context) (oldest, latest int64, err error) {
	if latest, err = l.Revision(ctx); err != nil {
		return 0, 0, err
	}
	_, err = l.client.Get(ctx, l.epochKey(), clientv3.WithRev(1))
	if !errors.Is(err, rpctypes.ErrCompacted) {
		if err != nil {
			return 0, 0, fmt.Errorf("read etcd's first revision: %w", err)
		}
		return 1, latest, nil
	}
	// Only a watch that begins too early is told what was compacted.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for resp := range l.client.Watch(ctx, l.epochKey(), clientv3.WithRev(1)) {
		if resp.CompactRevision > 0 {
			return resp.CompactRevision, latest, nil
		}
		if err := resp.Err(); err != nil {
			return 0, 0, fmt.Errorf("find etcd's oldest revision: %w", err)
		}
	}
	return 0, 0, fmt.Errorf("find etcd's oldest revision: %w", ctx.Err())
}
