package etcdfile

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// model checks that what is in the buckets can be what etcd has stored.
type model struct {
	path  string
	valid func(key, value []byte) error

	index     uint64
	main, sub int64 // the last revision
	compacted int64
	// gaps are the revisions that do not follow the one before: whether that is damage is
	// known once the compaction is.
	gaps     []int64
	versions map[string]int64 // the last version of each key, 0 after its deletion
	jumps    []int64          // revisions at which a key's version does not follow its last one
	indexed  bool
}

func (m *model) damage(format string, args ...any) error {
	return &Damage{m.path, fmt.Sprintf(format, args...)}
}

func (m *model) add(bucket, key, value []byte) error {
	switch string(bucket) {
	case "key":
		r, main, sub, err := record(key, value)
		if err != nil {
			return m.damage("%v", err)
		}
		return m.addRecord(r, main, sub)
	case "meta":
		return m.addMeta(string(key), value)
	case "members", "members_removed":
		return m.member(string(bucket), string(key), value)
	case "cluster":
		if string(key) == "clusterVersion" {
			return m.version(string(key), value)
		}
		if !json.Valid(value) {
			return m.damage("the entry %q of bucket %s is not JSON", key, bucket)
		}
	case "lease":
		if len(key) != 8 {
			return m.damage("the entry %x of bucket lease is not a lease's", key)
		}
	}
	return nil
}

// member checks an entry whose key is the id of a member, which etcd reads as a hexadecimal number. A present
// member says the same id in its JSON.
func (m *model) member(bucket, key string, value []byte) error {
	id, err := strconv.ParseUint(key, 16, 64)
	if err != nil {
		return m.damage("the entry %q of bucket %s is not the id of a member", key, bucket)
	}
	if bucket != "members" {
		return nil
	}
	var member struct {
		ID uint64 `json:"id"`
	}
	if err := json.Unmarshal(value, &member); err != nil || member.ID != id {
		return m.damage("the entry %q of bucket %s is %q, want the JSON of this member", key, bucket, value)
	}
	return nil
}

// addMeta takes an entry of the bucket meta.
func (m *model) addMeta(key string, value []byte) error {
	switch key {
	case "consistent_index", "term":
		if len(value) != 8 {
			return m.damage("its %s has %d bytes, want 8", key, len(value))
		}
		if key == "consistent_index" {
			m.index, m.indexed = binary.BigEndian.Uint64(value), true
		}
	case "scheduledCompactRev", "finishedCompactRev":
		if len(value) < 17 {
			return m.damage("its %s has %d bytes, want 17", key, len(value))
		}
		m.compacted = max(m.compacted, int64(binary.BigEndian.Uint64(value)))
	case "confState":
		if !json.Valid(value) {
			return m.damage("its %s is not JSON", key)
		}
	case "storageVersion":
		return m.version(key, value)
	}
	return nil
}

// version checks the text of a version, such as 3.6.0.
func (m *model) version(key string, value []byte) error {
	if strings.Trim(string(value), "0123456789.") != "" || strings.Count(string(value), ".") != 2 {
		return m.damage("its %s is %q, want a version such as 3.6.0", key, value)
	}
	return nil
}

// record decodes a version of a key.
func record(key, value []byte) (r Record, main, sub int64, err error) {
	deleted := len(key) == 18 && key[17] == 't'
	if len(key) != 17 && !deleted || key[8] != '_' {
		return r, 0, 0, fmt.Errorf("the entry %x of bucket key is not a revision", key)
	}
	main, sub = int64(binary.BigEndian.Uint64(key)), int64(binary.BigEndian.Uint64(key[9:]))
	r = Record{&mvccpb.KeyValue{}, deleted}
	if err := proto.Unmarshal(value, r.KeyValue); err != nil {
		return r, 0, 0, fmt.Errorf("revision %d cannot be decoded: %w", main, err)
	}
	kv := r.KeyValue
	sound := main > 0 && sub >= 0 && len(kv.Key) > 0 && len(kv.ProtoReflect().GetUnknown()) == 0
	if deleted {
		sound = sound && kv.ModRevision == 0 && kv.Version == 0 && len(kv.Value) == 0
	} else {
		sound = sound && kv.ModRevision == main && kv.CreateRevision > 0 && kv.CreateRevision <= main && kv.Version > 0
	}
	if !sound {
		return r, 0, 0, fmt.Errorf("revision %d is of key %q, which says that it is of revision %d", main, kv.Key, kv.ModRevision)
	}
	return r, main, sub, nil
}

// addRecord takes the versions of keys in the order of their revisions.
func (m *model) addRecord(r Record, main, sub int64) error {
	follows := main == m.main && sub == m.sub+1 || main == m.main+1 && sub == 0
	if m.main == 0 { // the first revision of an etcd is 2
		follows = main == 2 && sub == 0
	}
	if !follows {
		m.gaps = append(m.gaps, main)
	}
	m.main, m.sub = main, sub
	if m.versions == nil {
		m.versions = map[string]int64{}
	}
	key := string(r.Key)
	if last, known := m.versions[key]; !r.Deleted && r.Version != last+1 && (known || r.Version != 1) {
		m.jumps = append(m.jumps, main)
	}
	m.versions[key] = r.Version
	if r.Deleted || m.valid == nil {
		return nil
	}
	if err := m.valid(r.Key, r.Value); err != nil {
		return m.damage("the record %s at revision %d: %v", r.Key, main, err)
	}
	return nil
}

// end checks what only the whole shows: of the revisions after the last compaction none is missing.
func (m *model) end() error {
	for _, list := range [][]int64{m.gaps, m.jumps} {
		for _, at := range list {
			if at > m.compacted+1 {
				return m.damage("revisions before revision %d are missing", at)
			}
		}
	}
	switch {
	case m.compacted > m.main:
		return m.damage("it was compacted at revision %d, but ends with revision %d", m.compacted, m.main)
	case !m.indexed && m.main > 0:
		return m.damage("it does not say which entries of the log it contains")
	}
	return nil
}
