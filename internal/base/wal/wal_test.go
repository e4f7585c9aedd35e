package wal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

const magic = "test log 1"

// texts returns records as texts.
func texts(records [][]byte) (list []string) {
	for _, r := range records {
		list = append(list, string(r))
	}
	return list
}

// written returns the path of a closed log with the given records.
func written(t testing.TB, records ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	l, _, _, err := Open(path, magic)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := l.Append([]byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRecordsStay(t *testing.T) {
	want := []string{"one", "", "three"}
	path := written(t, want...)
	l, records, cut, err := Open(path, magic)
	if err != nil || cut != 0 || !slices.Equal(texts(records), want) {
		t.Fatalf("read %q, cut %d, %v", texts(records), cut, err)
	}
	if _, _, _, err := Open(path, magic); !errors.Is(err, ErrInUse) {
		t.Errorf("a second Open: %v", err)
	}
	if err := l.Replace([][]byte{[]byte("all")}); err != nil {
		t.Fatal(err)
	}
	if err := l.Append([]byte("more")); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Size() != l.Size() {
		t.Errorf("Size is %d, the file has %d", l.Size(), info.Size())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, records, _, err = Open(path, magic)
	if err != nil || !slices.Equal(texts(records), []string{"all", "more"}) {
		t.Errorf("after Replace: %q, %v", texts(records), err)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("files beside the log: %v", left)
	}
}

// Whatever byte the file ends at, the whole records before it are read, and the log goes on.
func TestCutAtEachByte(t *testing.T) {
	want := []string{"one", "second", "a third one"}
	path := written(t, want...)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) {
		at := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(at, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		l, records, cut, err := Open(at, magic)
		if err != nil {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
		kept := len(records)
		if !slices.Equal(texts(records), want[:kept]) || cut != int64(n)-l.Size() && n > len(magic) || n <= len(magic) && cut != int64(n) {
			t.Errorf("cut at byte %d: %q, %d bytes cut", n, texts(records), cut)
		}
		if err := errors.Join(l.Append([]byte("next")), l.Sync(l.Written()), l.Close()); err != nil {
			t.Fatal(err)
		}
		again, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		records, _, err = Decode(again, magic)
		if err != nil || !slices.Equal(texts(records), append(slices.Clone(want[:kept]), "next")) {
			t.Errorf("cut at byte %d and continued: %q, %v", n, texts(records), err)
		}
	}
}

// A damaged byte is noticed, unless it is in the last record: that may have been cut off.
func TestDamage(t *testing.T) {
	data, err := os.ReadFile(written(t, "one", "second", "a third one"))
	if err != nil {
		t.Fatal(err)
	}
	last := len(data) - frameHeader - len("a third one")
	for n := range data {
		bad := bytes.Clone(data)
		bad[n] ^= 0x10
		records, whole, err := Decode(bad, magic)
		if n < last {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("byte %d damaged: %q, %v", n, texts(records), err)
			}
		} else if err != nil || whole != last || len(records) != 2 {
			t.Errorf("byte %d of the last record damaged: %q, %d bytes, %v", n, texts(records), whole, err)
		}
	}
}

func TestDamagedFileIsNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for range 2 { // the first one leaves no lock
		if err := os.WriteFile(path, []byte("something else\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := Open(path, magic); !errors.Is(err, ErrDamaged) {
			t.Errorf("Open: %v", err)
		}
	}
}

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	path := written(t, "one")
	l, _, _, err := Open(path, magic)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_ = l.file.Close() // so that it fails
	if err := l.Append([]byte("two")); !errors.Is(err, ErrBroken) {
		t.Errorf("a failed write that cannot be taken back: %v", err)
	}
	if err := l.Append([]byte("three")); !errors.Is(err, ErrBroken) {
		t.Errorf("the next one: %v", err)
	}
	if err := l.Replace(nil); !errors.Is(err, ErrBroken) {
		t.Errorf("Replace: %v", err)
	}
}

// Calls of Sync that come during an fsync share the next one, and none returns before its record is on the
// disk.
func TestSyncsAreShared(t *testing.T) {
	path := written(t, "one")
	l, _, _, err := Open(path, magic)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	begun, goOn := make(chan struct{}, 16), make(chan struct{})
	var onDisk atomic.Int64
	flushes := 0
	l.flush = func(file *os.File) error {
		flushes++
		info, err := file.Stat()
		begun <- struct{}{}
		<-goOn
		onDisk.Store(info.Size())
		return errors.Join(err, file.Sync())
	}
	var all sync.WaitGroup
	add := func() {
		if err := l.Append([]byte("more")); err != nil {
			t.Fatal(err)
		}
		upTo, size := l.Written(), l.Size()
		all.Go(func() {
			if err := l.Sync(upTo); err != nil || onDisk.Load() < size {
				t.Errorf("Sync returned with %d of %d bytes on the disk, %v", onDisk.Load(), size, err)
			}
		})
	}
	add()
	<-begun // the first fsync has begun
	for range 8 {
		add()
	}
	if l.Durable() >= l.Size() {
		t.Errorf("%d of %d bytes are durable before an fsync has ended", l.Durable(), l.Size())
	}
	goOn <- struct{}{}
	close(goOn)
	all.Wait()
	if flushes != 2 || l.Durable() != l.Size() {
		t.Errorf("%d fsyncs for 9 records, and %d of %d bytes are durable; want 2 and all", flushes, l.Durable(), l.Size())
	}
}

// After an fsync has failed, nothing that it was to keep counts as kept.
func TestFailedSync(t *testing.T) {
	l, _, _, err := Open(written(t, "one"), magic)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.flush = func(*os.File) error { return errors.New("no space") }
	if err := l.Append([]byte("two")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Sync(l.Written()); !errors.Is(err, ErrBroken) {
			t.Errorf("Sync: %v, want ErrBroken", err)
		}
	}
	if err := l.Append([]byte("three")); !errors.Is(err, ErrBroken) {
		t.Errorf("Append: %v, want ErrBroken", err)
	}
}

// What Replace and Close have written needs no Sync.
func TestReplacedIsDurable(t *testing.T) {
	l, _, _, err := Open(written(t, "one"), magic)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append([]byte("two")), l.Replace([][]byte{[]byte("all")})); err != nil {
		t.Fatal(err)
	}
	l.flush = func(*os.File) error { return errors.New("an fsync too many") }
	if err := l.Sync(l.Written()); err != nil || l.Durable() != l.Size() {
		t.Errorf("after Replace: %v, %d of %d bytes are durable", err, l.Durable(), l.Size())
	}
	if err := errors.Join(l.Append([]byte("more")), l.Close(), l.Sync(l.Written())); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	whole, err := os.ReadFile(written(f, "one", "", "three"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		records, n, err := Decode(data, magic)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		again := []byte(magic + "\n")
		for _, r := range records {
			again = appendFrame(again, r)
		}
		if !bytes.Equal(again, data[:n]) {
			t.Fatalf("%d records of %d bytes are written as %d bytes", len(records), n, len(again))
		}
	})
}
