package memetcd

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	etcdlease "go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// etcdStore holds the versions of all keys, and the changes since the last compaction.
type etcdStore struct {
	revision  int64
	compacted int64
	keys      []string // that have versions, in order
	versions  map[string][]etcdVersion
	changes   []etcdChange
}

// etcdVersion is a key's state from a revision on; a nil kv is a deletion.
type etcdVersion struct {
	revision int64
	kv       *mvccpb.KeyValue
}

// etcdChange is all events of a revision.
type etcdChange struct {
	revision int64
	events   []*mvccpb.Event
}

// newStore returns an empty store. As in etcd, the first change has revision 2.
func newStore() *etcdStore { return &etcdStore{revision: 1, versions: map[string][]etcdVersion{}} }

// keyRange is a request's range of keys.
type keyRange struct{ from, to string }

// within returns the range of a request: a single key if end is empty, all keys from key
// on if it is a zero byte.
func within(key, end []byte) keyRange {
	switch {
	case len(end) == 0:
		return keyRange{string(key), string(key) + "\x00"}
	case len(end) == 1 && end[0] == 0:
		return keyRange{from: string(key)}
	default:
		return keyRange{string(key), string(end)}
	}
}

// withinRead is within for etcd's code, where the end of all keys from key on is empty, not nil.
func withinRead(key, end []byte) keyRange {
	if end != nil && len(end) == 0 {
		return keyRange{from: string(key)}
	}
	return within(key, end)
}

func (r keyRange) has(key string) bool { return key >= r.from && (r.to == "" || key < r.to) }

// span returns the keys of a range that have versions.
func (s *etcdStore) span(r keyRange) []string {
	from, _ := slices.BinarySearch(s.keys, r.from)
	to := len(s.keys)
	if r.to != "" {
		to, _ = slices.BinarySearch(s.keys, r.to)
	}
	return s.keys[from:max(from, to)]
}

// at returns a key's value at a revision; nil for none.
func (s *etcdStore) at(key string, revision int64) *mvccpb.KeyValue {
	versions := s.versions[key]
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].revision <= revision {
			return versions[i].kv
		}
	}
	return nil
}

// last returns a key's present value, also one of an unfinished transaction; nil for none.
func (s *etcdStore) last(key string) *mvccpb.KeyValue {
	if v := s.versions[key]; len(v) > 0 {
		return v[len(v)-1].kv
	}
	return nil
}

// etcdWriting is a transaction that writes at one revision. It implements mvcc.TxnWrite.
type etcdWriting struct {
	s      *Server
	events []*mvccpb.Event
}

// Rev implements mvcc.ReadView.
func (w *etcdWriting) Rev() int64 { return w.s.store.revision }

// FirstRev implements mvcc.ReadView.
func (w *etcdWriting) FirstRev() int64 { return w.s.store.compacted }

// revision is that of the transaction's changes.
func (w *etcdWriting) revision() int64 { return w.Rev() + 1 }

// present is the revision at which the transaction reads.
func (w *etcdWriting) present() int64 {
	if len(w.events) > 0 {
		return w.revision()
	}
	return w.Rev()
}

// Range implements mvcc.ReadView.
func (w *etcdWriting) Range(_ context.Context, key, end []byte, o mvcc.RangeOptions) (*mvcc.RangeResult, error) {
	s, out := w.s.store, &mvcc.RangeResult{Rev: w.present()}
	switch {
	case o.Rev > out.Rev:
		return nil, mvcc.ErrFutureRev
	case o.Rev > 0 && o.Rev < s.compacted:
		return nil, mvcc.ErrCompacted
	}
	for _, key := range s.span(withinRead(key, end)) {
		kv := s.at(key, cmp.Or(max(o.Rev, 0), out.Rev))
		if kv == nil {
			continue
		}
		out.Count++
		if o.CountOnly || o.Limit > 0 && len(out.KVs) == int(o.Limit) {
			continue
		}
		if o.FastKeysOnly { // etcd's code clears the values that it is given
			kv = &mvccpb.KeyValue{Key: kv.Key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version, Lease: kv.Lease}
		}
		out.KVs = append(out.KVs, kv)
	}
	return out, nil
}

