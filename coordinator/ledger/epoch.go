package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrUnfinished means that a restore into the ledger was interrupted, so that a part of
// it is missing.
var ErrUnfinished = errors.New("a restore into this etcd did not finish: run fantasia restore again, with --force")

// A leader's epoch is the create-revision of its key plus the shard's base, which is 0
// unless the ledger was restored. Revisions of another etcd, or of one that was restored
// from a snapshot, can be lower than the epochs that the broker has seen. The first
// leader after a restore raises the base, so that its epoch is above them.

// baseRecord is the value of epochs/<shard>.
type baseRecord struct {
	Base int64 `json:"base"`
}

// baseOf returns the base that was read; 0 if there is none.
func baseOf(kvs []*mvccpb.KeyValue) (int64, error) {
	var b baseRecord
	if len(kvs) == 0 {
		return 0, nil
	}
	err := decode(kvs[0], &b)
	return b.Base, err
}

// restoredRecord is the value of restored/<shard>.
type restoredRecord struct {
	// Done is false while the records are being written.
	Done bool      `json:"done"`
	At   time.Time `json:"at"`
}

// recall reads the epoch's base, and whether the ledger was restored.
func (w *Writer) recall(epoch, restored []*mvccpb.KeyValue) error {
	var err error
	if w.base, err = baseOf(epoch); err != nil {
		return err
	}
	if len(restored) == 1 {
		var r restoredRecord
		if err := decode(restored[0], &r); err != nil {
			return err
		}
		if !r.Done {
			return fmt.Errorf("%w (it began %s)", ErrUnfinished, r.At.Format(time.RFC3339))
		}
		w.restored = true
	}
	return nil
}

// Epoch returns the leader's epoch, which is larger for every later leader of the ledger,
// also after a restore.
func (w *Writer) Epoch() int64 { return w.base + w.fence.Revision }

// Restored reports whether this is the first leader since the ledger was restored. It
// MUST call Raise if the broker has seen a later epoch, and then EndRestore.
func (w *Writer) Restored() bool { return w.restored }

// Raise makes the epoch of this leader, and of all later ones, larger than above. It stores a larger base before
// it returns nil; later leaders add larger revisions to the same base. Only a leader of a restored ledger may call
// it. For any other, a higher epoch that the broker has seen is that of a later leader.
func (w *Writer) Raise(ctx context.Context, above int64) error {
	base := max(w.base, above+1-w.fence.Revision)
	raw, err := json.Marshal(baseRecord{base})
	if err != nil {
		return fmt.Errorf("encode the epoch's base: %w", err)
	}
	if err := w.store(ctx, []op{{Key: w.relative(w.l.epochKey()), Value: raw}}, nil); err != nil {
		return fmt.Errorf("raise the epoch above %d: %w", above, err)
	}
	w.base = base
	return nil
}

// EndRestore records that a leader has taken over what was restored. It MUST come AFTER the broker has taken the
// epoch: only a leader of a restored ledger may raise it, and one that dies in between must be able to do so again.
func (w *Writer) EndRestore(ctx context.Context) error {
	if err := w.store(ctx, []op{{Key: w.relative(w.l.restoredKey())}}, nil); err != nil {
		return fmt.Errorf("settle the restored ledger: %w", err)
	}
	w.restored = false
	return nil
}

// Behind reports whether a leader that etcd elects now has an epoch that is not above seen,
// and may not raise it, since the ledger was not restored.
func (l *Ledger) Behind(ctx context.Context, seen int64) (bool, error) {
	resp, err := l.client.Txn(ctx).Then(clientv3.OpGet(l.epochKey()), clientv3.OpGet(l.restoredKey())).Commit()
	if err != nil {
		return false, fmt.Errorf("read the epoch's base: %w", err)
	}
	if len(resp.Responses[1].GetResponseRange().Kvs) > 0 {
		return false, nil
	}
	base, err := baseOf(resp.Responses[0].GetResponseRange().Kvs)
	if err != nil {
		return false, err
	}
	// The leader's key gets the next revision at the earliest.
	return base+resp.Header.Revision < seen, nil
}

// HasFence reports whether the leader still has its fence. The answer is old when it arrives; only a transaction that
// compares the fence is safe to rely on.
func (w *Writer) HasFence(ctx context.Context) (bool, error) {
	resp, err := w.l.client.Get(ctx, w.fence.Key)
	if err != nil {
		return false, fmt.Errorf("read the fence: %w", err)
	}
	return holds(resp.Kvs, w.fence), nil
}

// Contents counts the records of a ledger.
type Contents struct {
	Keys    int `json:"keys"`
	Studies int `json:"studies"`
	Trials  int `json:"trials"`
}

// String says how much there is, for people.
func (c Contents) String() string {
	return fmt.Sprintf("%s, %s", plural(c.Studies, "study", "studies"), plural(c.Trials, "trial", "trials"))
}

func plural(n int, one, many string) string {
	if n != 1 {
		one = many
	}
	return fmt.Sprintf("%d %s", n, one)
}

// count adds a key, relative to the prefix.
func (c *Contents) count(key string) {
	c.Keys++
	rest, ok := cutStudy(key)
	switch {
	case ok && rest == specLeaf:
		c.Studies++
	case ok && strings.HasPrefix(rest, trialsDir) && rest != trialsDir:
		c.Trials++
	}
}

// get reads a record that is not a study's; it returns false if there is none.
func (l *Ledger) get(ctx context.Context, key string, v any) (bool, error) {
	resp, err := l.client.Get(ctx, key, clientv3.WithLimit(1))
	if err != nil {
		return false, fmt.Errorf("read %s: %w", key, err)
	}
	if len(resp.Kvs) == 0 {
		return false, nil
	}
	return true, decode(resp.Kvs[0], v)
}
