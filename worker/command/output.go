package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/fantasia-hpo/fantasia/worker/report"
)

const (
	// tailSize is the size of the end of an output that is kept for messages.
	tailSize = 4 << 10
	// tailLines is the number of lines of it that are shown.
	tailLines = 10
)

// output handles one output of a program: its beginning goes to a log file of limited
// size, each line to split.Emit, and its end is kept. Its memory is limited for any
// output.
type output struct {
	path  string
	limit int64
	split report.Lines

	file    *os.File
	before  int64        // bytes in the log from earlier children
	kept    int64        // bytes in the log
	at      atomic.Int64 // where the log ends
	dropped int64        // bytes that were dropped
	logErr  error

	mu    sync.Mutex // guards what others read while the program runs
	total int64
	lines int64
	tail  []byte
}

// newOutput creates the log file.
func newOutput(path string, limit int64, emit func(line report.Line)) (*output, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	o := &output{path: path, limit: limit, split: report.Lines{Emit: emit}, file: file, before: info.Size()}
	o.at.Store(o.before)
	return o, nil
}

// Write never fails, as a full disk must not end the program.
func (o *output) Write(p []byte) (int, error) {
	o.log(p)
	o.remember(p)
	o.split.Add(p)
	return len(p), nil
}

func (o *output) log(p []byte) {
	keep := min(int64(len(p)), o.limit-o.kept)
	if o.logErr != nil {
		keep = 0
	}
	if keep > 0 {
		n, err := o.file.Write(p[:keep])
		o.logErr = err
		keep = int64(n)
	}
	o.kept += keep
	o.at.Store(o.before + o.kept)
	o.dropped += int64(len(p)) - keep
}

func (o *output) remember(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	o.lines += int64(bytes.Count(p, []byte("\n")))
	if len(p) > tailSize {
		p = p[len(p)-tailSize:]
	}
	o.tail = append(o.tail, p...)
	if n := len(o.tail) - tailSize; n > tailSize {
		o.tail = append(o.tail[:0], o.tail[n:]...)
	}
}

// close emits an incomplete last line, notes in the log what was dropped, and closes
// it.
func (o *output) close() error {
	o.split.Flush()
	if o.dropped > 0 && o.logErr == nil {
		_, o.logErr = fmt.Fprintf(o.file, "\n[fantasia: %d further bytes were dropped; the last lines were]\n%s\n", o.dropped, o.lastWords())
	}
	if err := o.file.Close(); o.logErr == nil {
		o.logErr = err
	}
	return o.logErr
}

// counts returns how many bytes and line ends were written.
func (o *output) counts() (total, lines int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total, o.lines
}

// lastWords returns the last lines, at most tailSize bytes of them.
func (o *output) lastWords() string {
	o.mu.Lock()
	tail := o.tail[max(0, len(o.tail)-tailSize):]
	text := strings.ToValidUTF8(string(tail), "�")
	whole := o.total <= tailSize
	o.mu.Unlock()
	text = strings.ReplaceAll(strings.TrimRight(text, "\r\n \t"), "\x00", "")
	lines := strings.Split(text, "\n")
	if !whole && len(lines) > 1 {
		lines = lines[1:] // the first is incomplete
	}
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