func (w *etcdWriting) set(key string, kv *mvccpb.KeyValue) {
	s := w.s.store
	if i, ok := slices.BinarySearch(s.keys, key); !ok {
		s.keys = slices.Insert(s.keys, i, key)
	}
	s.versions[key] = append(s.versions[key], etcdVersion{w.revision(), kv})
	e := &mvccpb.Event{Type: mvccpb.Event_PUT, Kv: kv}
	if kv == nil {
		e = &mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: w.revision()}}
	}
	w.events = append(w.events, e)
}

// Put implements mvcc.WriteView.
func (w *etcdWriting) Put(key, value []byte, lease etcdlease.LeaseID) int64 {
	kv := &mvccpb.KeyValue{Key: slices.Clone(key), Value: slices.Clone(value), CreateRevision: w.revision(), ModRevision: w.revision(),
		Version: 1, Lease: int64(lease)}
	if old := w.s.store.last(string(key)); old != nil {
		kv.CreateRevision, kv.Version = old.CreateRevision, old.Version+1
	}
	w.set(string(key), kv)
	return w.revision()
}

// DeleteRange implements mvcc.WriteView.
func (w *etcdWriting) DeleteRange(key, end []byte) (n, revision int64) {
	for _, key := range slices.Clone(w.s.store.span(withinRead(key, end))) {
		if w.s.store.last(key) != nil {
			w.set(key, nil)
			n++
		}
	}
	return n, w.present()
}

// Changes implements mvcc.TxnWrite.
func (w *etcdWriting) Changes() (all []*mvccpb.KeyValue) {
	for _, e := range w.events {
		all = append(all, e.Kv)
	}
	return all
}

// End implements mvcc.TxnRead. It makes the changes visible and tells the watchers.
func (w *etcdWriting) End() {
	if len(w.events) == 0 {
		return
	}
	w.s.store.revision++
	w.s.store.changes = append(w.s.store.changes, etcdChange{w.s.store.revision, w.events})
	for _, e := range w.events {
		if w.s.opts.Stored != nil && e.Type == mvccpb.Event_PUT {
			w.s.opts.Stored(string(e.Kv.Key), e.Kv.Value)
		}
	}
	w.s.wake()
}

// compact drops the versions of keys that only reads before a revision need.
func (s *etcdStore) compact(revision int64) error {
	switch {
	case revision <= s.compacted:
		return rpctypes.ErrGRPCCompacted
	case revision > s.revision:
		return rpctypes.ErrGRPCFutureRev
	}
	s.compacted = revision
	s.keys = slices.DeleteFunc(s.keys, func(key string) bool {
		versions, keep := s.versions[key], 0
		for i, v := range versions {
			if v.revision <= revision {
				keep = i
			}
		}
		if versions[keep].kv == nil && versions[keep].revision <= revision {
			keep++
		}
		if s.versions[key] = slices.Clone(versions[keep:]); keep == len(versions) {
			delete(s.versions, key)
		}
		return keep == len(versions)
	})
	s.changes = slices.DeleteFunc(s.changes, func(c etcdChange) bool { return c.revision < revision })
	return nil
}

// checkOverlap refuses a transaction that changes a key twice, as etcd does.
func checkOverlap(ops []*etcdserverpb.RequestOp) error {
	var deleted []keyRange
	for _, op := range ops {
		if d := op.GetRequestDeleteRange(); d != nil {
			deleted = append(deleted, within(d.Key, d.RangeEnd))
		}
	}
	puts := map[string]bool{}
	for _, op := range ops {
		p := op.GetRequestPut()
		if p == nil {
			continue
		}
		key := strings.Clone(string(p.Key))
		if puts[key] || slices.ContainsFunc(deleted, func(r keyRange) bool { return r.has(key) }) {
			return rpctypes.ErrGRPCDuplicateKey
		}
		puts[key] = true
	}
	return nil
}
