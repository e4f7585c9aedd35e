package etcdfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// logState is what a write-ahead log holds.
type logState struct {
	first, last uint64 // the indices of its entries; last is 0 if there are none
	snapshot    uint64 // the index of the newest snapshot that it knows
}

// readLog reads the write-ahead log in a directory. It calls visit, unless that is nil, for
// each entry; later entries of an index replace earlier ones. The error is a *Damage; visit has then had
// what comes before the damage.
func readLog(dir string, segmentBytes int64, visit func(*raftpb.Entry)) (logState, error) {
	r := logReader{visit: visit}
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err == nil && len(names) == 0 {
		err = &Damage{dir, "it has no write-ahead log"}
	}
	if err != nil {
		return r.state, err
	}
	slices.Sort(names)
	for i, name := range names {
		var seq, index, wantSeq uint64
		if _, err := fmt.Sscanf(filepath.Base(name), "%016x-%016x.wal", &seq, &index); err != nil {
			return r.state, &Damage{name, "its name is not a log file's, such as 0000000000000000-0000000000000000.wal"}
		}
		if i == 0 {
			r.state.first = max(index, 1)
			if index > 0 { // the first file begins with the entry after the last of the file before
				r.state.last = index - 1
			}
		} else if wantSeq = r.seq + 1; seq != wantSeq {
			return r.state, &Damage{dir, fmt.Sprintf("file %016x of the log is missing", wantSeq)}
		}
		r.seq = seq
		if err := r.file(name, i == len(names)-1, segmentBytes); err != nil {
			return r.state, err
		}
		r.before = name
	}
	return r.state, nil
}

// logReader reads the files of a log one after the other.
type logReader struct {
	state logState
	visit func(*raftpb.Entry)
	seq   uint64
	crc   uint32
	// before is the file before this one; empty for the first.
	before string
}

// file reads a file of the log.
func (r *logReader) file(name string, last bool, segmentBytes int64) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	if last && int64(len(data)) < segmentBytes {
		return &Damage{name, fmt.Sprintf("it has %d bytes, want %d or more: it was cut off", len(data), segmentBytes)}
	}
	at := 0
	for at < len(data) {
		rec, size, ok := frame(data[at:])
		if size == 0 {
			break // preallocated
		}
		if ok {
			ok = r.sum(rec)
		}
		if !ok && at == 0 && r.before != "" && beginsSoundly(data) {
			return &Damage{r.before, fmt.Sprintf("it ends after entry %d, which is not where %s begins: it was cut off", r.state.last,
				filepath.Base(name))}
		}
		if !ok {
			return r.tear(name, data, at, last && torn(data, at, size))
		}
		if err := r.apply(rec); err != nil {
			return &Damage{name, fmt.Sprintf("at byte %d: %v", at, err)}
		}
		at += size
	}
	switch {
	case !last && at != len(data):
		return &Damage{name, fmt.Sprintf("it ends at byte %d, but has %d bytes", at, len(data))}
	case last && len(bytes.TrimLeft(data[at:], "\x00")) > 0:
		return r.tear(name, data, at, true)
	}
	return nil
}

// beginsSoundly reports whether a file's first two records fit together: the checksum of the file
// before, and what follows it. If that checksum is another than that of the records before, those are
// not all that there were.
func beginsSoundly(data []byte) bool {
	first, size, ok := frame(data)
	if !ok || size == 0 || first.GetType() != wal.CrcType {
		return false
	}
	second, _, ok := frame(data[size:])
	return ok && second.GetCrc() == crc32.Update(first.GetCrc(), castagnoli, second.GetData())
}

// frame decodes the record at the start of data. size is 0 if nothing follows.
func frame(data []byte) (rec *walpb.Record, size int, ok bool) {
	if len(data) < 8 {
		return nil, len(data), false
	}
	field := int64(binary.LittleEndian.Uint64(data))
	if field == 0 {
		return nil, 0, true
	}
	length, pad := uint64(field)&(1<<56-1), uint64(0)
	if field < 0 {
		pad = uint64(field) >> 56 & 7
	}
	if length > uint64(len(data)-8) || length+pad > uint64(len(data)-8) {
		return nil, 8, false
	}
	rec = &walpb.Record{}
	err := proto.Unmarshal(data[8:8+length], rec)
	return rec, int(8 + length + pad), err == nil && rec.Type != nil
}

