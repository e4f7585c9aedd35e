// Package archive keeps ended studies in files of a directory, which can be the mount of an
// object store. A file has the format of a backup, with its checksum, and holds one study.
package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/fantasia-hpo/fantasia/coordinator/backup"
	"github.com/fantasia-hpo/fantasia/internal/base/durable"
	"github.com/fantasia-hpo/fantasia/study"
)

// ErrNotFound means that the archive does not hold the study.
var ErrNotFound = study.NewError(study.ErrNotFound, "not in the archive")

// suffix ends the names of the archive's files, whose rest is the study's id.
const suffix = ".study"

// Dir is a directory of archived studies. It is safe for concurrent use, also by several
// processes.
type Dir struct {
	path    string
	program string
}

// Open returns the archive in a directory, which it creates if necessary. program is the
// version of Fantasia, which the files name.
func Open(path, program string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	return &Dir{path, program}, nil
}

// Entry is an archived study.
type Entry struct {
	backup.Study
	// Archived is when its file was begun.
	Archived time.Time
	// Bytes is the size of its file.
	Bytes int64
}

// isID matches the ids of studies, which name files.
var isID = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

func (d *Dir) file(id string) string { return filepath.Join(d.path, id+suffix) }

// Write stores a study, which write writes as a backup. It replaces an earlier file of the
// study. When it returns, the file is on the disk, and has been read back and checked.
func (d *Dir) Write(ctx context.Context, id string, write func(w io.Writer, program string) error) (Entry, error) {
	if !isID.MatchString(id) {
		return Entry{}, fmt.Errorf("archive study %q: its id cannot name a file", id)
	}
	f, err := renameio.NewPendingFile(d.file(id), renameio.WithPermissions(0o600))
	if err != nil {
		return Entry{}, fmt.Errorf("archive study %s: %w", id, err)
	}
	defer func() { _ = f.Cleanup() }() // nothing is left of a file that was renamed
	if err := write(f, d.program); err != nil {
		return Entry{}, fmt.Errorf("archive study %s: %w", id, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Entry{}, fmt.Errorf("read the archived study %s: %w", id, err)
	}
	if _, err := backup.Check(ctx, f); err != nil {
		return Entry{}, fmt.Errorf("read the archived study %s: %w", id, err)
	}
	if err := durable.Replace(f, d.file(id)); err != nil {
		return Entry{}, fmt.Errorf("archive study %s: %w", id, err)
	}
	return d.entry(id)
}

// open opens a study's file. Others may share the directory, so neither a link nor a pipe, which
// would block, may take its place.
func (d *Dir) open(id string) (*os.File, error) {
	f, err := os.OpenFile(d.file(id), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s: %w: it is a symbolic link", d.file(id), backup.ErrFormat)
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s: %w: it is no regular file", f.Name(), backup.ErrFormat), err, f.Close())
	}
	return f, nil
}

// entry reads the header of a study's file.
func (d *Dir) entry(id string) (e Entry, err error) {
	f, err := d.open(id)
	if err != nil {
		return e, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	h, err := backup.ReadHeader(f)
	if err != nil {
		return e, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if h.Study == nil || h.Study.ID != id {
		return e, fmt.Errorf("%s: %w: it is no archive of study %s", f.Name(), backup.ErrFormat, id)
	}
	info, err := f.Stat()
	if err != nil {
		return e, err
	}
	return Entry{Study: *h.Study, Archived: h.Created, Bytes: info.Size()}, nil
}

// List returns the studies by name, and those of a name by when they were archived. Files
// that cannot be read are left out; the second error joins what is wrong with each.
func (d *Dir) List(ctx context.Context) (all []Entry, unreadable, err error) {
	files, err := os.ReadDir(d.path)
	if err != nil {
		return nil, nil, fmt.Errorf("list the archive: %w", err)
	}
	for _, f := range files {
		id, ok := cutSuffix(f)
		if !ok {
			continue
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		switch e, err := d.entry(id); {
		case err == nil:
			all = append(all, e)
		case !errors.Is(err, fs.ErrNotExist): // one that is gone was restored meanwhile
			unreadable = errors.Join(unreadable, err)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Archived.Compare(b.Archived))
	})
	return all, unreadable, nil
}

func cutSuffix(f fs.DirEntry) (id string, ok bool) {
	name := f.Name()
	if !f.Type().IsRegular() || filepath.Ext(name) != suffix {
		return "", false
	}
	id = name[:len(name)-len(suffix)]
	return id, isID.MatchString(id)
}

// Find returns a study by its id or its name: of several with a name, the one that was
// archived last. The error wraps ErrNotFound if there is none.
func (d *Dir) Find(ctx context.Context, nameOrID string) (Entry, error) {
	if isID.MatchString(nameOrID) {
		e, err := d.entry(nameOrID)
		if !errors.Is(err, fs.ErrNotExist) {
			return e, err
		}
	}
	all, unreadable, err := d.List(ctx)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range slices.Backward(all) {
		if e.Name == nameOrID {
			return e, nil
		}
	}
	return Entry{}, errors.Join(fmt.Errorf("study %q: %w", nameOrID, ErrNotFound), unreadable)
}

// Read checks a study's file, and then calls visit for each of its records.
func (d *Dir) Read(ctx context.Context, id string, visit func(key string, value []byte) error) error {
	f, err := d.open(id)
	if err != nil {
		return fmt.Errorf("read the archived study %s: %w", id, err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	if _, err := backup.Check(ctx, f); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	_, err = backup.Read(f, visit)
	return err
}

// Remove deletes a study's file; it is no error if there is none.
func (d *Dir) Remove(id string) error {
	if err := os.Remove(d.file(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete the archived study %s: %w", id, err)
	}
	return nil
}
