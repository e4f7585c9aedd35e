package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/gofrs/flock"
)

// Piece is a part of a file: a whole record, or bytes that hold none.
type Piece struct {
	At   int // where it begins
	Data []byte
	// Record says that Data is a record, without its frame.
	Record bool
}

// Salvage splits a file's content into its whole records and what is between them, in their order. A sound
// file has only records. So Salvage reads what Decode refuses.
func Salvage(content []byte, magic string) []Piece {
	var pieces []Piece
	from := 0 // where the bytes begin that are not in a piece yet
	if strings.HasPrefix(string(content[:min(len(content), len(magic)+1)]), magic+"\n") {
		from = len(magic) + 1
	}
	gap := func(to int) {
		if to > from {
			pieces = append(pieces, Piece{At: from, Data: content[from:to]})
		}
	}
	for at := from; at < len(content); {
		record, ok := frame(content[at:])
		if !ok {
			at++
			continue
		}
		gap(at)
		pieces = append(pieces, Piece{At: at, Data: record, Record: true})
		at += frameHeader + len(record)
		from = at
	}
	gap(len(content))
	return pieces
}

// InUse reports whether a Log has the file at path open. It is true, too, if that cannot be found out.
func InUse(path string) bool {
	err := whileUnused(path, func(*os.File) error { return nil })
	return err != nil && !errors.Is(err, fs.ErrNotExist)
}

// Read returns the content of a file that nobody has open, and changes nothing. The error wraps ErrInUse or
// ErrNotRegular, or is that of the file system.
func Read(path string) (content []byte, err error) {
	err = whileUnused(path, func(file *os.File) error {
		content, err = io.ReadAll(file)
		return err
	})
	return content, err
}

// whileUnused calls f with a file that nobody has open; until it returns, no Log opens the file.
func whileUnused(path string, f func(*os.File) error) (err error) {
	real, err := resolve(path)
	if err != nil {
		return err
	}
	file, err := os.Open(real)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lock := flock.New(real, flock.SetFlag(os.O_RDONLY))
	defer func() { err = errors.Join(err, lock.Close()) }()
	if locked, err := lock.TryRLock(); err != nil || !locked {
		if err == nil {
			err = ErrInUse
		}
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return f(file)
}
