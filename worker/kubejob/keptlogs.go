package kubejob

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

const (
	// maxLog is the largest size of one attempt's log on the worker's disk, in bytes.
	maxLog = 16 << 20
	// maxLogs is the size of all of them, in bytes, beyond which the oldest are removed.
	maxLogs = 256 << 20
)

// keptLogs keeps what programs wrote, below a worker's folder where package logfile finds
// it, so that logs outlive their Jobs. It is safe for concurrent use.
type keptLogs struct {
	dir string // empty: nothing is kept
	log *slog.Logger

	mu    sync.Mutex
	kept  []keptLog // of ended attempts, oldest first
	total int64
}

// keptLog is the log of an ended attempt.
type keptLog struct {
	folder string
	size   int64
	at     time.Time
}

// openKeptLogs finds the logs that an earlier process kept.
func openKeptLogs(dir string, log *slog.Logger) (*keptLogs, error) {
	a := &keptLogs{dir: dir, log: log}
	if dir == "" {
		return a, nil
	}
	paths, err := filepath.Glob(filepath.Join(dir, "trials", "*", "*", "*", logfile.File(messaging.LogStdout)))
	if err != nil {
		return nil, fmt.Errorf("find the logs of attempts: %w", err)
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, fmt.Errorf("find the logs of attempts: %w", err)
		}
		a.kept = append(a.kept, keptLog{filepath.Dir(path), info.Size(), info.ModTime()})
		a.total += info.Size()
	}
	slices.SortFunc(a.kept, func(x, y keptLog) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.folder, y.folder)) })
	return a, nil
}

// addLog counts the log of an attempt that has ended, and removes the oldest ones if there
// are too many bytes.
func (a *keptLogs) addLog(folder string, size int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = slices.DeleteFunc(a.kept, func(k keptLog) bool { // of an earlier process
		if k.folder == folder {
			a.total -= k.size
		}
		return k.folder == folder
	})
	a.kept = append(a.kept, keptLog{folder: folder, size: size})
	a.total += size
	for a.total > maxLogs && len(a.kept) > 1 {
		oldest := a.kept[0]
		a.kept, a.total = a.kept[1:], a.total-oldest.size
		if err := os.RemoveAll(oldest.folder); err != nil {
			a.log.Warn("cannot remove an old log", "folder", oldest.folder, telemetry.LogError, err)
			continue
		}
		// The folders of the trial and of the study go with their last log.
		if trial := filepath.Dir(oldest.folder); os.Remove(trial) == nil {
			_ = os.Remove(filepath.Dir(trial)) // it has other trials
		}
	}
}

// attemptLog is the log of an attempt. Its methods are safe for concurrent use and
// never fail, since a full disk must not end the attempt.
type attemptLog struct {
	kept   *keptLogs
	folder string

	mu      sync.Mutex
	file    *os.File
	size    int64
	dropped int64
	closed  bool
	err     error // the first one
}

// attempt returns the log of an attempt, which does not exist before it is opened.
func (a *keptLogs) attempt(id messaging.AttemptID) *attemptLog {
	return &attemptLog{kept: a, folder: filepath.Join(a.dir, logfile.Dir(id))}
}

// open creates the log. A log of an earlier process is written again, because a
// container's log is read from its beginning.
func (l *attemptLog) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept.dir == "" || l.file != nil || l.closed || l.err != nil {
		return
	}
	if l.err = os.MkdirAll(l.folder, 0o700); l.err == nil {
		path := filepath.Join(l.folder, logfile.File(messaging.LogStdout))
		l.file, l.err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	}
}

// write adds a line after a prefix.
func (l *attemptLog) write(prefix string, line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || l.err != nil {
		return
	}
	n := int64(len(prefix) + len(line) + 1)
	if l.dropped > 0 || l.size+n > maxLog {
		l.dropped += n
		return
	}
	_, l.err = l.file.Write(slices.Concat([]byte(prefix), line, []byte("\n")))
	l.size += n
}

// close ends the log; last are the program's last lines.
func (l *attemptLog) close(last string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	defer l.warn()
	if l.file == nil {
		return
	}
	if l.dropped > 0 && l.err == nil {
		_, l.err = fmt.Fprintf(l.file, "[fantasia: %d further bytes were dropped; the last lines were]\n%s\n", l.dropped, last)
	}
	l.err = errors.Join(l.err, l.file.Close())
	l.file = nil
	l.kept.addLog(l.folder, l.size)
}

func (l *attemptLog) warn() {
	if l.err != nil {
		l.kept.log.Warn("cannot keep the log of an attempt", "folder", l.folder, telemetry.LogError, l.err)
	}
}
