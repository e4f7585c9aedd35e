package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
)

// mostLog is how much of the end of a local log is read, in bytes.
const mostLog = 4 << 20

// printLocal prints the log of a trial of fantasia run, from its state directory.
func (f *logFlags) printLocal(cmd *cobra.Command, a *app, r *remote, args []string) error {
	if f.follow {
		return usagef(cmd, "--follow is for a study on a server; the log of a local trial is a file: see fantasia trial get")
	}
	t, err := r.trial(cmd, args)
	if err != nil {
		return err
	}
	if _, err := f.request(cmd, []string{"any", "1"}); err != nil { // checks the flags
		return err
	}
	attempts := t.GetAttempts()
	number := int(f.attempt)
	if number == 0 {
		number = len(attempts)
	}
	if number < 1 || number > len(attempts) {
		return fmt.Errorf("trial %d has %d attempts, and no attempt %d", t.GetNumber(), len(attempts), f.attempt)
	}
	dir := attemptDir(r.state, attempts[number-1])
	for _, stream := range []struct {
		name string
		to   io.Writer
	}{{"stdout", a.Stdout}, {"stderr", a.Stderr}} {
		if f.stream != "" && f.stream != stream.name {
			continue
		}
		text, err := lastLines(filepath.Join(dir, stream.name+".log"), int(f.lines))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, err := io.WriteString(stream.to, text); err != nil {
			return fmt.Errorf("write a log: %w", err)
		}
	}
	return nil
}

// attemptDir is the directory of an attempt's log. The state directory may have been
// moved since.
func attemptDir(state string, a *fantasiav1.Attempt) string {
	if _, below, ok := strings.Cut(filepath.ToSlash(a.GetLogs()), "/worker/trials/"); ok {
		return filepath.Join(state, "worker", "trials", filepath.FromSlash(below))
	}
	return a.GetLogs()
}

// lastLines returns the last lines of a file.
func lastLines(path string, lines int) (text string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read a log: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read a log: %w", err)
	}
	content, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-mostLog), mostLog))
	if err != nil {
		return "", fmt.Errorf("read a log: %w", err)
	}
	all := strings.SplitAfter(string(content), "\n")
	if n := len(all); all[n-1] == "" {
		all = all[:n-1]
	}
	return strings.Join(all[max(0, len(all)-lines):], ""), nil
}
