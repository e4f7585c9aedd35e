package command

import (
	"context"
	"os"
	"syscall"
	"time"
)

// pollReport is how often the report file is looked at.
const pollReport = 200 * time.Millisecond

// tailer reads what a program appends to its report file.
type tailer struct {
	path   string
	out    *output
	offset int64
}

// newTailer reads lines of the file at path to emit.
func newTailer(path string, emit func(line []byte)) *tailer {
	return &tailer{path: path, out: &output{emit: emit}}
}

// follow reads until ctx ends.
func (t *tailer) follow(ctx context.Context) {
	poll := time.NewTicker(pollReport)
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
func (t *tailer) read() {
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
		t.out.split(buffer[:n])
		if err != nil || n == 0 {
			return
		}
	}
}

// finish reads the rest, with a last line that has no end.
func (t *tailer) finish() {
	t.read()
	t.out.flush()
}
