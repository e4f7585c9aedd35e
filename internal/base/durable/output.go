package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

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
