package jobsidecar

import (
	"bytes"
	"context"
	"os"
	"syscall"
	"time"
)

// maxLine bounds a line that is read; longer ones are skipped.
const maxLine = 1 << 20

// tail reads the lines that a program appends to a file.
type tail struct {
	path    string
	emit    func(line []byte)
	offset  int64
	partial []byte
	tooLong bool
}

// follow reads until ctx ends.
func (t *tail) follow(ctx context.Context) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.read()
		}
	}
}

// finish reads the rest, with a last line that has no end.
func (t *tail) finish() {
	t.read()
	t.end()
}

// read reads what is new. A file that is shorter than before is read from its
// beginning.
func (t *tail) read() {
	// Not to wait for a writer, should the program have put a pipe there.
	file, err := os.OpenFile(t.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if info.Size() < t.offset {
		t.offset = 0
	}
	buffer := make([]byte, 32<<10)
	for t.offset < info.Size() {
		n, err := file.ReadAt(buffer, t.offset)
		t.offset += int64(n)
		t.split(buffer[:n])
		if err != nil || n == 0 {
			return
		}
	}
}

func (t *tail) split(data []byte) {
	for {
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		if t.tooLong = t.tooLong || len(t.partial)+len(line) > maxLine; t.tooLong {
			t.partial = nil
		} else {
			t.partial = append(t.partial, line...)
		}
		if !ended {
			return
		}
		t.end()
		data = rest
	}
}

func (t *tail) end() {
	if len(t.partial) > 0 {
		t.emit(t.partial)
	}
	t.partial, t.tooLong = t.partial[:0], false
}
