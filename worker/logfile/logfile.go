// Package logfile finds and reads what the program of an attempt wrote, below the
// folder of the worker that ran it.
package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// Dir is an attempt's folder, below a worker's. The attempt's own program writes there.
func Dir(id messaging.AttemptID) string {
	return filepath.Join("trials", id.Study, strconv.Itoa(id.Trial), strconv.Itoa(id.Attempt))
}

// StreamDir is the folder of a slot's long-lived program, below a worker's.
func StreamDir(study string, slot int) string {
	return filepath.Join("streams", study, strconv.Itoa(slot))
}

// File is the name of an output's log in its folder.
func File(stream messaging.LogStream) string { return string(stream) + ".log" }

// Log is one output of one attempt. It reads what had been written when it was opened.
type Log struct {
	file       *os.File
	begin, end int64 // of the attempt's part of the file
}

// Open opens the log of an attempt below a worker's folder. The error wraps
// fs.ErrNotExist if the worker has never started the attempt's program, or its log was
// removed. Links that lead out of the folder are not followed.
func Open(dir string, id messaging.AttemptID, stream messaging.LogStream) (*Log, error) {
	if !messaging.ValidToken(id.Study) || id.Trial < 1 || id.Attempt < 1 || stream != messaging.LogStdout && stream != messaging.LogStderr {
		return nil, fmt.Errorf("%s of study %q, trial %d, attempt %d: no such log: %w", stream, id.Study, id.Trial, id.Attempt, fs.ErrNotExist)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read
	folder := Dir(id)
	var part *Share
	if _, err := root.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		if folder, part, err = findShare(root, id); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	file, size, err := openFile(root, filepath.Join(folder, File(stream)))
	if err != nil {
		return nil, err
	}
	l := &Log{file: file, end: size}
	if part != nil {
		l.begin = min(max(0, part.Begin.of(stream)), size)
		if part.End != nil {
			l.end = min(max(l.begin, part.End.of(stream)), size)
		}
	}
	return l, nil
}

// openFile opens a regular file and returns its size.
func openFile(root *os.Root, name string) (*os.File, int64, error) {
	// The program may have put a pipe in its place, which would block.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// Close closes the log.
func (l *Log) Close() error { return l.file.Close() }

// Size is how long the log is, in bytes.
func (l *Log) Size() int64 { return l.end - l.begin }

// ReadAt implements io.ReaderAt.
func (l *Log) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 || offset >= l.Size() {
		return 0, io.EOF
	}
	left := l.Size() - offset
	n, err := l.file.ReadAt(p[:min(int64(len(p)), left)], l.begin+offset)
	if err == nil && int64(len(p)) > left {
		err = io.EOF
	}
	return n, err
}

// Tail returns where the last lines begin, at most messaging.MaxLogTail bytes before
// the end. A last line without its end counts.
func (l *Log) Tail(lines int) (int64, error) {
	const block = 32 << 10
	size := l.Size()
	least := max(0, size-messaging.MaxLogTail)
	buffer := make([]byte, block)
	for end := size; end > least; {
		begin := max(least, end-block)
		part := buffer[:end-begin]
		if _, err := l.ReadAt(part, begin); err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("read the log: %w", err)
		}
		if end == size { // the end of the last line begins no other
			part = bytes.TrimSuffix(part, []byte("\n"))
		}
		for i := bytes.LastIndexByte(part, '\n'); i >= 0; i = bytes.LastIndexByte(part[:i], '\n') {
			if lines--; lines == 0 {
				return begin + int64(i) + 1, nil
			}
		}
		end = begin
	}
	return least, nil
}
