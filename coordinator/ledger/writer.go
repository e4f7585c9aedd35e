package ledger

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/mutant"
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
	// turn holds one token, whose holder owns the fields below.
	turn chan struct{}
	// head is the revision of the shard's last commit.
	head int64
	// broken is the reason why nothing more can be written.
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

// commit is the record of a transaction about itself.
type commit struct {
	// Nonce identifies the transaction.
	Nonce string `json:"nonce"`
	Epoch int64  `json:"epoch"`
	// Redo is the number of chunks of a complete redo log that must be applied.
	Redo int `json:"redo,omitempty"`
}

// Lead returns a writer for the leader that holds the fence, after completing what an
// earlier leader committed but did not apply. Read the ledger after Lead, not before.
// The error wraps ErrFenced if the fence is not held, and ErrUnfinished if a restore has
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
// existing study, if the name is in use.
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

// transact executes one fenced transaction, and sends it again until its outcome is
// known or ctx ends.
func (w *Writer) transact(ctx context.Context, ops []op, c *condition, redo int) error {
	if w.breakOff != nil {
		if err := w.breakOff(); err != nil {
			return err
		}
	}
	me := commit{Nonce: rand.Text(), Epoch: w.fence.Revision, Redo: redo}
	raw, err := json.Marshal(me)
	if err != nil {
		return fmt.Errorf("encode the commit's record: %w", err)
	}
	then := append(nested(ops, w.l.o.Prefix), put(w.l.commitKey(), raw))
	orElse := []clientv3.Op{clientv3.OpGet(w.fence.Key), clientv3.OpGet(w.l.commitKey())}
	if c != nil {
		orElse = append(orElse, clientv3.OpGet(c.key))
	}
	resp, unsure, err := w.l.send(ctx, w.fences(c), then, orElse)
	switch {
	case err == nil && resp.Succeeded:
		w.head = resp.Header.Revision
		return nil
	case err == nil:
		return w.refused(resp, me, c, unsure)
	case errors.Is(err, ErrNoSpace):
		return w.readBack(ctx, me, unsure, err)
	case unsure:
		return w.breakDown(err)
	default:
		return err
	}
}

// nestedOps is how many operations each transaction inside another one has. etcd's limit
// of 128 is for those side by side, less as many as there are around them.
const nestedOps = 64

// nested returns the operations for a transaction. If there are many, they are inside
// further transactions, which have no condition of their own: all of them are stored at
// once or none is. A commit takes as long as a sync of etcd's disk, so it should hold all
// that there is to store.
func nested(ops []op, prefix string) []clientv3.Op {
	all := make([]clientv3.Op, 0, len(ops)+1)
	for _, o := range ops {
		all = append(all, o.etcd(prefix))
	}
	if len(all) < MaxOps {
		return all
	}
	var groups []clientv3.Op
	for group := range slices.Chunk(all, nestedOps) {
		groups = append(groups, clientv3.OpTxn(nil, group, nil))
	}
	return groups
}

// readBack resolves a transaction that was answered with ErrNoSpace: etcd gives this
// answer if it refused the transaction, but also if it stored it as the last one that
// fitted.
func (w *Writer) readBack(ctx context.Context, me commit, unsure bool, noSpace error) error {
	resp, err := w.l.client.Get(ctx, w.l.commitKey())
	if err != nil {
		return w.breakDown(fmt.Errorf("%w; read back: %w", noSpace, err))
	}
	last, head, err := lastCommit(resp.Kvs)
	switch {
	case err != nil:
		return w.breakDown(err)
	case last.Nonce == me.Nonce:
		w.head = head
		return nil
	case unsure: // an earlier copy may still arrive
		return w.breakDown(noSpace)
	default:
		return noSpace
	}
}

// breakDown ends the writer, as its last write may have been stored. The cause is not
// wrapped: a caller that waits for space (ErrNoSpace) would wait forever.
func (w *Writer) breakDown(cause error) error {
	w.broken = fmt.Errorf("%w: %s", ErrUnknown, cause.Error())
	return w.broken
}

func (w *Writer) fences(c *condition) []clientv3.Cmp {
	var cmps []clientv3.Cmp
	if !w.unfenced && mutant.On(mutant.LedgerEpoch) {
		cmps = append(cmps, clientv3.Compare(clientv3.CreateRevision(w.fence.Key), "=", w.fence.Revision))
	}
	if !w.unordered && mutant.On(mutant.LedgerOrder) {
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(w.l.commitKey()), "=", w.head))
	}
	if c != nil {
		cmps = append(cmps, clientv3.Compare(clientv3.CreateRevision(c.key), "=", 0))
	}
	return cmps
}

// refused determines why a transaction's comparison failed.
func (w *Writer) refused(resp *clientv3.TxnResponse, me commit, c *condition, unsure bool) error {
	last, head, err := lastCommit(resp.Responses[1].GetResponseRange().Kvs)
	if err != nil {
		return err
	}
	if last.Nonce == me.Nonce { // an earlier copy of this one was stored
		w.head = head
		return nil
	}
	if !holds(resp.Responses[0].GetResponseRange().Kvs, w.fence) {
		w.broken = fmt.Errorf("%w: %s was not created at revision %d", ErrFenced, w.fence.Key, w.fence.Revision)
		if unsure {
			w.broken = fmt.Errorf("%w, and %w", w.broken, ErrUnknown)
		}
		return w.broken
	}
	if head != w.head {
		w.broken = fmt.Errorf("%w: another writer of the same epoch made commit %s", ErrUnknown, last.Nonce)
		return w.broken
	}
	holder := "?"
	if c != nil {
		if kvs := resp.Responses[2].GetResponseRange().Kvs; len(kvs) == 1 {
			var n nameRecord
			if decode(kvs[0], &n) == nil {
				holder = n.ID
			}
		}
		return fmt.Errorf("%w: %s belongs to study %s", ErrNameTaken, c.name, holder)
	}
	return errors.New("etcd refused a transaction whose comparisons all hold")
}

func holds(kvs []*mvccpb.KeyValue, f Fence) bool {
	return len(kvs) == 1 && kvs[0].CreateRevision == f.Revision
}

// lastCommit returns the shard's commit record and its revision, both zero if nothing
// was ever committed.
func lastCommit(kvs []*mvccpb.KeyValue) (commit, int64, error) {
	var c commit
	if len(kvs) == 0 {
		return c, 0, nil
	}
	err := decode(kvs[0], &c)
	return c, kvs[0].ModRevision, err
}
