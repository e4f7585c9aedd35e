// Package dirlock reserves a directory for one process at a time, and tells other
// processes who uses it.
package dirlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// ErrInUse means that another process, or another part of this one, uses the directory.
var ErrInUse = errors.New("the directory is already in use")

// Take locks a directory, creating it if necessary. The lock lasts until release or the
// end of the process. The error wraps ErrInUse, with the holder of the lock, or is that
// of the file system.
func Take(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create %s: %w", dir, err)
	}
	path := filepath.Join(dir, "lock")
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, fmt.Errorf("%w: %s%s", ErrInUse, dir, holder(path))
	}
	host, _ := os.Hostname()
	if err := os.WriteFile(path, fmt.Appendf(nil, "process %d on %s\n", os.Getpid(), host), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), lock.Close())
	}
	return lock.Close, nil
}

// holder describes who holds the lock at path, as far as the file tells.
func holder(path string) string {
	who, err := os.ReadFile(path)
	if err != nil || len(strings.TrimSpace(string(who))) == 0 {
		return ""
	}
	return " is held by " + strings.TrimSpace(string(who))
}
