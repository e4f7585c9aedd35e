package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// SetAside renames a state directory, so that a run starts afresh there, and returns
// the new name, or "" if there was no directory. It fails with ErrHeld while a run uses
// the directory.
func SetAside(state string) (old string, err error) {
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	unlock, err := Lock(state)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for i := 1; ; i++ {
		old = fmt.Sprintf("%s.%d", state, i)
		if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err := os.Rename(state, old); err != nil {
		return "", fmt.Errorf("set the old state aside: %w", err)
	}
	return old, nil
}
