package embedded

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the number of a user that owns nothing here.
const nobody = 65534

// asNobody runs a script as another user of the machine.
func asNobody(t *testing.T, script string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// Another user of the machine finds neither the socket of an embedded server nor any of its
// files, although the folder around them is open to all.
func TestOtherUsersAreKeptOut(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can try as another user")
	}
	open, err := os.MkdirTemp("/tmp", "others-") // TMPDIR and t.TempDir may be closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(open); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(open, 0o755); err != nil { //nolint:gosec // the attack is to find what is in it
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", open)
	e := startEtcd(t, EtcdOptions{Dir: filepath.Join(open, "etcd")})
	startNATS(t, NATSOptions{Dir: filepath.Join(open, "nats")})
	if _, err := client(t, e).Put(testContext(t), "secret", "s"); err != nil {
		t.Fatal(err)
	}
	seen := asNobody(t, "ls "+open)
	for _, dir := range []string{"etcd", "nats", runtimePrefix} {
		if !strings.Contains(seen, dir) {
			t.Errorf("the other user sees %q, want also %s: the test tries nothing", seen, dir)
		}
	}
	var paths []string
	err = filepath.WalkDir(open, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, "'"+path+"'")
		}
		return err
	})
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d files, %v; want those of etcd and NATS", len(paths), err)
	}
	if found := asNobody(t, "for f in "+strings.Join(paths, " ")+`; do if [ -e "$f" ]; then echo "$f"; fi; done`); found != "" {
		t.Errorf("another user finds:\n%s", found)
	}
}
