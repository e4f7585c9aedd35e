package archive_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/backup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const head = `{"format":"fantasia-backup","version":1,"study":{"id":"a","name":"n"}}` + "\n"

// zipped compresses a text.
func zipped(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	must(t, err)
	_, err = w.Write([]byte(text))
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}

// Whoever may write into the archive's directory, which can be shared, can make its files
// unreadable, but cannot have another file read, block the leader, or use its memory. An error
// names the file.
func TestHostileArchives(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "a.study")
	must(t, os.WriteFile(outside, zipped(t, head), 0o600))
	file := func(content []byte) func(string) error {
		return func(path string) error { return os.WriteFile(path, content, 0o600) }
	}
	for name, c := range map[string]struct {
		make func(path string) error
		want string
	}{
		"a link":              {func(path string) error { return os.Symlink(outside, path) }, "symbolic link"},
		"a pipe":              {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "no regular file"},
		"a directory":         {func(path string) error { return os.Mkdir(path, 0o700) }, "no regular file"},
		"no gzip":             {file([]byte("x")), "not a backup"},
		"a line without end":  {file(zipped(t, strings.Repeat("a", 64<<20))), "not the header of a backup"},
		"a header of another": {file(zipped(t, strings.Replace(head, `"a"`, `"b"`, 1))), "no archive of study a"},
		"a cut file":          {file(zipped(t, head)[:20]), "ends too early"},
	} {
		dir := t.TempDir()
		d, err := archive.Open(dir, "1")
		must(t, err)
		path := filepath.Join(dir, "a.study")
		must(t, c.make(path))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := d.Find(ctx, "a"); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("find %s: %v, want %q and the file's name", name, err, c.want)
		}
		records := 0
		if err := d.Read(ctx, "a", func(string, []byte) error { records++; return nil }); err == nil || records > 0 ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("read %s: %d records, %v, want an error with the file's name", name, records, err)
		}
		if all, _, err := d.List(ctx); err != nil || len(all) > 0 {
			t.Errorf("list %s: %v, %v", name, all, err)
		}
		cancel()
	}
}

// A name that is no id leads to no file outside of the directory.
func TestNamesLeadNowhere(t *testing.T) {
	parent := t.TempDir()
	must(t, os.WriteFile(filepath.Join(parent, "a.study"), zipped(t, head), 0o600))
	d, err := archive.Open(filepath.Join(parent, "archive"), "1")
	must(t, err)
	for _, name := range []string{"../a", "/" + filepath.Join(parent, "a"), "a\x00", ".", "", strings.Repeat("a", 300)} {
		if _, err := d.Find(t.Context(), name); !errors.Is(err, archive.ErrNotFound) {
			t.Errorf("find %q: %v, want ErrNotFound", name, err)
		}
	}
}

// FuzzArchive reads any file as the archive of a study, which costs memory in proportion to one
// record only.
func FuzzArchive(f *testing.F) {
	var whole bytes.Buffer
	must(f, backup.WriteRecords(&whole, "1", map[string][]byte{"studies/a/spec": []byte(`{"id":"a"}`), "names/n": []byte(`{}`)}))
	f.Add(whole.Bytes())
	f.Add(zipped(f, head+`{"k":"names/n","v":"e30="}`+"\n"+`{"keys":1,"sha256":"00"}`+"\n"))
	dir := f.TempDir()
	d, err := archive.Open(dir, "1")
	must(f, err)
	f.Fuzz(func(t *testing.T, content []byte) {
		must(t, os.WriteFile(filepath.Join(dir, "a.study"), content, 0o600))
		_, unreadable, err := d.List(t.Context())
		must(t, err)
		if unreadable != nil && !errors.Is(unreadable, backup.ErrFormat) && !errors.Is(unreadable, backup.ErrDamaged) {
			t.Fatal(unreadable)
		}
		err = d.Read(t.Context(), "a", func(string, []byte) error { return nil })
		if err != nil && !errors.Is(err, backup.ErrFormat) && !errors.Is(err, backup.ErrDamaged) {
			t.Fatal(err)
		}
	})
}
