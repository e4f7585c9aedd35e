package durable

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/renameio/v2"
)

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"first", "second"} {
		f, err := renameio.NewPendingFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := Replace(f, path); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); string(got) != text {
			t.Errorf("read %q, %v; want %q", got, err, text)
		}
	}
}

// A file whose directory cannot be synced is not said to be durable.
func TestReplaceWithoutItsDirectory(t *testing.T) {
	dir := t.TempDir()
	f, err := renameio.NewPendingFile(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Replace(f, filepath.Join(dir, "elsewhere", "file")); err == nil {
		t.Error("no error")
	}
}

func TestFull(t *testing.T) {
	for err, want := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EACCES: false, nil: false} {
		if err != nil {
			err = &os.PathError{Op: "write", Path: "file", Err: err}
		}
		if got := Full(err); got != want {
			t.Errorf("Full(%v) is %v", err, got)
		}
	}
}
