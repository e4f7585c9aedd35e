package dirlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTake(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	release, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Take(dir)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir+" is held by "+fmt.Sprintf("process %d on ", os.Getpid())) {
		t.Errorf("a directory in use: %v", err)
	}
	if err := os.Truncate(filepath.Join(dir, "lock"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err = Take(dir); !errors.Is(err, ErrInUse) || !strings.HasSuffix(err.Error(), dir) {
		t.Errorf("a directory whose holder has not written yet who it is: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if release, err = Take(dir); err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

func TestTakeWhereNoDirectoryCanBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(filepath.Join(file, "dir")); err == nil || errors.Is(err, ErrInUse) {
		t.Errorf("below a file: %v", err)
	}
}
