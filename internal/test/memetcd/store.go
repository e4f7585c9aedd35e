package memetcd

import (
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// store holds the versions of all keys, and the changes since the last compaction.
type store struct {
	revision  int64
	compacted int64
	keys      []string // that have versions, in order
	versions  map[string][]version
	changes   []change
}

// version is a key's state from a revision on; a nil kv is a deletion.
type version struct {
	revision int64
	kv       *mvccpb.KeyValue
}

// change is all events of a revision.
type change struct {
	revision int64
	events   []*mvccpb.Event
}

// newStore returns an empty store. As in etcd, the first change has revision 2.
func newStore() *store { return &store{revision: 1, versions: map[string][]version{}} }

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

func (r keyRange) has(key string) bool { return key >= r.from && (r.to == "" || key < r.to) }

// span returns the keys of a range that have versions.
func (s *store) span(r keyRange) []string {
	from, _ := slices.BinarySearch(s.keys, r.from)
	to := len(s.keys)
	if r.to != "" {
		to, _ = slices.BinarySearch(s.keys, r.to)
	}
	return s.keys[from:max(from, to)]
}

// at returns a key's value at a revision; nil for none.
func (s *store) at(key string, revision int64) *mvccpb.KeyValue {
	versions := s.versions[key]
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].revision <= revision {
			return versions[i].kv
		}
	}
	return nil
}

// last returns a key's present value, also one of an unfinished transaction; nil for none.
func (s *store) last(key string) *mvccpb.KeyValue {
	if v := s.versions[key]; len(v) > 0 {
		return v[len(v)-1].kv
	}
	return nil
}

// readable returns the error of reads at a revision, if any.
func (s *store) readable(revision int64) error {
	switch {
	case revision > s.revision:
		return rpctypes.ErrGRPCFutureRev
	case revision > 0 && revision < s.compacted:
		return rpctypes.ErrGRPCCompacted
	}
	return nil
}

// readRange answers a range request. present is the revision to read at if the request has none.
func (s *store) readRange(r *etcdserverpb.RangeRequest, present int64) (*etcdserverpb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	if err := s.readable(r.Revision); err != nil {
		return nil, err
	}
	revision := present
	if r.Revision > 0 {
		revision = r.Revision
	}
	var kvs []*mvccpb.KeyValue
	count := int64(0)
	for _, key := range s.span(within(r.Key, r.RangeEnd)) {
		kv := s.at(key, revision)
		if kv == nil {
			continue
		}
		count++
		if kv.ModRevision >= r.MinModRevision {
			kvs = append(kvs, kv)
		}
	}
	out := &etcdserverpb.RangeResponse{Count: count}
	if r.CountOnly {
		return out, nil
	}
	if r.SortOrder == etcdserverpb.RangeRequest_DESCEND {
		slices.Reverse(kvs)
	}
	if r.Limit > 0 && int64(len(kvs)) > r.Limit {
		kvs, out.More = kvs[:r.Limit], true
	}
	for _, kv := range kvs {
		if r.KeysOnly {
			kv = &mvccpb.KeyValue{Key: kv.Key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version, Lease: kv.Lease}
		}
		out.Kvs = append(out.Kvs, kv)
	}
	return out, nil
}

// checkRange refuses requests that etcd refuses, and those that are not implemented.
func checkRange(r *etcdserverpb.RangeRequest) error {
	switch {
	case len(r.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.SortTarget != etcdserverpb.RangeRequest_KEY, r.Serializable, r.MaxModRevision != 0, r.MinCreateRevision != 0, r.MaxCreateRevision != 0:
		return unimplemented("a range that is sorted by another field than the key, serializable, or bounded by another revision than the least of modification")
	}
	return nil
}

// writing is a transaction that writes at one revision.
type writing struct {
	s      *store
	events []*mvccpb.Event
}

// revision is that of the transaction's changes.
func (w *writing) revision() int64 { return w.s.revision + 1 }

// present is the revision at which the transaction reads.
func (w *writing) present() int64 {
	if len(w.events) > 0 {
		return w.revision()
	}
	return w.s.revision
}

func (w *writing) set(key string, kv *mvccpb.KeyValue) {
	s := w.s
	if i, ok := slices.BinarySearch(s.keys, key); !ok {
		s.keys = slices.Insert(s.keys, i, key)
	}
	s.versions[key] = append(s.versions[key], version{w.revision(), kv})
	e := &mvccpb.Event{Type: mvccpb.Event_PUT, Kv: kv}
	if kv == nil {
		e = &mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: w.revision()}}
	}
	w.events = append(w.events, e)
}

// put stores a value under a lease; 0 for none.
func (w *writing) put(key, value []byte, lease int64) {
	kv := &mvccpb.KeyValue{Key: slices.Clone(key), Value: slices.Clone(value), CreateRevision: w.revision(), ModRevision: w.revision(), Version: 1, Lease: lease}
	if old := w.s.last(string(key)); old != nil {
		kv.CreateRevision, kv.Version = old.CreateRevision, old.Version+1
	}
	w.set(string(key), kv)
}

// remove deletes the keys of a range and returns how many there were.
func (w *writing) remove(r keyRange) (n int64) {
	for _, key := range slices.Clone(w.s.span(r)) {
		if w.s.last(key) != nil {
			w.set(key, nil)
			n++
		}
	}
	return n
}

// finish makes the changes visible. It returns false if there are none.
func (w *writing) finish() bool {
	if len(w.events) == 0 {
		return false
	}
	w.s.revision++
	w.s.changes = append(w.s.changes, change{w.s.revision, w.events})
	return true
}

// compact drops the versions of keys that only reads before a revision need.
func (s *store) compact(revision int64) error {
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
	s.changes = slices.DeleteFunc(s.changes, func(c change) bool { return c.revision < revision })
	return nil
}

// compare evaluates a comparison of a transaction.
func (s *store) compare(c *etcdserverpb.Compare) (bool, error) {
	if len(c.RangeEnd) > 0 || c.Result != etcdserverpb.Compare_EQUAL {
		return false, unimplemented("a comparison of a range, or for something else than equality")
	}
	kv := s.last(string(c.Key))
	if kv == nil {
		kv = &mvccpb.KeyValue{}
	}
	switch v := c.TargetUnion.(type) {
	case *etcdserverpb.Compare_CreateRevision:
		return kv.CreateRevision == v.CreateRevision, nil
	case *etcdserverpb.Compare_ModRevision:
		return kv.ModRevision == v.ModRevision, nil
	default:
		return false, unimplemented("a comparison of something else than a revision")
	}
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
