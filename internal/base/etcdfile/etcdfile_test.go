package etcdfile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/base/etcdfile"
)

// segmentBytes is the size of the log's files of package embedded.
const segmentBytes = 512 << 10

// fill runs an etcd that stores n versions of a few keys, and returns its data directory. If there are many, the
// log has two files or more that the next start needs, however long that takes: etcd deletes those before its
// last snapshot after a while, and no snapshot comes within the large values at the end.
func fill(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	e, err := embedded.StartEtcd(t.Context(), embedded.EtcdOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.Client()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		key := fmt.Sprintf("/k/%03d", i%300)
		if i%70 == 69 {
			_, err = c.Delete(t.Context(), key)
		} else {
			_, err = c.Put(t.Context(), key, strings.Repeat(fmt.Sprint(i), 50))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	last, err := c.Get(t.Context(), "/k/000")
	if err == nil && n > 1000 {
		_, err = c.Compact(context.WithoutCancel(t.Context()), last.Header.Revision-100, clientv3.WithCompactPhysical())
	}
	for i := 0; err == nil && n > 1000 && i < 20; i++ {
		_, err = c.Put(t.Context(), "/k/large", strings.Repeat(strings.Repeat(fmt.Sprint(i%10), 1200), 50))
	}
	if err = errors.Join(err, c.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	return embedded.DataDir(dir)
}

// The files that etcd has made are sound: with and without a snapshot, and after a compaction.
func TestSoundFiles(t *testing.T) {
	for _, n := range []int{0, 10, 2500} {
		dir := fill(t, n)
		c, err := etcdfile.Check(dir, etcdfile.Options{SegmentBytes: segmentBytes, Valid: func(key, value []byte) error {
			if !bytes.HasPrefix(key, []byte("/k/")) || len(value) < 50 {
				return errors.New("not of this test")
			}
			return nil
		}})
		if err != nil || c.Index < uint64(n) {
			t.Errorf("after %d writes: %+v, %v; want no damage", n, c, err)
		}
		if n > 2000 {
			if found, _ := filepath.Glob(filepath.Join(dir, "member", "snap", "*.snap")); len(found) == 0 {
				t.Error("there is no snapshot to check")
			}
		}
	}
}

// What bbolt itself reads is what is read here: bbolt is the oracle.
func TestDatabaseLikeBbolt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "bolt")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "db")
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: rapid.Bool().Draw(t, "no list")})
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 5).Draw(t, "transactions") {
			if err := db.Update(func(tx *bbolt.Tx) error { return change(t, tx) }); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]string{}
		err = db.View(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
				return b.ForEach(func(k, v []byte) error { want[string(name)+"/"+string(k)] = string(v); return nil })
			})
		})
		if err = errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		if err := etcdfile.Walk(path, func(b, k, v []byte) error { got[string(b)+"/"+string(k)] = string(v); return nil }); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("read %d keys, bbolt reads %d", len(got), len(want))
		}
	})
}

