// Package durable writes files that must outlive a failure: it gives them their names so that
// they are still there after a power failure, and recognises a full disk.
package durable

import (
	"errors"
	"io/fs"
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

// Output is a file at a path that a person gave. A regular file appears once it is complete, in place of an
// earlier one; whoever reads the earlier one goes on reading it. Anything else at the path (a device, a pipe,
// a symbolic link) stays what it is, and what is written goes into it.
type Output struct {
	*os.File
	pending *renameio.PendingFile // nil if File is written directly
}

// Create returns the output at path. The caller MUST call Cleanup. perm are the permissions of a new file.
func Create(path string, perm os.FileMode) (*Output, error) {
	info, err := os.Stat(path)
	_, dangling := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() || errors.Is(err, fs.ErrNotExist) && dangling == nil {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, perm)
		if err != nil {
			return nil, err
		}
		return &Output{File: f}, nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // renaming to a link would replace the link
	}
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(perm))
	if err != nil {
		return nil, err
	}
	return &Output{f.File, f}, nil
}

// Commit completes the file and closes it.
func (o *Output) Commit() error {
	if o.pending == nil {
		return o.Close()
	}
	return o.pending.CloseAtomicallyReplace()
}

// Cleanup closes the file and removes what is incomplete. After Commit it does nothing.
func (o *Output) Cleanup() error {
	if o.pending != nil {
		return o.pending.Cleanup()
	}
	if err := o.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// WriteOutput writes a whole Output.
func WriteOutput(path string, content []byte, perm os.FileMode) error {
	o, err := Create(path, perm)
	if err != nil {
		return err
	}
	if _, err = o.Write(content); err == nil {
		err = o.Commit()
	}
	return errors.Join(err, o.Cleanup())
}
