package ledger

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// Fence is a leader's permission to write: its key and its epoch, the key's
// create-revision.
type Fence struct {
	Key      string
	Revision int64
}

// Writer writes a shard's records for one leader. It is safe for concurrent use; calls
// are executed one after another.
type Writer struct {
	l     *Ledger
	fence Fence
	// turn holds one token, whose holder owns the fields below. Unlike a mutex, it can be waited for
	// until a context ends.
	turn chan struct{}
	// head is the revision of the shard's last commit.
	head int64
	// broken is the reason why nothing more can be written; it never goes away.
	broken error
	// base is what Epoch adds to the fence's revision; restored says that no leader has
	// taken over what was restored. See epoch.go.
	base     int64
	restored bool

	// Tests disable the checks one at a time to check that they matter, and interrupt
	// before a transaction.
	unfenced, unordered bool
	breakOff            func() error
}

// Lead returns a writer for the leader that holds the fence, after completing what an
// earlier leader committed but did not apply. Read the ledger after Lead, not before: records of that commit
// would be missing. The error wraps ErrFenced if the fence is not held, and ErrUnfinished if a restore has
// not finished. There must be only one writer for
// a fence.
func (l *Ledger) Lead(ctx context.Context, f Fence) (*Writer, error) {
	return l.lead(ctx, f, false)
}

// lead is Lead; the ledger may be unfinished for the restore that writes it.
func (l *Ledger) lead(ctx context.Context, f Fence, unfinished bool) (*Writer, error) {
	w := &Writer{l: l, fence: f, turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	ctx, cancel := context.WithTimeout(ctx, l.o.Deadline)
	defer cancel()
	resp, err := l.client.Txn(ctx).Then(
		clientv3.OpGet(f.Key),
		clientv3.OpGet(l.commitKey()),
		clientv3.OpGet(l.redoDir(), clientv3.WithPrefix(), clientv3.WithCountOnly()),
		clientv3.OpGet(l.epochKey()),
		clientv3.OpGet(l.restoredKey()),
	).Commit()
	if err != nil {
		return nil, fmt.Errorf("read the fence and the last commit: %w", err)
	}
	if !holds(resp.Responses[0].GetResponseRange().Kvs, f) {
		return nil, fmt.Errorf("%w: %s was not created at revision %d", ErrFenced, f.Key, f.Revision)
	}
	last, head, err := lastCommit(resp.Responses[1].GetResponseRange().Kvs)
	left := resp.Responses[2].GetResponseRange().Count
	if err != nil {
		if left > 0 {
			return nil, err
		}
		last = commit{} // without a redo log, only the revision of the last commit matters
	}
	w.head = head
	err = w.recall(resp.Responses[3].GetResponseRange().Kvs, resp.Responses[4].GetResponseRange().Kvs)
	if err != nil && (!unfinished || !errors.Is(err, ErrUnfinished)) {
		return nil, err
	}
	err = nil
	switch {
	case last.Redo > 0:
		err = w.applyStored(ctx, last.Redo)
	case left > 0:
		err = w.transact(ctx, w.clearRedo(), nil, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("finish the last leader's commit: %w", err)
	}
	return w, nil
}

// Commit stores the whole batch or nothing. If it fails with neither ErrFenced nor
// ErrUnknown, nothing was stored and the writer can be used again. An empty batch is
// not sent.
func (w *Writer) Commit(ctx context.Context, b *Batch) error {
	return w.commit(ctx, b, nil)
}

// Create stores the batch together with the study's name if the name is free. The batch
// contains the study's first records. The error wraps ErrNameTaken, with the id of the
// existing study, if the name is in use. One commit stores the name and the records. So no study is left without a name,
// and if two studies of one name are created at once, one is refused.
func (w *Writer) Create(ctx context.Context, s *record.Study, b *Batch) error {
	name := s.Definition.Metadata.Name
	b.PutStudy(s)
	b.encode(nameKey(name), nameRecord{ID: s.ID})
	return w.commit(ctx, b, &condition{key: w.l.o.Prefix + nameKey(name), name: name})
}

// nameRecord is the value of names/<name>.
type nameRecord struct {
	ID string `json:"id"`
}

// condition requires that a name is free.
type condition struct{ key, name string }

func (w *Writer) commit(ctx context.Context, b *Batch, c *condition) error {
	ops, err := b.all(w.l.o.Shard)
	if err != nil || len(ops) == 0 {
		return err
	}
	return w.store(ctx, ops, c)
}

// store stores operations as one commit; c may be nil.
func (w *Writer) store(ctx context.Context, ops []op, c *condition) error {
	ctx, cancel := context.WithTimeout(ctx, w.l.o.Deadline)
	defer cancel()
	select {
	case <-w.turn:
	case <-ctx.Done():
		return fmt.Errorf("wait for earlier commits: %w", context.Cause(ctx))
	}
	defer func() { w.turn <- struct{}{} }()
	if w.broken != nil {
		return w.broken
	}
	if parts := chunks(ops, w.l.o.MaxCommit); len(parts) > 1 {
		return w.commitLarge(ctx, ops, c)
	}
	return w.transact(ctx, ops, c, 0)
}
