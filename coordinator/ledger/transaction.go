package ledger

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/internal/base/mutant"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// commit is the record of a transaction about itself.
type commit struct {
	// Nonce identifies the transaction.
	Nonce string `json:"nonce"`
	Epoch int64  `json:"epoch"`
	// Redo is the number of chunks of a complete redo log that must be applied.
	Redo int `json:"redo,omitempty"`
}

// transact executes one fenced transaction, and sends it again until its outcome is
// known or ctx ends. It compares the epoch, so a leader that was replaced stores nothing, even if
// it does not know yet that it was. If the outcome stays unknown, the writer is broken: the next
// leader reads what was stored.
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

// breakDown ends the writer, as its last write may have been stored. Later writes would be made by a leader whose
// memory may differ from the ledger. The cause is not
// wrapped: a caller that waits for space (ErrNoSpace) would wait forever.
func (w *Writer) breakDown(cause error) error {
	w.broken = fmt.Errorf("%w: %s", ErrUnknown, cause.Error())
	return w.broken
}

// fences returns what must hold for the transaction to be executed: the leader's key still has the
// epoch, so that no later leader was elected; the last commit is this writer's own, so that a copy
// of an earlier transaction that arrives late changes nothing; and the name, if there is one, is
// free.
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

// refused determines why a transaction's comparison failed. The nonce comes first: if an earlier copy of this
// transaction was stored, that has itself made the comparisons of this one fail. Then comes the fence. With a lost fence,
// an earlier copy that was not answered may have been stored before the next leader's commits, which hide its nonce: that
// is unknown as well. If all of them hold, only the condition is left.
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

// holds reports whether a key that was read is the fence.
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
