// Package dirlock keeps a directory to one process at a time, and tells the
// others who has it.
package dirlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// ErrHeld says that the directory is another's: of another process, or of another
// part of this one.
var ErrHeld = errors.New("the directory is in use")

// Take takes the lock of a directory, making the directory where there is none.
// It lasts until release or the end of the process. The error wraps ErrHeld, with
// who holds the lock, or is that of the file system.
func Take(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make %s: %w", dir, err)
	}
	path := filepath.Join(dir, "lock")
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, fmt.Errorf("%w: %s%s", ErrHeld, dir, holder(path))
	}
	host, _ := os.Hostname()
	if err := os.WriteFile(path, fmt.Appendf(nil, "process %d on %s\n", os.Getpid(), host), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), lock.Close())
	}
	return lock.Close, nil
}

// holder says who holds the lock at path, as far as the file tells.
func holder(path string) string {
	who, err := os.ReadFile(path)
	if err != nil || len(strings.TrimSpace(string(who))) == 0 {
		return ""
	}
	return " is held by " + strings.TrimSpace(string(who))
}
