package report

import (
	"context"
	"os"
	"syscall"
	"time"
)

// pollFile is how often a report file is looked at.
const pollFile = 200 * time.Millisecond

// Tail reads what a program appends to its report file. Not safe for concurrent
// use.
type Tail struct {
	path   string
	lines  Lines
	offset int64
}

// NewTail reads the lines of the file at path to emit, as Lines does. The file
// need not be there yet.
func NewTail(path string, emit func(line []byte)) *Tail {
	return &Tail{path: path, lines: Lines{Emit: emit}}
}

// Follow reads until ctx ends.
func (t *Tail) Follow(ctx context.Context) {
	poll := time.NewTicker(pollFile)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			t.read()
		}
	}
}

// read reads what is new. A program may remove or replace the file; one that is
// shorter than before is read from its beginning.
func (t *Tail) read() {
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
		t.lines.Add(buffer[:n])
		if err != nil || n == 0 {
			return
		}
	}
}

// Finish reads the rest, with a last line that has no end.
func (t *Tail) Finish() {
	t.read()
	t.lines.Flush()
}
