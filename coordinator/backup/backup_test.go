package backup

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startEtcd(t *testing.T) (*clientv3.Client, *ledger.Ledger) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := embedded.StartEtcd(ctx, embedded.EtcdOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	c, err := e.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, ledger.New(c, ledger.Options{PageSize: 7})
}

// records returns the keys and values below the prefix, except those of leaders.
func records(t *testing.T, c *clientv3.Client) map[string]string {
	t.Helper()
	resp, err := c.Get(t.Context(), ledger.DefaultPrefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, kv := range resp.Kvs {
		if key := strings.TrimPrefix(string(kv.Key), ledger.DefaultPrefix); !strings.HasPrefix(key, "leader/") &&
			!strings.HasPrefix(key, "restored/") {
			value, err := seal.Open(string(kv.Key), kv.Value)
			if err != nil {
				t.Fatal(err)
			}
			all[key] = string(value)
		}
	}
	return all
}

// fill writes records by keys of every kind, some of which are large or not text.
func fill(t *testing.T, c *clientv3.Client) map[string]string {
	t.Helper()
	want := map[string]string{
		"commits/0": `{"nonce":"x","epoch":3}`, "cursors/0/RESULT": `{"sequence":7}`, "names/s": `{"id":"1"}`, "epochs/0": `{"base":9}`,
		"studies/1/spec": `{"id":"1"}`, "studies/1/status": `{}`, "aside/-/x": "\x00\xff\n", "unknown": "",
		"curves/1/00000001/000000": string(noise(ledger.MaxBytes - 200)),
	}
	for i := range 300 {
		want[fmt.Sprintf("studies/1/trials/%08d", i+1)] = fmt.Sprintf(`{"number":%d}`, i+1)
	}
	for key, value := range want {
		put(t, c, key, value)
	}
	if _, err := c.Put(t.Context(), ledger.DefaultPrefix+"leader/1", "of another shard"); err != nil {
		t.Fatal(err)
	}
	return want
}

// put stores a record under a key below the prefix.
func put(t *testing.T, c *clientv3.Client, key, value string) {
	t.Helper()
	key = ledger.DefaultPrefix + key
	if _, err := c.Put(t.Context(), key, seal.Seal(key, []byte(value))); err != nil {
		t.Fatal(err)
	}
}

// noise returns bytes that cannot be compressed, so that each bit of them counts.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

func TestRestoreWritesWhatWasBackedUp(t *testing.T) {
	source, from := startEtcd(t)
	want := fill(t, source)
	// What is written while the backup runs is not in it.
	var file bytes.Buffer
	first := true
	h, saved, err := Write(t.Context(), from, writerFunc(func(p []byte) (int, error) {
		if first {
			first = false
			if _, err := source.Put(t.Context(), ledger.DefaultPrefix+"studies/1/trials/99999999", "late"); err != nil {
				return 0, err
			}
		}
		return file.Write(p)
	}), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if saved.Keys != len(want) || saved.Studies != 1 || saved.Trials != 300 || h.Program != "1.2.3" {
		t.Errorf("the backup has %+v by %s, want %d records of 1 study and 300 trials", saved, h.Program, len(want))
	}
	target, to := startEtcd(t)
	for _, key := range []string{"a/first", "names/other", "studies/0/spec", "zz"} {
		if _, err := target.Put(t.Context(), ledger.DefaultPrefix+key, "old"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Restore(t.Context(), target, to, bytes.NewReader(file.Bytes()), Options{}); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("restore over records: %v, want ErrNotEmpty", err)
	}
	_, restored, err := Restore(t.Context(), target, to, bytes.NewReader(file.Bytes()), Options{Force: true})
	if err != nil || restored != saved {
		t.Fatalf("restore: %+v, %v; want %+v", restored, err, saved)
	}
	got := records(t, target)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %.80q, want %.80q", key, got[key], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}
	if _, err := to.Lead(t.Context(), ledger.Fence{Key: "none", Revision: 1}); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("nobody leads after a restore, but Lead says %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// repack changes the text of a backup.
func repack(t *testing.T, file []byte, change func(lines []string) []string) []byte {
	t.Helper()
	in, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	if _, err := zipped.Write([]byte(strings.Join(change(strings.SplitAfter(string(text), "\n")), ""))); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A file that is not a whole backup is refused before anything is written.
func TestDamagedBackups(t *testing.T) {
	source, from := startEtcd(t)
	fill(t, source)
	var whole bytes.Buffer
	if _, _, err := Write(t.Context(), from, &whole, "1"); err != nil {
		t.Fatal(err)
	}
	target, to := startEtcd(t)
	flipped := bytes.Clone(whole.Bytes())
	flipped[len(flipped)/2] ^= 1
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"empty": {nil, ErrFormat},
		"text":  {[]byte("apiVersion: fantasia.dev/v1"), ErrFormat},
		"other": {repack(t, whole.Bytes(), func([]string) []string { return []string{`{"format":"tar"}` + "\n"} }), ErrFormat},
		"later": {repack(t, whole.Bytes(), func(l []string) []string {
			l[0] = strings.Replace(l[0], `"version":1`, `"version":2`, 1)
			return l
		}), ErrFormat},
		"cut":     {whole.Bytes()[:whole.Len()/2], ErrDamaged},
		"flipped": {flipped, ErrDamaged},
		"shorter": {repack(t, whole.Bytes(), func(l []string) []string { return append(l[:9:9], l[10:]...) }), ErrDamaged},
		"no end":  {repack(t, whole.Bytes(), func(l []string) []string { return l[:len(l)-2] }), ErrDamaged},
		"changed": {repack(t, whole.Bytes(), func(l []string) []string { l[5] = strings.Replace(l[5], `"v":"`, `"v":"AAAA`, 1); return l }),
			ErrDamaged},
		"appended": {repack(t, whole.Bytes(), func(l []string) []string { return append(l, "{}\n") }), ErrDamaged},
	} {
		_, _, err := Restore(t.Context(), target, to, bytes.NewReader(c.file), Options{})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if got := records(t, target); len(got) != 0 {
		t.Errorf("a refused backup has left %d records", len(got))
	}
}

// A restore that stops in the middle leaves a ledger that nobody leads or backs up, until
// another restore succeeds.
func TestInterruptedRestore(t *testing.T) {
	source, from := startEtcd(t)
	fill(t, source)
	var file bytes.Buffer
	if _, _, err := Write(t.Context(), from, &file, "1"); err != nil {
		t.Fatal(err)
	}
	target, to := startEtcd(t)
	broken := errors.New("the disk is gone")
	_, _, err := Restore(t.Context(), target, to, &failing{Reader: bytes.NewReader(file.Bytes()), after: file.Len() / 2, err: broken},
		Options{})
	if !errors.Is(err, broken) {
		t.Fatalf("restore: %v, want %v", err, broken)
	}
	lead := func() error {
		if _, err := target.Delete(t.Context(), to.LeaderKey()); err != nil {
			t.Fatal(err)
		}
		resp, err := target.Put(t.Context(), to.LeaderKey(), "me")
		if err != nil {
			t.Fatal(err)
		}
		_, err = to.Lead(t.Context(), ledger.Fence{Key: to.LeaderKey(), Revision: resp.Header.Revision})
		return err
	}
	if err := lead(); !errors.Is(err, ledger.ErrUnfinished) {
		t.Errorf("lead half a ledger: %v, want ErrUnfinished", err)
	}
	if _, _, err := Write(t.Context(), to, io.Discard, "1"); !errors.Is(err, ledger.ErrUnfinished) {
		t.Errorf("back half a ledger up: %v, want ErrUnfinished", err)
	}
	if _, err := target.Delete(t.Context(), to.LeaderKey()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Restore(t.Context(), target, to, bytes.NewReader(file.Bytes()), Options{Force: true}); err != nil {
		t.Fatal(err)
	}
	if err := lead(); err != nil {
		t.Errorf("lead the restored ledger: %v", err)
	}
}

// failing fails in its second pass.
type failing struct {
	*bytes.Reader
	after int
	err   error
	pass  int
}

func (f *failing) Seek(offset int64, whence int) (int64, error) {
	f.pass++
	return f.Reader.Seek(offset, whence)
}

func (f *failing) ReadByte() (byte, error) {
	var one [1]byte
	_, err := f.Read(one[:])
	return one[0], err
}

func (f *failing) Read(p []byte) (int, error) {
	if f.pass > 0 && int(f.Size())-f.Len() > f.after {
		return 0, f.err
	}
	return f.Reader.Read(p[:min(len(p), 100)])
}

// endless is a gzip stream of a header and records that never end.
func endless(t *testing.T, line string) io.Reader {
	t.Helper()
	r, w := io.Pipe()
	done := make(chan struct{})
	t.Cleanup(func() { _ = r.Close(); <-done })
	go func() {
		defer close(done)
		zipped := gzip.NewWriter(w)
		_, err := zipped.Write([]byte(`{"format":"fantasia-backup","version":1}` + "\n"))
		for block := []byte(strings.Repeat(line, 1000)); err == nil; {
			_, err = zipped.Write(block)
		}
	}()
	return r
}

// A backup that decompresses to more than an etcd can hold, or to a line longer than any record, is
// refused there, and not read to its end.
func TestBombs(t *testing.T) {
	const most = 10 << 20
	visit := func(string, []byte) error { return nil }
	if _, err := readAtMost(endless(t, `{"k":"a","v":""}`+"\n"), most, visit); !errors.Is(err, ErrDamaged) ||
		!strings.Contains(err.Error(), "decompressed, it has more than 10485760 bytes") {
		t.Errorf("records without an end: %v", err)
	}
	if _, err := Read(endless(t, "a"), visit); !errors.Is(err, ErrDamaged) ||
		!strings.HasSuffix(err.Error(), fmt.Sprintf("line 2 is longer than %d MiB, as no line of a backup is", maxLine>>20)) {
		t.Errorf("a line without an end: %v", err)
	}
	var garbage bytes.Buffer
	zipped := gzip.NewWriter(&garbage)
	_, err := zipped.Write(bytes.Repeat([]byte{'a'}, 2*maxLine))
	if err := errors.Join(err, zipped.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(&garbage, visit); !errors.Is(err, ErrFormat) ||
		!strings.HasSuffix(err.Error(), "its first line is not the header of a backup") {
		t.Errorf("garbage: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(endless(t, `{"k":"a","v":""}`+"\n"), func(string, []byte) error { return ctx.Err() }); !errors.Is(err,
		context.Canceled) {
		t.Errorf("an interrupted check: %v", err)
	}
}
