// Package durable writes files that must outlive a failure: it gives them their names so that
// they are still there after a power failure, and recognises a full disk.
package durable

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// Replace gives a complete file its name, in place of an earlier file, and syncs both the file
// and its directory. If it fails, the file may have its name already. Some network file
// systems cannot sync a directory: there it is as durable as their renames are.
func Replace(f *renameio.PendingFile, path string) error {
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}

// Full reports whether an error says that a disk is full, or a user's share of it.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
