package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Import writes the records of another ledger, which Export has read. It holds the
// leader's fence, so that nobody leads meanwhile. Until Finish, nobody can lead either: a
// ledger of which a part is missing would give away trials twice. It is not safe for
// concurrent use.
type Import struct {
	l        *Ledger
	fence    Fence
	ops      []clientv3.Op
	bytes    int
	contents Contents
	began    time.Time
}

// Import begins to replace the ledger's records. It deletes those that are there. The mark that the ledger is
// unfinished is stored BEFORE anything is deleted, so that nobody leads what is left after a crash.
func (l *Ledger) Import(ctx context.Context, f Fence) (*Import, error) {
	i := &Import{l: l, fence: f, began: time.Now().UTC()}
	if err := i.mark(ctx, false); err != nil {
		return nil, err
	}
	if err := i.clear(ctx); err != nil {
		return nil, fmt.Errorf("delete the old records: %w", err)
	}
	return i, nil
}

// mark stores whether the import is complete.
func (i *Import) mark(ctx context.Context, done bool) error {
	raw, err := json.Marshal(restoredRecord{Done: done, At: i.began})
	if err != nil {
		return fmt.Errorf("encode the restore's record: %w", err)
	}
	return i.transact(ctx, put(i.l.restoredKey(), raw))
}

// clear deletes all records but the import's own and those of leaders, page by page.
func (i *Import) clear(ctx context.Context) error {
	for _, part := range [][2]string{
		{i.l.o.Prefix, i.l.o.Prefix + leaderDir},
		{prefixEnd(i.l.o.Prefix + leaderDir), i.l.restoredKey()},
		{i.l.restoredKey() + "\x00", prefixEnd(i.l.o.Prefix)},
	} {
		for {
			resp, err := i.l.client.Get(ctx, part[0],
				clientv3.WithRange(part[1]), clientv3.WithKeysOnly(), clientv3.WithLimit(int64(10*i.l.o.PageSize)))
			if err != nil {
				return err
			}
			if len(resp.Kvs) == 0 {
				break
			}
			last := string(resp.Kvs[len(resp.Kvs)-1].Key)
			if err := i.transact(ctx, clientv3.OpDelete(part[0], clientv3.WithRange(last+"\x00"))); err != nil {
				return err
			}
		}
	}
	return nil
}

// Put stores a record. It may be stored later, but before Finish returns. Its key is
// relative to the prefix.
func (i *Import) Put(ctx context.Context, key string, value []byte) error {
	if key == "" || strings.HasPrefix(key, leaderDir) || strings.HasPrefix(key, restoredDir) {
		return fmt.Errorf("%w: %q is not a key of a backup", ErrCorrupt, key)
	}
	size := len(key) + len(i.l.o.Prefix) + len(value) + opOverhead
	if len(i.ops) == MaxOps || len(i.ops) > 0 && i.bytes+size > MaxBytes {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	i.ops = append(i.ops, put(i.l.o.Prefix+key, value))
	i.bytes += size
	i.contents.count(key)
	return nil
}

// Lead stores what was put so far and returns a writer, for changes to the restored records
// before anybody leads. Only Finish may follow it.
func (i *Import) Lead(ctx context.Context) (*Writer, error) {
	if err := i.flush(ctx); err != nil {
		return nil, err
	}
	return i.l.lead(ctx, i.fence, true)
}

// Finish stores the rest, and only then marks the ledger as whole. The next leader sees a restored ledger.
func (i *Import) Finish(ctx context.Context) (Contents, error) {
	if err := i.flush(ctx); err != nil {
		return i.contents, err
	}
	return i.contents, i.mark(ctx, true)
}

func (i *Import) flush(ctx context.Context) error {
	if len(i.ops) == 0 {
		return nil
	}
	err := i.transact(ctx, i.ops...)
	i.ops, i.bytes = nil, 0
	return err
}

// transact executes a transaction under the fence. It can be sent twice: what it writes
// does not depend on what is there.
func (i *Import) transact(ctx context.Context, ops ...clientv3.Op) error {
	ctx, cancel := context.WithTimeout(ctx, i.l.o.Deadline)
	defer cancel()
	fence := clientv3.Compare(clientv3.CreateRevision(i.fence.Key), "=", i.fence.Revision)
	resp, _, err := i.l.send(ctx, []clientv3.Cmp{fence}, ops, nil)
	switch {
	case errors.Is(err, ErrNoSpace):
		return err
	case err != nil:
		return fmt.Errorf("restore records: %w", err)
	case !resp.Succeeded:
		return fmt.Errorf("restore records: %w", ErrFenced)
	}
	return nil
}
