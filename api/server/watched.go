package server

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

// watched is what a file says. The file is read again when it has changed. Safe for
// concurrent use.
type watched[T any] struct {
	file, otherwise string
	parse           func(file string) (T, error)
	log             *slog.Logger

	mu    sync.Mutex
	value T
	time  time.Time // of the file that was read
	size  int64
}

// watch reads a file. Otherwise says for the log what happens when a changed file cannot be
// parsed.
func watch[T any](file, otherwise string, parse func(file string) (T, error), log *slog.Logger) (*watched[T], error) {
	w := &watched[T]{file: file, otherwise: otherwise, parse: parse, log: log}
	if _, err := w.refresh(); err != nil {
		return nil, err
	}
	return w, nil
}

// get returns what the file says, or last said if it cannot be read now.
func (w *watched[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if changed, err := w.refresh(); err != nil && changed {
		w.log.Error("could not read a changed file; "+w.otherwise, "file", w.file, telemetry.LogError, err)
	}
	return w.value
}

// refresh reads the file if it has changed since it was last read.
func (w *watched[T]) refresh() (changed bool, err error) {
	info, err := os.Stat(w.file)
	if err != nil {
		return false, err
	}
	if info.ModTime().Equal(w.time) && info.Size() == w.size {
		return false, nil
	}
	w.time, w.size = info.ModTime(), info.Size()
	value, err := w.parse(w.file)
	if err == nil {
		w.value = value
	}
	return true, err
}

// eachLine calls do with each line of a file that is neither empty nor a comment. Its error
// names the line.
func eachLine(file string, do func(line string) error) (err error) {
	f, err := os.Open(file) //nolint:gosec // the operator names the file
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines, number := bufio.NewScanner(f), 1
	for ; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := do(line); err != nil {
			return fmt.Errorf("%s:%d: %w", file, number, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: the line is longer than %d KiB; want a file of text with shorter lines", file, number,
			bufio.MaxScanTokenSize>>10)
	} else if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return nil
}