// sum compares the running checksum of the log with a record's.
func (r *logReader) sum(rec *walpb.Record) bool {
	if rec.GetType() == wal.CrcType {
		ok := r.crc == 0 && r.before == "" || rec.GetCrc() == r.crc
		r.crc = rec.GetCrc()
		return ok
	}
	r.crc = crc32.Update(r.crc, castagnoli, rec.GetData())
	return rec.GetCrc() == r.crc
}

// apply notes what a record says.
func (r *logReader) apply(rec *walpb.Record) error {
	switch rec.GetType() {
	case wal.EntryType:
		var e raftpb.Entry
		if err := proto.Unmarshal(rec.GetData(), &e); err != nil {
			return fmt.Errorf("an entry cannot be decoded: %w", err)
		}
		if e.GetIndex() > r.state.last+1 {
			return fmt.Errorf("entry %d follows entry %d", e.GetIndex(), r.state.last)
		}
		r.state.last = e.GetIndex()
		if r.visit != nil {
			r.visit(&e)
		}
	case wal.SnapshotType:
		var s walpb.Snapshot
		if err := proto.Unmarshal(rec.GetData(), &s); err != nil {
			return fmt.Errorf("a snapshot's record cannot be decoded: %w", err)
		}
		r.state.snapshot = max(r.state.snapshot, s.GetIndex())
	}
	return nil
}

// sector is the size up to which a disk writes all bytes or none.
const sector = 512

// torn reports whether the record at a byte was not written as a whole, as etcd sees it: it
// does not fit into the file, or a sector of it is zero.
func torn(data []byte, at, size int) bool {
	if rec, _, _ := frame(data[at:]); rec == nil {
		return true
	}
	for from := at + 8; from < at+size; {
		to := min((from/sector+1)*sector, at+size)
		if len(bytes.Trim(data[from:to], "\x00")) == 0 {
			return true
		}
		from = to
	}
	return false
}

// tear decides what it means that the log cannot be read from a byte on. A machine that loses
// power leaves a torn record at the end, which was not synced and counts for nothing: etcd drops
// it. Anything else is damage; so is a torn record after which the log goes on to commit entries
// that can no longer be read: they had been synced.
func (r *logReader) tear(name string, data []byte, at int, torn bool) error {
	if torn && !r.commitsAfter(data, at) {
		return nil
	}
	return &Damage{name, fmt.Sprintf("it cannot be read from byte %d of %d on, after entry %d", at, len(data), r.state.last)}
}

// commitsAfter looks behind a byte for two records in a row whose checksums fit together, and
// then for a record that commits an entry behind the last one that was read.
func (r *logReader) commitsAfter(data []byte, at int) bool {
	for at = (at + 8) &^ 7; at+8 <= len(data); at += 8 {
		if rec, size, ok := frame(data[at:]); ok && size > 0 && rec.GetType() <= wal.SnapshotType && r.commitsFrom(data, at+size, rec.GetCrc()) {
			return true
		}
	}
	return false
}

// commitsFrom follows records whose running checksum is crc before them.
func (r *logReader) commitsFrom(data []byte, at int, crc uint32) bool {
	for at < len(data) {
		rec, size, ok := frame(data[at:])
		if !ok || size == 0 {
			return false
		}
		if crc = crc32.Update(crc, castagnoli, rec.GetData()); rec.GetType() == wal.CrcType || rec.GetCrc() != crc {
			return false
		}
		var state raftpb.HardState
		if rec.GetType() == wal.StateType && proto.Unmarshal(rec.GetData(), &state) == nil && state.GetCommit() > r.state.last {
			return true
		}
		at += size
	}
	return false
}

// checkSnapshots checks the newest file of a snapshot, with which etcd starts, and returns its index; 0
// if there is none.
func checkSnapshots(dir string, log logState) (index uint64, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.snap"))
	if err != nil {
		return 0, err
	}
	slices.Sort(names)
	if len(names) == 0 {
		if log.snapshot > 0 {
			return 0, &Damage{dir, fmt.Sprintf("the snapshot of entry %d is missing", log.snapshot)}
		}
		return 0, nil
	}
	newest := names[len(names)-1]
	s, err := snap.Read(zap.NewNop(), newest)
	switch {
	case errors.Is(err, os.ErrPermission):
		return 0, err
	case err != nil:
		return 0, &Damage{newest, strings.TrimPrefix(err.Error(), "snap: ")}
	}
	index = s.GetMetadata().GetIndex()
	if log.last < index || log.first > index+1 {
		return index, &Damage{filepath.Dir(newest), fmt.Sprintf("the snapshot is of entry %d, but the log has the entries %d to %d", index,
			log.first, log.last)}
	}
	return index, nil
}
