package durable

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A regular file is replaced as a whole, and a link, a pipe or a device stays what it is.
func TestWriteOutput(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(at("old"), []byte("old"), 0o600), os.Symlink(at("old"), at("link")), os.Symlink(at("new"), at("dangling")),
		syscall.Mkfifo(at("pipe"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	// A pipe that is open for reading and writing neither blocks nor loses what was written.
	pipe, err := os.OpenFile(at("pipe"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	for name, read := range map[string]string{"fresh": "fresh", "link": "old", "dangling": "new", "pipe": ""} {
		before, _ := os.Lstat(at(name))
		if err := WriteOutput(at(name), []byte("to "+name), 0o644); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(at(name)); err != nil || before != nil && after.Mode().Type() != before.Mode().Type() {
			t.Errorf("%s: it was %v, and is %v now: %v", name, before, after, err)
		}
		if read == "" {
			text := make([]byte, len("to "+name))
			if _, err := pipe.Read(text); err != nil || string(text) != "to "+name {
				t.Errorf("%s: read %q, %v", name, text, err)
			}
		} else if text, err := os.ReadFile(at(read)); err != nil || string(text) != "to "+name {
			t.Errorf("%s: %s holds %q, %v", name, read, text, err)
		}
	}
	if err := WriteOutput(dir, nil, 0o644); err == nil {
		t.Error("a directory was written")
	}
}

// An output that was not committed leaves nothing.
func TestIncompleteOutput(t *testing.T) {
	dir := t.TempDir()
	o, err := Create(filepath.Join(dir, "file"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.WriteString("a part"); err != nil {
		t.Fatal(err)
	}
	if err := o.Cleanup(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
