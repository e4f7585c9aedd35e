package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// redoOps is the number of a batch's operations in one transaction while a redo log is
// applied. The last transaction also clears the log and stores the commit's record.
const redoOps = MaxOps - 2

// commitLarge stores a batch that needs several transactions. Writing the log's last
// chunk commits it. Only that transaction has the condition and says how many chunks there are: before it
// nothing has happened, and a next leader discards the chunks; after it the batch is stored, and a next leader applies
// it. If the condition fails, the chunks stay until a later log overwrites or clears them.
func (w *Writer) commitLarge(ctx context.Context, ops []op, c *condition) error {
	parts := chunks(ops, min(redoOps, w.l.o.MaxCommit))
	for i, part := range parts {
		raw, err := json.Marshal(part)
		if err != nil {
			return fmt.Errorf("encode a chunk of the redo log: %w", err)
		}
		log := []op{{Key: w.relative(w.l.redoKey(i)), Value: raw}}
		if i < len(parts)-1 {
			err = w.transact(ctx, log, nil, 0)
		} else {
			err = w.transact(ctx, log, c, len(parts))
		}
		if err != nil {
			return err
		}
	}
	return w.apply(ctx, parts)
}

// apply applies a committed redo log. Every transaction but the last repeats in its commit that there is a log,
// so whoever dies in between leaves a log that the next leader applies, from its first chunk on: its operations put or delete
// fixed values, and give the same twice. After an error the writer is broken, since readers see a part of the batch.
func (w *Writer) apply(ctx context.Context, parts [][]op) error {
	for i, part := range parts {
		redo := len(parts)
		if i == len(parts)-1 {
			part = append(part[:len(part):len(part)], w.clearRedo()...)
			redo = 0
		}
		if err := w.transact(ctx, part, nil, redo); err != nil {
			if w.broken != nil {
				return w.broken
			}
			return w.breakDown(fmt.Errorf("apply a stored commit: %w", err))
		}
	}
	return nil
}

// applyStored reads and applies a redo log of n chunks.
func (w *Writer) applyStored(ctx context.Context, n int) error {
	parts := make([][]op, n)
	for i := range parts {
		resp, err := w.l.client.Get(ctx, w.l.redoKey(i))
		if err != nil {
			return fmt.Errorf("read the redo log: %w", err)
		}
		if len(resp.Kvs) != 1 {
			return fmt.Errorf("read the redo log: %s is missing; want %d chunks", w.l.redoKey(i), n)
		}
		if err := decode(resp.Kvs[0], &parts[i]); err != nil {
			return err
		}
	}
	return w.apply(ctx, parts)
}

func (w *Writer) clearRedo() []op {
	dir := w.relative(w.l.redoDir())
	return []op{{Key: dir, End: clientv3.GetPrefixRangeEnd(dir)}}
}

func (w *Writer) relative(key string) string { return key[len(w.l.o.Prefix):] }
