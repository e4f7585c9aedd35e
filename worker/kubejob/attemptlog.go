package kubejob

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

const (
	// maxLog is the largest size of one attempt's log on the worker's disk, in bytes.
	maxLog = 16 << 20
	// MaxLogs is what the logs of ended attempts may take there, for worker.Options.KeepTrials.
	MaxLogs = 256 << 20
)

// attemptLog keeps what an attempt's program writes where package logfile finds it, so that
// it outlives the Job. Its methods are safe for concurrent use and never fail, since a full
// disk must not end the attempt.
type attemptLog struct {
	folder string // empty: nothing is kept
	log    *slog.Logger

	mu      sync.Mutex
	file    *os.File
	size    int64
	dropped int64
	closed  bool
	err     error // the first one
}

// newAttemptLog returns the log of an attempt below a worker's folder, which may be empty. It
// does not exist before it is opened.
func newAttemptLog(dir string, id messaging.AttemptID, log *slog.Logger) *attemptLog {
	if dir != "" {
		dir = filepath.Join(dir, logfile.Dir(id))
	}
	return &attemptLog{folder: dir, log: log}
}

// open creates the log. A log of an earlier process is written again, because a
// container's log is read from its beginning.
func (l *attemptLog) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folder == "" || l.file != nil || l.closed || l.err != nil {
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
}

func (l *attemptLog) warn() {
	if l.err != nil {
		l.log.Warn("cannot keep the log of an attempt", "folder", l.folder, telemetry.LogError, l.err)
	}
}
