package ledger

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// opOverhead is the size of an operation in a request, in bytes, besides its key and
// its value: a generous estimate of protobuf's framing and of the record's seal.
const opOverhead = 64

// Batch collects records to be stored together, keeping the last version of each. The
// zero Batch is empty and ready for use. It is not safe for concurrent use. Records are
// encoded when they are put, so later changes to them have no effect.
//
// A record that cannot be stored spoils the whole batch: see Err. So a caller who collects records of
// several studies MUST look at those of each BEFORE it adds them, or one study would hold up all others.
type Batch struct {
	ops     []op
	index   map[string]int
	cursors map[messaging.Stream]messaging.Cursor
	deleted map[string]bool
	traced  time.Time
	// ends are the curves that were cut, by their directory: the key from which on
	// nothing may be left. Operations of a transaction must not overlap.
	ends  map[string]string
	bytes int
	err   error
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
		return put(prefix+o.Key, o.Value)
	case o.End != "":
		return clientv3.OpDelete(prefix+o.Key, clientv3.WithRange(prefix+o.End))
	default:
		return clientv3.OpDelete(prefix + o.Key)
	}
}

// PutStudy stores a study's specification, and apart from it the part that lists show: a specification can have a
// megabyte, and a list of a thousand studies must not read a thousand of them.
func (b *Batch) PutStudy(s *record.Study) {
	b.put(s.ID, specLeaf, s)
	if at, ok := b.index[studyKey(s.ID, specLeaf)]; ok {
		b.put(s.ID, headLeaf, headOf(s, int64(len(b.ops[at].Value))))
	}
}

// head is the part of a study's specification that lists show, with the specification's size.
type head struct {
	record.Study
	Bytes int64 `json:"bytes"`
}

func headOf(s *record.Study, bytes int64) *head {
	h := &head{*s, bytes}
	h.Definition = *s.Definition.Head()
	return h
}

// Size returns how many bytes a study's specification takes in the ledger; 0 if it cannot be stored.
func Size(s *record.Study) int64 {
	raw, err := marshal(s)
	if err != nil {
		return 0
	}
	return int64(len(raw))
}

// PutStatus stores a study's status.
func (b *Batch) PutStatus(id string, s *record.Status) { b.put(id, statusLeaf, s) }

// PutModel stores the state of a study's optimiser.
func (b *Batch) PutModel(id string, m *record.Model) { b.put(id, modelLeaf, m) }

// PutTrial stores a trial of a study.
func (b *Batch) PutTrial(id string, t *record.Trial) {
	b.put(id, strings.TrimPrefix(trialKey(id, t.Number), studyDir(id)), t)
}

// PutCursor stores the leader's position in a stream. It MUST be in the batch that has what the messages up to there
// have changed: apart, a crash between the two would apply them twice or never.
func (b *Batch) PutCursor(s messaging.Stream, c messaging.Cursor) {
	if b.cursors == nil {
		b.cursors = map[messaging.Stream]messaging.Cursor{}
	}
	b.cursors[s] = c
}

// PutTraced stores the time until which trials were folded whose spans have been exported.
func (b *Batch) PutTraced(until time.Time) { b.traced = until }

// Cursor returns the position in a stream that the batch stores.
func (b *Batch) Cursor(s messaging.Stream) (messaging.Cursor, bool) {
	c, ok := b.cursors[s]
	return c, ok
}

// PutCurve stores what changed of a trial's curve.
func (b *Batch) PutCurve(id string, c *curve.Change) {
	if !b.accepts(id) {
		return
	}
	if c.Cut {
		b.cut(curveDir(id, c.Trial), segmentKey(id, c.Trial, c.Length))
	}
	for _, s := range c.Segments {
		b.raw(segmentKey(id, c.Trial, s.Number), s.Data)
	}
}

// cut deletes a curve from a key on, except for what is put later. It drops what is in the batch from there on, since
// etcd refuses a transaction that puts and deletes the same key.
func (b *Batch) cut(dir, from string) {
	if b.ends == nil {
		b.ends = map[string]string{}
	}
	b.ends[dir] = from
	b.drop(func(key string) bool { return strings.HasPrefix(key, dir) && key >= from })
}

// DeleteStudy deletes all of a study's records and frees its name. It drops the study's
// records in the batch, and those put afterwards: a study comes back from the archive only
// once the batch is stored.
func (b *Batch) DeleteStudy(id, name string) {
	b.Forget(id)
	if b.deleted == nil {
		b.deleted = map[string]bool{}
	}
	b.deleted[id] = true
	b.deleteRecords(id)
	b.set(op{Key: nameKey(name)})
}

// deleteRecords deletes all of a study's records but its name.
func (b *Batch) deleteRecords(id string) {
	for _, dir := range []string{studyDir(id), curvesOf(id)} {
		b.set(op{Key: dir, End: prefixEnd(dir)})
	}
}

// Forget drops what the batch holds of a study.
func (b *Batch) Forget(id string) {
	b.drop(func(key string) bool { return studyOf(key) == id })
	maps.DeleteFunc(b.ends, func(key, _ string) bool { return studyOf(key) == id })
}

// Err returns why the batch cannot be stored. It wraps ErrTooLarge if a record is
// larger than a transaction.
func (b *Batch) Err() error { return b.err }

