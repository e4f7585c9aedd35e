package etcdfile

import (
	"bytes"
	"encoding/binary"
	"errors"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Saved is what damaged files still hold.
type Saved struct {
	// Values are the last values of keys.
	Values map[string][]byte
	// Damaged are the keys whose last version is there, but is damaged. Values lacks them.
	Damaged map[string]bool
	// Problems say what was wrong with the files.
	Problems []error
	// Cut means that the log was damaged, so that its last entries are lost. The database may have
	// them.
	Cut bool
}

// Salvage reads what the files of a data directory still hold. A log that begins with the first entry has
// everything; else the database is read, and what the log has after it.
func Salvage(dir string, o Options) Saved {
	log := collect{values: map[string][]byte{}}
	state, errLog := readLog(logOf(dir), o.SegmentBytes, log.entry)
	if errLog == nil && state.first == 1 && log.undecoded == 0 {
		if s := log.saved(o); len(s.Damaged) == 0 {
			_, err := checkDatabase(databaseOf(dir), o)
			s.Problems = list(err)
			return s
		}
	}
	db := collect{values: map[string][]byte{}}
	errDB := db.database(databaseOf(dir))
	for key, value := range db.values {
		if value != nil && o.Valid != nil && o.Valid([]byte(key), value) != nil {
			errDB = errors.Join(errDB, &Damage{databaseOf(dir), "the record " + key})
		}
	}
	index := db.index
	_, err := readLog(logOf(dir), 0, func(e *raftpb.Entry) {
		if e.GetIndex() > index {
			db.entry(e)
		}
	})
	s := db.saved(o)
	s.Cut = errLog != nil
	s.Problems = list(errLog, errDB)
	if errLog == nil {
		s.Problems = list(err, errDB)
	}
	return s
}

// list returns the errors that are not nil.
func list(errs ...error) (some []error) {
	for _, err := range errs {
		if err != nil {
			some = append(some, err)
		}
	}
	return some
}

// collect keeps the last value of each key; nil for a key that was deleted.
type collect struct {
	values    map[string][]byte
	revisions map[string][2]int64 // the revision of each value that the database had
	index     uint64
	undecoded int
}

// saved sorts out what is not valid.
func (c *collect) saved(o Options) Saved {
	s := Saved{Values: map[string][]byte{}, Damaged: map[string]bool{}}
	for key, value := range c.values {
		switch {
		case value == nil:
		case o.Valid != nil && o.Valid([]byte(key), value) != nil:
			s.Damaged[key] = true
		default:
			s.Values[key] = value
		}
	}
	return s
}

// database collects what the tree of a database has or, if its pages make no tree, what any of its
// leaves has: then also what an older version of the database had, unless a newer version of that key is there.
func (c *collect) database(path string) error {
	d, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer func() { _ = d.close() }() // it was only read
	c.revisions = map[string][2]int64{}
	err = d.walk(func(bucket, key, value []byte) error {
		c.element(string(bucket), key, value)
		return nil
	})
	if err != nil {
		for id := uint64(2); id < d.pages; id++ {
			if p, err := d.page(id); err == nil && p.flags == leafFlag {
				c.leaf(&p)
			}
		}
		return err
	}
	_, err = checkDatabase(path, Options{})
	return err
}

// leaf collects the elements of a page that can be read.
func (c *collect) leaf(p *page) {
	for i := range p.count {
		if e, ok := p.element(i); ok && e.flags == 0 {
			bucket := "key"
			if string(e.key) == "consistent_index" {
				bucket = "meta"
			}
			c.element(bucket, e.key, e.value)
		}
	}
}

// element takes an entry of the database.
func (c *collect) element(bucket string, key, value []byte) {
	if bucket == "meta" && string(key) == "consistent_index" && len(value) == 8 {
		c.index = max(c.index, binary.BigEndian.Uint64(value))
	}
	if bucket != "key" {
		return
	}
	r, main, sub, err := record(key, value)
	if err != nil {
		return
	}
	name := string(r.Key)
	if last, known := c.revisions[name]; known && (last[0] > main || last[0] == main && last[1] > sub) {
		return
	}
	c.revisions[name] = [2]int64{main, sub}
	c.values[name] = bytes.Clone(r.Value)
	if r.Deleted {
		c.values[name] = nil
	} else if c.values[name] == nil {
		c.values[name] = []byte{}
	}
}

// entry takes an entry of the log. It takes each transaction for one whose conditions held: a
// leader's transactions are refused only when it is replaced.
func (c *collect) entry(e *raftpb.Entry) {
	if e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 {
		return
	}
	var r etcdserverpb.InternalRaftRequest
	if err := proto.Unmarshal(e.GetData(), &r); err != nil {
		c.undecoded++
		return
	}
	switch {
	case r.GetPut() != nil:
		c.put(r.GetPut())
	case r.GetDeleteRange() != nil:
		c.remove(r.GetDeleteRange())
	case r.GetTxn() != nil:
		c.transaction(r.GetTxn())
	}
}

func (c *collect) transaction(t *etcdserverpb.TxnRequest) {
	for _, op := range t.GetSuccess() {
		switch {
		case op.GetRequestPut() != nil:
			c.put(op.GetRequestPut())
		case op.GetRequestDeleteRange() != nil:
			c.remove(op.GetRequestDeleteRange())
		case op.GetRequestTxn() != nil:
			c.transaction(op.GetRequestTxn())
		}
	}
}

func (c *collect) put(p *etcdserverpb.PutRequest) {
	c.values[string(p.GetKey())] = append([]byte{}, p.GetValue()...)
}

func (c *collect) remove(r *etcdserverpb.DeleteRangeRequest) {
	from, to := string(r.GetKey()), string(r.GetRangeEnd())
	for key := range c.values {
		if key == from || to != "" && key >= from && (key < to || to == "\x00") {
			c.values[key] = nil
		}
	}
}
