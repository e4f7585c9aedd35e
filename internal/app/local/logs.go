package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

const (
	// logPart is the maximum number of bytes of a log that are sent at once.
	logPart = 64 << 10
	// logPause is the interval at which a followed log is checked.
	logPause = 500 * time.Millisecond
)

// TailLogs implements server.Backend. It reads the logs from disk, even while the study
// runs.
func (k *kept) TailLogs(ctx context.Context, nameOrID string, number int, o coordinator.LogTail) iter.Seq2[coordinator.LogPart, error] {
	return func(yield func(coordinator.LogPart, error) bool) {
		if err := k.tailLogs(ctx, nameOrID, number, o, yield); err != nil {
			yield(coordinator.LogPart{}, err)
		}
	}
}

func (k *kept) tailLogs(ctx context.Context, nameOrID string, number int, o coordinator.LogTail,
	yield func(coordinator.LogPart, error) bool) error {
	id, a, err := k.attempt(ctx, nameOrID, number, o.Attempt)
	if err != nil {
		return err
	}
	dir, err := k.from.dirOf(a)
	if err != nil {
		return err
	}
	sent := map[messaging.LogStream]int64{} // how much of each log has been sent
	for {
		for _, s := range o.Streams {
			at, begun := sent[s]
			more, err := k.sendLog(dir, id, s, at, begun, o.Lines, yield)
			if errors.Is(err, fs.ErrNotExist) && a.State == study.AttemptOpen {
				continue // its program is about to start
			}
			if err != nil || !more.goesOn {
				return err
			}
			sent[s] = more.at
		}
		if !o.Follow || k.idle != nil || a.State != study.AttemptOpen {
			return nil
		}
		if !backoff.Sleep(ctx, logPause) {
			return context.Cause(ctx)
		}
		// Read the trial before its logs, so that everything its program wrote before the
		// end is sent.
		t, err := k.from.trial(ctx, id.Study, number)
		if err != nil {
			return err
		}
		if a, err = coordinator.Taken(&t, id.Attempt); err != nil {
			return err
		}
	}
}

// attempt finds the attempt whose log is requested.
func (k *kept) attempt(ctx context.Context, nameOrID string, number, attempt int) (messaging.AttemptID, *record.Attempt, error) {
	r, t, err := k.trial(ctx, nameOrID, number)
	if err != nil {
		return messaging.AttemptID{}, nil, err
	}
	a, err := coordinator.Taken(t, attempt)
	if err != nil {
		return messaging.AttemptID{}, nil, err
	}
	return messaging.AttemptID{Study: r.Study.ID, Trial: number, Attempt: a.Number, Nonce: a.Nonce}, a, nil
}

// progress is how much of a log has been sent, and whether its reader wants more.
type progress struct {
	at     int64
	goesOn bool
}

// sendLog sends a log below a worker's directory from an offset on or, if nothing of it has been sent before, its
// last lines.
func (k *kept) sendLog(dir string, id messaging.AttemptID, s messaging.LogStream, at int64, begun bool, lines int,
	yield func(coordinator.LogPart, error) bool) (p progress, err error) {
	l, err := logfile.Open(dir, id, s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, fmt.Errorf("%w: no log of attempt %d of trial %d: %w", study.ErrNotFound, id.Attempt, id.Trial, err)
	case err != nil:
		return p, fmt.Errorf("open a log: %w", err)
	}
	defer func() { _ = l.Close() }() // opened for reading only
	if !begun {
		if at, err = l.Tail(lines); err != nil {
			return p, err
		}
	}
	for at < l.Size() {
		data := make([]byte, min(logPart, l.Size()-at))
		n, err := l.ReadAt(data, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return p, fmt.Errorf("read a log: %w", err)
		}
		if n == 0 {
			break // the file was truncated meanwhile
		}
		at += int64(n)
		if !yield(coordinator.LogPart{Attempt: id.Attempt, Stream: s, Data: data[:n]}, nil) {
			return progress{at: at}, nil
		}
	}
	return progress{at: at, goesOn: true}, nil
}

// maxLog bounds a log in bytes. With the one before it, it takes at most twice as much.
const maxLog = 32 << 20

// logFile is a log of bounded size: when it is full, it takes the place of the one before it,
// whose name ends with ".1", and a new one begins. It is safe for concurrent use.
type logFile struct {
	path string
	max  int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// openLog opens a log, which goes on where an earlier process has left it.
func openLog(path string, limit int64) (*logFile, error) {
	l := &logFile{path: path, max: limit}
	return l, l.open()
}

func (l *logFile) open() (err error) {
	if l.file, err = os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	info, err := l.file.Stat()
	if err == nil {
		l.size = info.Size()
	}
	return err
}

// Write implements io.Writer. A line is never split. If no new file can be begun, the old one
// goes on.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(line)) > l.max && os.Rename(l.path, l.path+".1") == nil {
		full := l.file
		if err := l.open(); err != nil {
			l.file = full
		} else if err := full.Close(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return n, err
}

// Close implements io.Closer.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
