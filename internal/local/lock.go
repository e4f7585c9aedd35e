package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// ErrHeld says that another run uses the state directory.
var ErrHeld = errors.New("the state directory is in use")

// lock takes the state directory for this process and says who it is, so that a
// second run can tell who holds it. The lock ends with the process.
func lock(dir string) (unlock func() error, err error) {
	path := filepath.Join(dir, "lock")
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		who, _ := os.ReadFile(path)
		return nil, fmt.Errorf("%w: %s is held by %s; wait for it, or choose another with --state", ErrHeld, dir, strings.TrimSpace(string(who)))
	}
	host, _ := os.Hostname()
	if err := os.WriteFile(path, fmt.Appendf(nil, "process %d on %s\n", os.Getpid(), host), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), l.Close())
	}
	return l.Close, nil
}
