package report

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

// pollFile is the interval at which a report file is checked.
const pollFile = 200 * time.Millisecond

// Tail reads what a program appends to its report file. It is not safe for concurrent
// use.
type Tail struct {
	path   string
	lines  Lines
	offset int64
}

// NewTail passes the lines of the file at path to emit, as Lines does. The file need
// not exist yet.
func NewTail(path string, emit func(line Line)) *Tail {
	return &Tail{path: path, lines: Lines{Emit: emit}}
}

// Follow reads until ctx ends.
func (t *Tail) Follow(ctx context.Context) {
	for range backoff.Ticks(ctx, pollFile) {
		t.readNew()
	}
}

// readNew reads new data. A program may remove or replace the file; a file that became
// shorter is read from its beginning.
func (t *Tail) readNew() {
	// A named pipe must not block until there is a writer.
	file, err := os.OpenFile(t.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }() // opened for reading only
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

// Finish reads the rest, including an unterminated last line.
func (t *Tail) Finish() {
	t.readNew()
	t.lines.Flush()
}
