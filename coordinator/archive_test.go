package coordinator

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/backup"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/study"
)

// archived returns an archive in a new directory, the option that coordinators use it, and the
// directory.
func (r *rig) archived() (dir *archive.Dir, option func(*Options), path string) {
	r.t.Helper()
	path = r.t.TempDir()
	dir, err := archive.Open(path, "test")
	if err != nil {
		r.t.Fatal(err)
	}
	return dir, func(o *Options) { o.Archive = dir }, path
}

// records returns the ledger's records that name a study or belong to it.
func (r *rig) records(id, name string) map[string]string {
	r.t.Helper()
	found := map[string]string{}
	for _, prefix := range []string{"studies/" + id + "/", "curves/" + id + "/", "names/" + name} {
		resp, err := r.etcd.Get(r.ctx(), ledger.DefaultPrefix+prefix, clientv3.WithPrefix())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, kv := range resp.Kvs {
			value, err := seal.Open(string(kv.Key), kv.Value)
			if err != nil {
				r.t.Fatal(err)
			}
			found[string(kv.Key)] = string(value)
		}
	}
	return found
}

// A study leaves the ledger for a file of the archive and comes back as it was, under
// another leader. It then goes on if its budget grows.
func TestArchive(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	dir, option, _ := r.archived()
	first := r.leader(option)
	r.hand("w", 2, nil)
	s := r.create(first, "kept", 300, 2) // more records than a page
	other := r.create(first, "kept2", 3, 1)
	r.ends(s.ID)
	r.ends(other.ID)
	entry, err := first.Archive(r.ctx(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	if entry.Name != "kept" || entry.ID != s.ID || entry.State != study.Completed || entry.Trials != 300 || entry.Ended.IsZero() ||
		entry.Bytes == 0 {
		t.Errorf("the entry is %+v", entry)
	}
	if left := r.records(s.ID, "kept"); len(left) != 1 { // kept2's name
		t.Errorf("the ledger still holds %v", left)
	}
	first.stop()

	c := r.leader(option)
	all, err := c.Archived(r.ctx())
	if diff := cmp.Diff([]archive.Entry{entry}, all); err != nil || diff != "" {
		t.Errorf("archived: %v (-want +got)\n%s", err, diff)
	}
	r.create(c, "kept", 2, 1)
	if _, err := c.Unarchive(r.ctx(), "kept"); !errors.Is(err, ledger.ErrNameTaken) {
		t.Errorf("restore a study whose name was given away: %v", err)
	}
	if err := c.Delete(r.ctx(), "kept", true); err != nil {
		t.Fatal(err)
	}
	stored := map[string]string{}
	if err := dir.Read(r.ctx(), s.ID, func(key string, value []byte) error {
		stored[ledger.DefaultPrefix+key] = string(value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Unarchive(r.ctx(), s.ID); err != nil {
		t.Fatal(err)
	}
	back := r.records(s.ID, "kept")
	delete(back, ledger.DefaultPrefix+"names/kept2")
	if diff := cmp.Diff(stored, back); diff != "" {
		t.Errorf("the records in the file and those that came back (-want +got):\n%s", diff)
	}
	if all, err := c.Archived(r.ctx()); err != nil || len(all) != 0 {
		t.Errorf("the archive still holds %+v, %v", all, err)
	}
	r.verify(s.ID, 300, 300)
	if err := c.Update(r.ctx(), "kept", newStudy("kept", 310, 2), 0); err != nil {
		t.Fatal(err)
	}
	r.until(s.ID, func(s ledger.Summary) bool {
		return s.Status.State == study.Completed && s.Status.Counts.Completed == 310
	})
	r.verify(s.ID, 310, 310)
}

func TestArchiveRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	_, option, _ := r.archived()
	c := r.leader(option)
	if _, err := c.Archive(r.ctx(), "none"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("archive an unknown study: %v", err)
	}
	if _, err := c.Unarchive(r.ctx(), "none"); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("restore an unknown study: %v", err)
	}
	s := r.create(c, "busy", 3, 1)
	if _, err := c.Archive(r.ctx(), "busy"); !errors.Is(err, ErrNotArchivable) || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("archive a running study: %v", err)
	}
	r.create(c, "team.resource", 3, 1)
	if err := c.Stop(r.ctx(), "team.resource", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Archive(r.ctx(), "team.resource"); !errors.Is(err, ErrNotArchivable) || !strings.Contains(err.Error(), "resource") {
		t.Errorf("archive a resource's study: %v", err)
	}
	c.archives.Lock()
	if _, err := c.Archive(r.ctx(), s.ID); !errors.Is(err, ErrArchiving) {
		t.Errorf("archive two studies at once: %v", err)
	}
	c.archives.Unlock()
	c.stop()
	c = r.leader()
	for what, try := range map[string]func() error{
		"list":    func() error { _, err := c.Archived(r.ctx()); return err },
		"archive": func() error { _, err := c.Archive(r.ctx(), s.ID); return err },
		"restore": func() error { _, err := c.Unarchive(r.ctx(), s.ID); return err },
	} {
		if err := try(); !errors.Is(err, ErrNoArchive) {
			t.Errorf("%s without an archive: %v", what, err)
		}
	}
}

// What a restore leaves that was cut off is seen by nobody, not even by the next leader, and
// the next restore replaces it.
func TestRestoreFromTheArchiveIsCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	dir, option, _ := r.archived()
	first := r.leader(option)
	r.hand("w", 2, nil)
	s := r.create(first, "cut", 150, 2)
	r.ends(s.ID)
	whole := r.records(s.ID, "cut")
	if _, err := first.Archive(r.ctx(), "cut"); err != nil {
		t.Fatal(err)
	}
	in := first.term.Load().writer.ImportStudy(s.ID)
	if err := dir.Read(r.ctx(), s.ID, func(key string, value []byte) error { return in.Put(r.ctx(), key, value) }); err != nil {
		t.Fatal(err)
	}
	if left := len(r.records(s.ID, "cut")); left == 0 || left >= len(whole) {
		t.Fatalf("%d of %d records are stored; the test wants a part", left, len(whole))
	}
	first.stop()

	c := r.leader(option)
	if all, err := r.ledger.Studies(r.ctx()); err != nil || len(all) != 0 {
		t.Errorf("the ledger shows %+v, %v", all, err)
	}
	if _, err := c.Unarchive(r.ctx(), "cut"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, r.records(s.ID, "cut")); diff != "" {
		t.Errorf("the records before and after (-want +got):\n%s", diff)
	}
}

// A file that was changed brings nothing back, and stays.
func TestDamagedArchive(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	_, option, path := r.archived()
	c := r.leader(option)
	r.hand("w", 2, nil)
	s := r.create(c, "damaged", 20, 2)
	r.ends(s.ID)
	if _, err := c.Archive(r.ctx(), "damaged"); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(path, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the archive has the files %q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], text[:len(text)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Unarchive(r.ctx(), "damaged"); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("restore a file that was cut: %v", err)
	}
	if left := r.records(s.ID, "damaged"); len(left) != 0 {
		t.Errorf("the ledger holds %v", left)
	}
	if err := os.WriteFile(files[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Unarchive(r.ctx(), "damaged"); err != nil {
		t.Errorf("restore the file as it was: %v", err)
	}
}

// rewrite changes the lines of an archived study, and gives it a checksum that is right.
func rewrite(t *testing.T, file []byte, change func(lines []string) []string) []byte {
	t.Helper()
	in, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	lines = change(lines[:len(lines)-1])
	body := strings.Join(lines, "")
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	_, err = fmt.Fprintf(zipped, `%s{"keys":%d,"sha256":"%x"}`+"\n", body, len(lines)-1, sha256.Sum256([]byte(body)))
	if err := errors.Join(err, zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A file that somebody made, with records of other studies or another study's name, brings
// nothing back, although its checksum is right.
func TestArchivesBringNothingElse(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	_, option, path := r.archived()
	c := r.leader(option)
	r.hand("w", 2, nil)
	s := r.create(c, "mine", 3, 2)
	r.ends(s.ID)
	if _, err := c.Archive(r.ctx(), "mine"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path, s.ID+".study")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	add := func(key string) func([]string) []string {
		return func(l []string) []string { return append(l, fmt.Sprintf(`{"k":%q,"v":"e30="}`+"\n", key)) }
	}
	for name, change := range map[string]func([]string) []string{
		"another study":     add("studies/other/spec"),
		"a path":            add("studies/" + s.ID + "/../other/spec"),
		"the epochs":        add("epochs/0"),
		"a leader":          add("leader/0"),
		"a commit":          add("commits/0"),
		"another's curve":   add("curves/other/00000001/000000"),
		"an unknown record": add("studies/" + s.ID + "/unknown"),
		"another name": func(l []string) []string {
			l[0] = strings.Replace(l[0], `"name":"mine"`, `"name":"yours"`, 1)
			return l
		},
		"no trials or specs": func(l []string) []string { return l[:1] },
	} {
		if err := os.WriteFile(file, rewrite(t, text, change), 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := r.etcd.Get(r.ctx(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Unarchive(r.ctx(), s.ID); !errors.Is(err, ledger.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
		after, err := r.etcd.Get(r.ctx(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		if before.Count != after.Count {
			t.Errorf("%s: etcd has %d records, and had %d before", name, after.Count, before.Count)
		}
	}
	if err := os.WriteFile(file, rewrite(t, text, func(l []string) []string { return l }), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Unarchive(r.ctx(), s.ID); err != nil {
		t.Errorf("the file as it was: %v", err)
	}
}
