package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// opOverhead is the size of an operation in a request, in bytes, besides its key and
// its value: a generous estimate of protobuf's framing.
const opOverhead = 64

// Batch collects records to be stored together, keeping the last version of each. The
// zero Batch is empty and ready for use. It is not safe for concurrent use. Records are
// encoded when they are put, so later changes to them have no effect.
type Batch struct {
	ops     []op
	index   map[string]int
	cursors map[messaging.Stream]messaging.Cursor
	deleted map[string]bool
	bytes   int
	err     error
}

// op is a put, or a deletion if Value is nil. Keys are relative to the prefix.
type op struct {
	Key   string          `json:"k"`
	Value json.RawMessage `json:"v,omitempty"`
	// End extends a deletion to the keys from Key up to End.
	End string `json:"e,omitempty"`
}

func (o op) size() int { return len(o.Key) + len(o.Value) + len(o.End) + opOverhead }

func (o op) etcd(prefix string) clientv3.Op {
	switch {
	case o.Value != nil:
		return clientv3.OpPut(prefix+o.Key, string(o.Value))
	case o.End != "":
		return clientv3.OpDelete(prefix+o.Key, clientv3.WithRange(prefix+o.End))
	default:
		return clientv3.OpDelete(prefix + o.Key)
	}
}

// PutStudy stores a study's specification.
func (b *Batch) PutStudy(s *record.Study) { b.put(s.ID, specLeaf, s) }

// PutStatus stores a study's status.
func (b *Batch) PutStatus(id string, s *record.Status) { b.put(id, statusLeaf, s) }

// PutModel stores the state of a study's optimiser.
func (b *Batch) PutModel(id string, m *record.Model) { b.put(id, modelLeaf, m) }

// PutTrial stores a trial of a study.
func (b *Batch) PutTrial(id string, t *record.Trial) {
	b.put(id, strings.TrimPrefix(trialKey(id, t.Number), studyDir(id)), t)
}

// PutCursor stores the leader's position in a stream.
func (b *Batch) PutCursor(s messaging.Stream, c messaging.Cursor) {
	if b.cursors == nil {
		b.cursors = map[messaging.Stream]messaging.Cursor{}
	}
	b.cursors[s] = c
}

// DeleteStudy deletes all of a study's records and frees its name. It drops the study's
// records in the batch, and those put afterwards: an id is never used again.
func (b *Batch) DeleteStudy(id, name string) {
	dir := studyDir(id)
	kept := b.ops[:0]
	b.index, b.bytes = map[string]int{}, 0
	for _, o := range b.ops {
		if !strings.HasPrefix(o.Key, dir) {
			b.index[o.Key] = len(kept)
			b.bytes += o.size()
			kept = append(kept, o)
		}
	}
	b.ops = kept
	if b.deleted == nil {
		b.deleted = map[string]bool{}
	}
	b.deleted[id] = true
	b.set(op{Key: dir, End: prefixEnd(dir)})
	b.set(op{Key: nameKey(name)})
}

// Err returns why the batch cannot be stored. It wraps ErrTooLarge if a record is
// larger than a transaction.
func (b *Batch) Err() error { return b.err }

// Add adds the records of another batch.
func (b *Batch) Add(other *Batch) {
	for _, o := range other.ops {
		if id, _, ok := strings.Cut(strings.TrimPrefix(o.Key, studiesDir), "/"); !ok || !b.deleted[id] {
			b.set(o)
		}
	}
	b.err = errors.Join(b.err, other.err)
}

// Len returns the number of operations in the batch.
func (b *Batch) Len() int { return len(b.ops) + len(b.cursors) }

// Full reports whether the batch fills a transaction and should be committed. A batch
// may grow further, but is then written twice.
func (b *Batch) Full() bool { return b.Len() >= MaxOps/2 || b.bytes >= MaxBytes/2 }

// put encodes a record of a study.
func (b *Batch) put(id, leaf string, v any) {
	if b.deleted[id] {
		return
	}
	if id == "" || strings.Contains(id, "/") {
		b.err = errors.Join(b.err, fmt.Errorf("study id %q must not be empty or contain a slash", id))
		return
	}
	b.encode(studyKey(id, leaf), v)
}

func (b *Batch) encode(key string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		b.err = errors.Join(b.err, fmt.Errorf("encode %s: %w", key, err))
		return
	}
	if len(raw)+len(key)+opOverhead > MaxBytes {
		b.err = errors.Join(b.err, fmt.Errorf("%w: %s has %d bytes, more than %d", ErrTooLarge, key, len(raw), MaxBytes))
		return
	}
	b.set(op{Key: key, Value: raw})
}

func (b *Batch) set(o op) {
	if b.index == nil {
		b.index = map[string]int{}
	}
	if i, ok := b.index[o.Key]; ok {
		b.bytes += o.size() - b.ops[i].size()
		b.ops[i] = o
		return
	}
	b.index[o.Key] = len(b.ops)
	b.ops = append(b.ops, o)
	b.bytes += o.size()
}

// all returns the operations. Statuses come after all other records of the studies, so
// that a reader of a partly written batch does not see a study's end before its last
// trials; the shard's cursors come last.
func (b *Batch) all(shard string) ([]op, error) {
	if b.err != nil {
		return nil, b.err
	}
	ops := make([]op, 0, b.Len())
	for _, statuses := range []bool{false, true} {
		for _, o := range b.ops {
			if strings.HasSuffix(o.Key, "/"+statusLeaf) == statuses {
				ops = append(ops, o)
			}
		}
	}
	for _, s := range []messaging.Stream{messaging.StreamClaim, messaging.StreamResult} {
		c, ok := b.cursors[s]
		if !ok {
			continue
		}
		raw, err := json.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("encode the cursor of %s: %w", s, err)
		}
		ops = append(ops, op{Key: "cursors/" + shard + "/" + string(s), Value: raw})
	}
	return ops, nil
}

// chunks splits operations into groups that each fit into a transaction of maxOps
// operations.
func chunks(ops []op, maxOps int) [][]op {
	var out [][]op
	start, size := 0, 0
	for i, o := range ops {
		if i > start && (i-start == maxOps || size+o.size() > MaxBytes) {
			out = append(out, ops[start:i])
			start, size = i, 0
		}
		size += o.size()
	}
	if start < len(ops) {
		out = append(out, ops[start:])
	}
	return out
}
