package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// errReplaced means that another process gave the path to a new file while this one opened the old one.
var errReplaced = errors.New("the file was replaced meanwhile")

// open opens the file at path, or creates it, and locks it. real is the path without symbolic links. The lock
// is on the file itself, because the same file can have many names. If path leads to something that is no
// regular file, nothing is created or written.
func open(path string) (real string, file *os.File, lock *flock.Flock, err error) {
	looked := 0
	for range 100 { // each further try follows a process that replaced the file and closed it
		real, file, lock, err = tryOpen(path)
		if errors.Is(err, ErrInUse) && looked < 5 { // who asks InUse has it locked for a moment, too
			looked++
			time.Sleep(time.Millisecond << looked)
		} else if !errors.Is(err, errReplaced) {
			return real, file, lock, err
		}
	}
	return "", nil, nil, fmt.Errorf("lock %s: %w", path, ErrInUse)
}

// tryOpen is one try of open. Its error wraps errReplaced if another try may succeed.
func tryOpen(path string) (real string, file *os.File, lock *flock.Flock, err error) {
	if real, err = resolve(path); err != nil {
		return "", nil, nil, err
	}
	if file, err = os.OpenFile(real, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return "", nil, nil, fmt.Errorf("open %s: %w", path, err)
	}
	lock = lockOf(real)
	locked, err := lock.TryLock()
	switch {
	case err != nil:
	case !locked:
		err = ErrInUse
	case !isAt(file, lock, real):
		err = errReplaced
	default:
		return real, file, lock, nil
	}
	return "", nil, nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, file.Close(), lock.Close()))
}

// lockOf returns the lock of the file at a path, which must exist.
func lockOf(path string) *flock.Flock { return flock.New(path, flock.SetFlag(os.O_RDWR)) }

// isAt reports whether what was opened and what was locked are both the file at path.
func isAt(file *os.File, lock *flock.Flock, path string) bool {
	opened, err1 := file.Stat()
	locked, err2 := lock.Stat()
	now, err3 := os.Stat(path)
	return errors.Join(err1, err2, err3) == nil && os.SameFile(opened, locked) && os.SameFile(opened, now)
}

// resolve follows symbolic links, and refuses what is there and no regular file.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", fmt.Errorf("%w: %s is a symbolic link to a file that does not exist; give the path of the file itself", ErrNotRegular, path)
		}
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: %s is %s; give the path of a file, which may not exist yet", ErrNotRegular, path, kind(info.Mode()))
	}
	return real, nil
}

// kind names what is no regular file.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "a device"
	}
}
