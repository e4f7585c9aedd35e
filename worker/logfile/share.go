package logfile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// sharesFile is the name of the shares in the folder of a long-lived program.
const sharesFile = "shares"

// Ends are places in the logs of a program, in bytes.
type Ends struct{ Stdout, Stderr int64 }

func (e Ends) of(stream messaging.LogStream) int64 {
	if stream == messaging.LogStderr {
		return e.Stderr
	}
	return e.Stdout
}

// Share is an attempt's part of the logs of a long-lived program, which evaluates one
// trial after another.
type Share struct {
	Begin Ends
	End   *Ends // nil while the attempt runs
}

// Keep keeps the share of an attempt in the folder of its slot's program, which exists below a worker's. It
// replaces an earlier share of the attempt. All shares of a program are in one file, since a folder for each
// attempt would take more space than what a short trial writes.
func (s Share) Keep(dir string, slot int, id messaging.AttemptID) error {
	file, err := os.OpenFile(filepath.Join(dir, StreamDir(id.Study, slot), sharesFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the attempts' shares of the log: %w", err)
	}
	// Only a whole line counts. It begins a new one, in case a full disk has cut off the last.
	line := fmt.Sprintf("\n%d %d %d %d", id.Trial, id.Attempt, s.Begin.Stdout, s.Begin.Stderr)
	if s.End != nil {
		line += fmt.Sprintf(" %d %d", s.End.Stdout, s.End.Stderr)
	}
	_, err = file.WriteString(line + ";")
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write an attempt's share of the log: %w", err)
	}
	return nil
}

// findShare finds the share of an attempt, and the folder of the program that evaluated it. The error
// wraps fs.ErrNotExist if no program did.
func findShare(root *os.Root, id messaging.AttemptID) (folder string, part *Share, err error) {
	var errs []error
	for _, slot := range numbers(filepath.Join(root.Name(), "streams", id.Study), 0, &errs) {
		folder = StreamDir(id.Study, slot)
		if part, err = readShare(root, filepath.Join(folder, sharesFile), id); part != nil {
			return folder, part, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return "", nil, err
	}
	return "", nil, fmt.Errorf("study %q, trial %d, attempt %d: no such log: %w", id.Study, id.Trial, id.Attempt, fs.ErrNotExist)
}

// readShare returns the last share of an attempt in a file; nil if it has none.
func readShare(root *os.Root, name string, id messaging.AttemptID) (last *Share, err error) {
	file, _, err := openFile(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	of := fmt.Sprintf("%d %d ", id.Trial, id.Attempt)
	lines, number := bufio.NewScanner(file), 1
	for ; lines.Scan(); number++ {
		rest, mine := strings.CutPrefix(lines.Text(), of)
		if rest, whole := strings.CutSuffix(rest, ";"); mine && whole {
			if part := parseShare(rest); part != nil {
				last = part
			}
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s:%d: the line is longer than %d KiB, and no attempt's share of the log: the file is damaged",
			file.Name(), number, bufio.MaxScanTokenSize>>10)
	} else if err != nil {
		return nil, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	return last, nil
}

// parseShare reads what a line says of an attempt; nil if it is damaged.
func parseShare(line string) *Share {
	var s Share
	var end Ends
	n, err := fmt.Sscan(line, &s.Begin.Stdout, &s.Begin.Stderr, &end.Stdout, &end.Stderr)
	switch {
	case err == nil:
		s.End = &end
	case n != 2:
		return nil
	}
	return &s
}
