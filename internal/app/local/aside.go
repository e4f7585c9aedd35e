package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

// SetAside renames a state directory, so that a run starts afresh there, and returns
// the new name, or "" if there was no directory. It fails with ErrInUse while a run uses
// the directory.
func SetAside(state string) (old string, err error) {
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var stack lifecycle.Stack
	defer func() { err = errors.Join(err, stack.Close(closeTimeout)) }()
	if err := Lock(state, &stack); err != nil {
		return "", err
	}
	if old, err = Aside(state); err != nil {
		return "", fmt.Errorf("set the old state aside: %w", err)
	}
	return old, nil
}

// Aside renames a file or a directory to the first free one of PATH.1, PATH.2 and so on, and
// returns the new name.
func Aside(path string) (old string, err error) {
	for i := 1; ; i++ {
		old = fmt.Sprintf("%s.%d", path, i)
		if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
			return old, os.Rename(path, old)
		}
	}
}
