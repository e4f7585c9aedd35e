// Package wal keeps records in a file to which one process at a time appends. Each record has
// checksums, and is on the disk when Sync returns. A record that was cut off, because the
// process or the machine died while it was written, is dropped when the file is opened again.
package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/gofrs/flock"
)

var (
	// ErrInUse means that another process, or another Log of this one, has the file open.
	ErrInUse = errors.New("the file is already in use")
	// ErrDamaged means that a record in the middle of the file does not have its checksum, or
	// that the file is not a log of this kind.
	ErrDamaged = errors.New("the file is damaged")
	// ErrBroken means that an earlier write failed, so that nothing more is written.
	ErrBroken = errors.New("an earlier write to the file failed")
	// ErrNotRegular means that a path leads to something other than a regular file: a directory, a device,
	// a pipe, a socket, or by a symbolic link to nothing.
	ErrNotRegular = errors.New("not a regular file")
	// ErrOtherName means that a file has another name than its path, so that a new file at that path would
	// leave its records in two files.
	ErrOtherName = errors.New("the file has another name")
)

// MaxRecord is the largest size of a record in bytes.
const MaxRecord = 1 << 28

// A frame is the record's length, a checksum of these four bytes, one of the record, and the
// record. So a damaged length is told from the end of the file.
const frameHeader = 12

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	order      = binary.LittleEndian
)

// Log is an open file. Only Sync is safe for concurrent use, also beside the other methods.
type Log struct {
	path, magic string
	lock        *flock.Flock
	size        int64
	flush       func(*os.File) error // fsync

	// syncing is held by who syncs the file or replaces it, and synced is how much of written is on the
	// disk.
	syncing sync.Mutex
	synced  atomic.Int64

	mu      sync.Mutex // guards the fields below; held only briefly
	file    *os.File
	written int64
	broken  error
}

// Open opens the file at path, or creates it, and returns its records. magic is the file's
// first line, which names its format and version. cut is how many bytes at the end were dropped
// because they were not a whole record. Until Close, nobody else can open the file, also not
// under another name. The error wraps ErrInUse, ErrNotRegular or ErrDamaged, or is that of the file system.
func Open(path, magic string) (l *Log, records [][]byte, cut int64, err error) {
	l = &Log{magic: magic + "\n", flush: (*os.File).Sync}
	if l.path, l.file, l.lock, err = open(path); err != nil {
		return nil, nil, 0, err
	}
	opened := l
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.file.Close(), opened.lock.Close())
		}
	}()
	data, err := io.ReadAll(l.file)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("read %s: %w", path, err)
	}
	var whole int
	if len(data) < len(l.magic) && strings.HasPrefix(l.magic, string(data)) { // new, or cut off while it was created
		if whole, err = l.file.WriteAt([]byte(l.magic), 0); err != nil {
			return nil, nil, 0, fmt.Errorf("write %s: %w", path, err)
		}
		cut = int64(len(data))
	} else {
		if records, whole, err = Decode(data, magic); err != nil {
			return nil, nil, 0, fmt.Errorf("%s: %w", path, err)
		}
		if cut = int64(len(data) - whole); cut > 0 {
			if err := l.file.Truncate(int64(whole)); err != nil {
				return nil, nil, 0, fmt.Errorf("cut %s: %w", path, err)
			}
		}
	}
	l.size = int64(whole)
	if err := l.file.Sync(); err != nil { // a process that was killed may not have synced its last records
		return nil, nil, 0, fmt.Errorf("sync %s: %w", path, err)
	}
	return l, records, cut, syncDir(filepath.Dir(l.path))
}

// Decode returns the records of a file's content, which share its memory, and how many bytes
// they take. The bytes behind them are no whole record, and no whole record follows. The error
// wraps ErrDamaged.
func Decode(data []byte, magic string) (records [][]byte, whole int, err error) {
	if !strings.HasPrefix(string(data[:min(len(data), len(magic)+1)]), magic+"\n") {
		return nil, 0, fmt.Errorf("%w: it does not begin with the line %q", ErrDamaged, magic)
	}
	whole = len(magic) + 1
	for whole < len(data) {
		record, ok := frame(data[whole:])
		if !ok {
			break
		}
		records = append(records, record)
		whole += frameHeader + len(record)
	}
	for at := whole + 1; at < len(data); at++ {
		if _, ok := frame(data[at:]); ok {
			return nil, 0, fmt.Errorf("%w: the record at byte %d does not have its checksum, but one at byte %d has", ErrDamaged, whole, at)
		}
	}
	return records, whole, nil
}

// frame returns the record of the frame at the beginning of data; false if there is none.
func frame(data []byte) ([]byte, bool) {
	if len(data) < frameHeader || order.Uint32(data[4:]) != crc32.Checksum(data[:4], castagnoli) {
		return nil, false
	}
	n := int64(order.Uint32(data))
	if n > MaxRecord || n > int64(len(data)-frameHeader) {
		return nil, false
	}
	record := data[frameHeader : frameHeader+n]
	return record, order.Uint32(data[8:]) == crc32.Checksum(record, castagnoli)
}

