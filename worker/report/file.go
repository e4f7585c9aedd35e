package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

const (
	// maxObject is the largest size of an object in a metrics file, in bytes.
	maxObject = 1 << 20
	// maxForeign is how many lines of a metrics file that are not objects are passed over.
	maxForeign = 64
)

// File reads a metrics file: a JSON object, or one a line. Each object is a report. The first one is held
// back until a second one follows or the program has ended, since a program may write its only object
// again and again. It is not safe for concurrent use.
type File struct {
	open func() (*os.File, error)
	name string
	emit func(Report)
	warn func(string)

	offset  int64  // of what was read
	tail    []byte // the last bytes before offset, to notice that the file was written anew
	pending []byte // read, but no whole object yet
	first   *Report
	objects int // those that were read
	lines   int // those before pending
	foreign int // lines that are not objects
	failed  error
}

// NewFile returns a reader of a file, which open opens for reading and which need not exist yet. It passes
// reports to emit, and what people should know of the rest to warn.
func NewFile(name string, open func() (*os.File, error), emit func(Report), warn func(string)) *File {
	return &File{open: open, name: name, emit: emit, warn: warn}
}

// Follow reads until ctx ends.
func (f *File) Follow(ctx context.Context) {
	for range backoff.Ticks(ctx, pollFile) {
		_ = f.readNew() // Finish tries again
		f.parse(false)
	}
}

// Finish reads the rest. The error says why there is no object.
func (f *File) Finish() error {
	if err := f.readNew(); err != nil && f.objects == 0 {
		return err
	}
	f.parse(true)
	if f.first != nil {
		f.emit(*f.first)
		f.first = nil
	}
	return f.failed
}

// readNew reads what was appended. A file that was written anew is read from its beginning.
func (f *File) readNew() error {
	file, err := f.open()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // opened for reading only
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", f.name, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", f.name)
	}
	before := make([]byte, len(f.tail))
	if _, err := file.ReadAt(before, f.offset-int64(len(before))); err != nil || !bytes.Equal(before, f.tail) {
		f.offset, f.tail, f.pending, f.first, f.objects, f.lines, f.foreign, f.failed = 0, nil, nil, nil, 0, 0, 0, nil
	}
	for f.failed == nil {
		buffer := make([]byte, 64<<10)
		n, err := file.ReadAt(buffer, f.offset)
		f.offset += int64(n)
		f.pending = append(f.pending, buffer[:n]...)
		f.tail = bytes.Clone(last(append(f.tail, buffer[:n]...), 64))
		if err == io.EOF || n == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", f.name, err)
		}
		f.parse(false)
	}
	return nil
}

func last(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// parse takes the whole objects of pending. over says that nothing follows.
func (f *File) parse(over bool) {
	for f.failed == nil {
		f.pending = bytes.TrimPrefix(f.pending, []byte("\ufeff"))
		trimmed := bytes.TrimLeft(f.pending, space)
		f.lines += bytes.Count(f.pending[:len(f.pending)-len(trimmed)], []byte("\n"))
		if f.pending = trimmed; len(trimmed) == 0 {
			break
		}
		clean, n := object(trimmed)
		switch {
		case trimmed[0] != '{':
			if !f.pass(over, "is not a JSON object") {
				return
			}
		case n == 0 && !over:
			if len(trimmed) > maxObject {
				f.failed = fmt.Errorf("%s has an object of more than %d bytes in line %d", f.name, maxObject, f.lines+1)
			}
			return
		case n == 0:
			if !f.pass(over, "is not a whole JSON object") {
				return
			}
		default:
			r, err := parseObject(clean)
			if err != nil {
				if !f.pass(over, "is not a JSON object") {
					return
				}
				continue
			}
			f.consume(r, n)
		}
	}
	if over && f.failed == nil && f.objects == 0 {
		f.failed = fmt.Errorf("%s is empty, and not a JSON object of metrics", f.name)
	}
}

// consume takes an object of n bytes.
func (f *File) consume(r Report, n int) {
	r.Origin = fmt.Sprintf("metrics.file is %s, line %d", f.name, f.lines+1)
	f.lines += bytes.Count(f.pending[:n], []byte("\n"))
	f.pending = f.pending[n:]
	f.objects++
	if f.first != nil {
		f.emit(*f.first)
		f.first = nil
	}
	if f.objects == 1 {
		f.first = &r
		return
	}
	f.emit(r)
}

// pass passes over a line that is no object, and reports whether it could: the line must have ended, and
// something else must be in the file.
func (f *File) pass(over bool, what string) bool {
	end := bytes.IndexByte(f.pending, '\n')
	if end < 0 && !over && len(f.pending) <= maxObject {
		return false
	}
	if end < 0 {
		end = len(f.pending)
	}
	text := cut(string(f.pending[:min(end, maxToken)]), maxToken)
	if f.foreign++; f.objects == 0 || f.foreign > maxForeign {
		f.failed = fmt.Errorf("%s: line %d %s of metrics: it starts with %q", f.name, f.lines+1, what, text)
		if f.objects > 0 {
			f.warn(f.failed.Error())
			f.failed, f.pending = nil, nil
		}
		return false
	}
	f.warn(fmt.Sprintf("line %d of metrics.file %s, and was not read: %q", f.lines+1, what, text))
	f.pending = f.pending[end:]
	return true
}

// parseObject reads an object of metrics. Fields that are not numbers are unreadable.
func parseObject(clean []byte) (Report, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(clean, &raw); err != nil {
		return Report{}, fmt.Errorf("not a JSON object of metrics: %w", err)
	}
	var d decoder // whose errors are of no interest: a file may hold other things
	metrics := d.metrics(raw)
	return Report{Metrics: metrics, Unreadable: d.unreadable}, nil
}