// Add adds the records and cursors of another batch, which must not delete a study. Records of studies that b deletes
// are left out: they may have been put before the deletion, and would come back.
func (b *Batch) Add(other *Batch) {
	for dir, from := range other.ends {
		if !b.deleted[studyOf(dir)] {
			b.cut(dir, from)
		}
	}
	for _, o := range other.ops {
		if !b.deleted[studyOf(o.Key)] {
			b.set(o)
		}
	}
	for s, c := range other.cursors {
		b.PutCursor(s, c)
	}
	if other.traced.After(b.traced) {
		b.traced = other.traced
	}
	b.err = errors.Join(b.err, other.err)
}

// studyOf returns the id of the study that a record's key is of; "" for other keys.
func studyOf(key string) string {
	for _, dir := range []string{studiesDir, curvesDir} {
		if rest, ok := strings.CutPrefix(key, dir); ok {
			id, _, _ := strings.Cut(rest, "/")
			return id
		}
	}
	return ""
}

// Len returns the number of operations in the batch.
func (b *Batch) Len() int {
	n := len(b.ops) + len(b.ends) + len(b.cursors)
	if !b.traced.IsZero() {
		n++
	}
	return n
}

// Bytes returns about how many bytes the batch stores.
func (b *Batch) Bytes() int { return b.bytes }

// Full reports whether the batch is large enough to be committed. A batch may grow further,
// but is written twice once it is larger than MaxCommit or MaxBytes. A quarter is enough: a
// disk that takes 20 ms for a commit still stores 10,000 records a second, and etcd keeps its last
// 5,000 commits in memory.
func (b *Batch) Full() bool { return b.Len() >= MaxCommit/4 || b.bytes >= MaxBytes/2 }

// put encodes a record of a study.
func (b *Batch) put(id, leaf string, v any) {
	if b.accepts(id) {
		b.encode(studyKey(id, leaf), v)
	}
}

// accepts reports whether records of a study are to be stored.
func (b *Batch) accepts(id string) bool {
	if b.deleted[id] {
		return false
	}
	if id == "" || strings.Contains(id, "/") {
		b.err = errors.Join(b.err, fmt.Errorf("study id %q must not be empty or contain a slash", id))
		return false
	}
	return true
}

func (b *Batch) encode(key string, v any) {
	raw, err := marshal(v)
	if err != nil {
		b.err = errors.Join(b.err, fmt.Errorf("encode %s: %w", key, err))
		return
	}
	b.raw(key, raw)
}

// marshal encodes a record. json.Marshal would check and copy what a record's own
// MarshalJSON returns, although that has made it with json.Marshal.
func marshal(v any) ([]byte, error) {
	if m, ok := v.(json.Marshaler); ok {
		return m.MarshalJSON()
	}
	return json.Marshal(v)
}

// raw puts a record that is encoded.
func (b *Batch) raw(key string, raw []byte) {
	if len(raw)+len(key)+opOverhead > MaxBytes {
		b.err = errors.Join(b.err, fmt.Errorf("%w: %s has %d bytes, more than %d", ErrTooLarge, key, len(raw), MaxBytes))
		return
	}
	b.set(op{Key: key, Value: raw})
}

// drop forgets what was put under some keys.
func (b *Batch) drop(which func(key string) bool) {
	kept := b.ops[:0]
	b.index, b.bytes = map[string]int{}, 0
	for _, o := range b.ops {
		if !which(o.Key) {
			b.index[o.Key] = len(kept)
			b.bytes += o.size()
			kept = append(kept, o)
		}
	}
	b.ops = kept
}

// set adds an operation, which takes the place of an earlier one of its key. A segment that is put behind a cut of its
// curve moves the cut behind itself: see cut.
func (b *Batch) set(o op) {
	if dir := o.Key[:strings.LastIndexByte(o.Key, '/')+1]; o.Value != nil && b.ends[dir] != "" {
		b.ends[dir] = max(b.ends[dir], o.Key+"\x00")
	}
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

// all returns the operations. Specifications come first, since a trial may be a point of a
// space that was edited in the same batch. Statuses come after all other records of the
// studies, so that a reader of a partly written batch does not see a study's end before its
// last trials; the shard's cursors come last.
func (b *Batch) all(shard string) ([]op, error) {
	if b.err != nil {
		return nil, b.err
	}
	place := func(o op) int {
		switch {
		case strings.HasSuffix(o.Key, "/"+specLeaf) && o.Value != nil:
			return 0
		case strings.HasSuffix(o.Key, "/"+statusLeaf):
			return 2
		default:
			return 1
		}
	}
	ops := append(make([]op, 0, b.Len()), b.ops...)
	slices.SortStableFunc(ops, func(x, y op) int { return cmp.Compare(place(x), place(y)) })
	for _, dir := range slices.Sorted(maps.Keys(b.ends)) {
		ops = append(ops, op{Key: b.ends[dir], End: prefixEnd(dir)})
	}
	for _, s := range slices.Sorted(maps.Keys(b.cursors)) {
		raw, err := json.Marshal(b.cursors[s])
		if err != nil {
			return nil, fmt.Errorf("encode the cursor of %s: %w", s, err)
		}
		ops = append(ops, op{Key: "cursors/" + shard + "/" + string(s), Value: raw})
	}
	if !b.traced.IsZero() {
		raw, err := json.Marshal(b.traced)
		if err != nil {
			return nil, fmt.Errorf("encode the time of the last exported spans: %w", err)
		}
		ops = append(ops, op{Key: tracedDir + shard, Value: raw})
	}
	return ops, nil
}

// chunks splits operations into groups that each fit into a transaction of maxOps
// operations. Their order stays: see all. No operation is too large for a group of its own, since raw refuses it.
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
