package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
)

// mostLog is how much of the end of a stream is shown, in bytes.
const mostLog = 256 << 10

// localLog is the log of an attempt of fantasia run, for scripts.
type localLog struct {
	attemptLog
	// Stdout and Stderr are the ends of the streams.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// readLogs reads the logs of a trial's attempts from a state directory.
func readLogs(state string, t *fantasiav1.Trial) ([]localLog, error) {
	var logs []localLog
	for _, a := range attemptLogs(t) {
		l := localLog{attemptLog: a}
		dir := a.Logs
		// The state may have been moved since, or lie elsewhere on this machine.
		if _, below, ok := strings.Cut(filepath.ToSlash(dir), "/worker/trials/"); ok {
			dir = filepath.Join(state, "worker", "trials", filepath.FromSlash(below))
		}
		for name, text := range map[string]*string{"stdout.log": &l.Stdout, "stderr.log": &l.Stderr} {
			var err error
			if *text, err = endOf(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		logs = append(logs, l)
	}
	return logs, nil
}

// endOf is the end of a file, from the beginning of a line.
func endOf(path string) (text string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read a log: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read a log: %w", err)
	}
	skipped := max(0, info.Size()-mostLog)
	content, err := io.ReadAll(io.NewSectionReader(f, skipped, mostLog))
	if err != nil {
		return "", fmt.Errorf("read a log: %w", err)
	}
	text = strings.ToValidUTF8(string(content), "\ufffd")
	if _, rest, ok := strings.Cut(text, "\n"); ok && skipped > 0 {
		text = fmt.Sprintf("… %d bytes before this line\n", info.Size()-int64(len(rest))) + rest
	}
	return text, nil
}

// printLogs writes what became of each attempt and what its program wrote.
func printLogs(w io.Writer, t *fantasiav1.Trial, logs []localLog) error {
	if err := trialLogs(w, t); err != nil {
		return err
	}
	for _, l := range logs {
		for _, stream := range []struct{ name, text string }{{"stdout", l.Stdout}, {"stderr", l.Stderr}} {
			if stream.text == "" {
				continue
			}
			if err := say(w, "\n==> attempt %d, %s <==\n%s", l.Attempt, stream.name, strings.TrimRight(stream.text, "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}