// change puts and deletes keys, of which some are longer than a page.
func change(t *rapid.T, tx *bbolt.Tx) error {
	for range rapid.IntRange(1, 3).Draw(t, "buckets") {
		b, err := tx.CreateBucketIfNotExists([]byte(rapid.StringMatching(`[a-c]`).Draw(t, "bucket")))
		if err != nil {
			return err
		}
		for range rapid.IntRange(0, 200).Draw(t, "keys") {
			key := binary.BigEndian.AppendUint64(nil, rapid.Uint64Range(0, 500).Draw(t, "key"))
			if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
				err = b.Delete(key)
			} else {
				err = b.Put(key, bytes.Repeat([]byte("v"), rapid.IntRange(0, 6000).Draw(t, "length")))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Each kind of file, damaged in a way that etcd itself meets with a panic, with a wait, or not at all.
func TestDamagedFiles(t *testing.T) {
	whole := fill(t, 2500)
	const before = "wal/the last but one" // which the next start needs, as the last
	for _, test := range []struct {
		name, file string
		change     func([]byte) []byte
		want       string
	}{
		{"a database that was cut off", "snap/db", func(b []byte) []byte { return b[:3*4096] }, "it was cut off"},
		{"an empty database", "snap/db", func([]byte) []byte { return nil }, "no valid root"},
		{"a changed record", "snap/db", func(b []byte) []byte {
			for _, at := range places(b, []byte(strings.Repeat("2499", 50))) {
				b[at] ^= 1
			}
			return b
		}, "not of this test"},
		{"an entry under another revision", "snap/db", func(b []byte) []byte {
			for _, at := range places(b, append(binary.BigEndian.AppendUint64(nil, 2480), '_')) {
				b[at+7]++
			}
			return b
		}, ""},
		{"a zeroed page", "snap/db", func(b []byte) []byte {
			for _, at := range places(b, []byte(strings.Repeat("2499", 50))) {
				clear(b[at/4096*4096 : (at/4096+1)*4096])
			}
			return b
		}, ""},
		{"a member whose id is no number", "snap/db", func(b []byte) []byte { return identify(b, func(byte) byte { return 'x' }) },
			"not the id of a member"},
		{"a member under another id", "snap/db", func(b []byte) []byte {
			return identify(b, func(last byte) byte { return "10"[max(0, strings.IndexByte("01", last))] })
		}, "want the JSON of this member"},
		{"a log that was cut off", "wal/*.wal", func(b []byte) []byte { return b[:100_000] }, "it was cut off"},
		{"a log file before the last that was cut off between two records", before, func(b []byte) []byte {
			at := 0
			for at < 100_000 {
				at += 8 + int(binary.LittleEndian.Uint32(b[at:])) + int(b[at+7]&7)
			}
			return b[:at]
		}, "it was cut off"},
		{"an empty log file before the last", before, func([]byte) []byte { return nil }, "it was cut off"},
		{"a log with a flipped bit", before, func(b []byte) []byte { b[100_000] ^= 4; return b },
			"cannot be read"},
		{"a log with a zeroed page", before, func(b []byte) []byte { clear(b[102_400:106_496]); return b },
			""}, // a page that begins between two records is told as the log's end
		{"a snapshot with a flipped bit", "snap/*.snap", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			pattern, back := test.file, 1
			if pattern == before {
				pattern, back = "wal/*.wal", 2
			}
			found, err := filepath.Glob(filepath.Join(dir, "member", pattern))
			if err != nil || len(found) < back {
				t.Fatal(found, err)
			}
			path := found[len(found)-back]
			content, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, test.change(content), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = etcdfile.Check(dir, etcdfile.Options{SegmentBytes: segmentBytes, Valid: valid})
			damage, ok := errors.AsType[*etcdfile.Damage](err)
			if !ok || damage.File != path || !strings.Contains(damage.What, test.want) {
				t.Errorf("%v; want damage of %s: %s", err, path, test.want)
			}
		})
	}
}

// places returns where a text is in a database: in its pages, and in those that later transactions have freed,
// which etcd does not read.
func places(b, text []byte) (all []int) {
	for at := 0; ; at++ {
		next := bytes.Index(b[at:], text)
		if next < 0 {
			return all
		}
		at += next
		all = append(all, at)
	}
}

// identify changes the last letter of the key of each version of a member in a database. The
// value follows its key.
func identify(b []byte, change func(last byte) byte) []byte {
	for at, part := 0, []byte(`{"id":`); ; {
		next := bytes.Index(b[at:], part)
		if next < 0 {
			return b
		}
		at += next
		b[at-1] = change(b[at-1])
		at += len(part)
	}
}

// valid knows the values of fill: a number, fifty times.
func valid(_, value []byte) error {
	if n := len(value) / 50; !bytes.Equal(value, bytes.Repeat(value[:n], 50)) {
		return errors.New("not of this test")
	}
	return nil
}

// A power failure leaves a torn record at the log's end, which was not synced: that is no damage.
func TestTornLog(t *testing.T) {
	dir := fill(t, 20)
	path := filepath.Join(dir, "member", "wal", "0000000000000000-0000000000000000.wal")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(content, "\x00"))
	end = (end + 7) &^ 7
	copy(content[end:], []byte{0xe8, 3, 0, 0, 0, 0, 0, 0, 8, 2, 16}) // the first sector of a record of 1,000 bytes
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := etcdfile.Check(dir, etcdfile.Options{SegmentBytes: segmentBytes}); err != nil {
		t.Errorf("a torn record at the end: %v", err)
	}
}

// Whatever is in a file, reading it ends with an error or without one.
func FuzzDatabase(f *testing.F) {
	path := filepath.Join(f.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: 1024, InitialMmapSize: 1 << 14})
	if err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte("key"))
			for i := range 60 {
				err = errors.Join(err, b.Put(fmt.Appendf(nil, "%03d", i), bytes.Repeat([]byte("v"), 60)))
			}
			return err
		})
	}
	if err = errors.Join(err, db.Close()); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(1024*3), uint64(1), uint32(1024*4), uint64(1)<<40)
	f.Fuzz(func(t *testing.T, at uint32, x uint64, at2 uint32, y uint64) {
		content := bytes.Clone(whole)
		for _, c := range []struct {
			at uint32
			x  uint64
		}{{at, x}, {at2, y}} {
			place := content[int(c.at)%(len(content)-8):]
			binary.LittleEndian.PutUint64(place, binary.LittleEndian.Uint64(place)^c.x)
		}
		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = etcdfile.Walk(path, func(_, _, _ []byte) error { return nil })
	})
}