// appendFrame appends a record's frame to data.
func appendFrame(data, record []byte) []byte {
	data = order.AppendUint32(data, uint32(len(record)))
	data = order.AppendUint32(data, crc32.Checksum(data[len(data)-4:], castagnoli))
	data = order.AppendUint32(data, crc32.Checksum(record, castagnoli))
	return append(data, record...)
}

// Size returns the size of the file in bytes.
func (l *Log) Size() int64 { return l.size }

// Append adds a record. It survives a kill of the process, but only after a Sync that of the machine.
// If a part of a failed write cannot be taken back, all further calls fail with ErrBroken.
func (l *Log) Append(record []byte) error {
	if len(record) > MaxRecord {
		return fmt.Errorf("write %s: a record of %d bytes; at most %d are accepted", l.path, len(record), MaxRecord)
	}
	data := appendFrame(make([]byte, 0, frameHeader+len(record)), record)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	if _, err := l.file.WriteAt(data, l.size); err != nil {
		err = fmt.Errorf("write %s: %w", l.path, err)
		if back := l.file.Truncate(l.size); back != nil {
			err = l.breaks(errors.Join(err, back))
		}
		return err
	}
	l.size += int64(len(data))
	l.written += int64(len(data))
	return nil
}

// Durable returns how many bytes of the file are on the disk.
func (l *Log) Durable() int64 { return l.size - (l.written - l.synced.Load()) }

// Written returns how many bytes have been appended since the file was opened, for Sync.
func (l *Log) Written() int64 { return l.written }

// Sync returns nil once all records are on the disk that were appended when Written returned upTo.
// Calls at the same time share an fsync. After a failed one, all further calls that have something to
// do fail with ErrBroken.
func (l *Log) Sync(upTo int64) error {
	if l.synced.Load() >= upTo {
		return nil
	}
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if l.synced.Load() >= upTo { // by the call that this one has waited for
		return nil
	}
	l.mu.Lock()
	file, written, broken := l.file, l.written, l.broken
	l.mu.Unlock()
	if broken != nil {
		return broken
	}
	if err := l.flush(file); err != nil { // os.ErrInvalid after Close
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.breaks(fmt.Errorf("sync %s: %w", l.path, err))
	}
	l.synced.Store(written)
	return nil
}

// breaks makes all further calls fail, and returns why. l.mu MUST be held.
func (l *Log) breaks(err error) error {
	l.broken = fmt.Errorf("%w: %w", ErrBroken, err)
	return l.broken
}

// Replace replaces all records by others, at once: a process that dies meanwhile leaves either
// all of the old ones or all of the new ones. The error wraps ErrOtherName, and nothing has
// changed, if the file has a hard link, is bind mounted by itself, or was moved away: then it can only grow.
func (l *Log) Replace(records [][]byte) error {
	data := []byte(l.magic)
	for _, r := range records {
		data = appendFrame(data, r)
	}
	l.syncing.Lock() // nobody syncs the file that goes
	defer l.syncing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	file, lock, err := l.replace(data)
	if err != nil {
		return fmt.Errorf("write %s anew: %w", l.path, err)
	}
	_, _ = l.file.Close(), l.lock.Close() // the old file has no name any more
	l.file, l.lock, l.size = file, lock, int64(len(data))
	if err := syncDir(filepath.Dir(l.path)); err != nil {
		return err
	}
	l.synced.Store(l.written)
	return nil
}

// replace writes a file beside the log's and gives it the log's name once it is on the disk. It returns the
// open file, which is locked BEFORE it has that name: nobody can open it in between.
func (l *Log) replace(data []byte) (file *os.File, lock *flock.Flock, err error) {
	info, err := l.file.Stat()
	if err != nil {
		return nil, nil, err
	}
	// A file that was removed is written again. One that was moved, or whose name another file has now, is not.
	now, err := os.Stat(l.path)
	if links(info) > 1 || err == nil && !os.SameFile(info, now) || errors.Is(err, fs.ErrNotExist) && links(info) > 0 {
		return nil, nil, ErrOtherName
	}
	file, err = os.CreateTemp(filepath.Dir(l.path), filepath.Base(l.path)+".*")
	if err != nil {
		return nil, nil, err
	}
	lock = lockOf(file.Name())
	_, err = file.Write(data)
	if err = errors.Join(err, file.Chmod(info.Mode().Perm()), file.Sync()); err == nil {
		_, err = lock.TryLock() // nobody else knows the file
	}
	if err == nil {
		if err = os.Rename(file.Name(), l.path); errors.Is(err, syscall.EBUSY) { // a bind mount of the file
			err = fmt.Errorf("%w: %w", ErrOtherName, err)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close(), file.Close(), os.Remove(file.Name()))
	}
	return file, lock, nil
}

// syncDir makes the renaming of a file in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission) {
		err = nil // not every system can do that
	}
	return errors.Join(err, d.Close())
}

// Close closes the file and lets others open it. All that was appended is on the disk then.
func (l *Log) Close() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.file != nil {
		if l.broken == nil {
			if err = l.file.Sync(); err == nil {
				l.synced.Store(l.written)
			}
		}
		err = errors.Join(err, l.file.Close())
		l.file = nil
	}
	return errors.Join(err, l.lock.Close())
}
