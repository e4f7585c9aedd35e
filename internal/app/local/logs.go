package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

const (
	// logPart is the most that is sent of a log at once, in bytes.
	logPart = 64 << 10
	// logPause is how often a log that is followed is looked at.
	logPause = 500 * time.Millisecond
)

// TailLogs implements server.Backend: it reads the logs from the disk, also while the
// study runs.
func (k *kept) TailLogs(ctx context.Context, nameOrID string, number int, o server.LogTail) iter.Seq2[server.LogPart, error] {
	return func(yield func(server.LogPart, error) bool) {
		if err := k.tailLogs(ctx, nameOrID, number, o, yield); err != nil {
			yield(server.LogPart{}, err)
		}
	}
}

func (k *kept) tailLogs(ctx context.Context, nameOrID string, number int, o server.LogTail, yield func(server.LogPart, error) bool) error {
	sent := map[messaging.LogStream]int64{} // how much of each log was sent
	for {
		// The trial is read first: what its program wrote before its end is then seen.
		id, a, err := k.attempt(ctx, nameOrID, number, o.Attempt)
		if err != nil {
			return err
		}
		o.Attempt = a.Number
		for _, s := range o.Streams {
			at, begun := sent[s]
			more, err := k.sendLog(id, s, at, begun, o.Lines, yield)
			if errors.Is(err, fs.ErrNotExist) && a.State == study.AttemptOpen {
				continue // its program is about to start
			}
			if err != nil || !more.goesOn {
				return err
			}
			sent[s] = more.at
		}
		if !o.Follow || k.idle || a.State != study.AttemptOpen {
			return nil
		}
		select {
		case <-time.After(logPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// attempt finds the attempt whose log is asked for.
func (k *kept) attempt(ctx context.Context, nameOrID string, number, attempt int) (messaging.AttemptID, *record.Attempt, error) {
	r, err := k.study(ctx, nameOrID)
	if err != nil {
		return messaging.AttemptID{}, nil, err
	}
	if number < 1 || number > len(r.Trials) {
		return messaging.AttemptID{}, nil, noTrial(nameOrID, r, number)
	}
	a, err := coordinator.Taken(&r.Trials[number-1], attempt)
	if err != nil {
		return messaging.AttemptID{}, nil, fmt.Errorf("%w: %w", server.ErrNotFound, err)
	}
	return messaging.AttemptID{Study: r.Study.ID, Trial: number, Attempt: a.Number, Nonce: a.Nonce}, a, nil
}

// progress is how far a log was sent, and whether its reader wants more.
type progress struct {
	at     int64
	goesOn bool
}

// sendLog sends a log from a place on or, where nothing was sent of it before, its last
// lines.
func (k *kept) sendLog(id messaging.AttemptID, s messaging.LogStream, at int64, begun bool, lines int, yield func(server.LogPart, error) bool) (p progress, err error) {
	l, err := logfile.Open(k.n.workerDir(), id, s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, fmt.Errorf("%w: no log of attempt %d of trial %d: %w", server.ErrNotFound, id.Attempt, id.Trial, err)
	case err != nil:
		return p, fmt.Errorf("open a log: %w", err)
	}
	defer func() { _ = l.Close() }() // only read
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
			break // it was cut short meanwhile
		}
		at += int64(n)
		if !yield(server.LogPart{Attempt: id.Attempt, Stream: s, Data: data[:n]}, nil) {
			return progress{at: at}, nil
		}
	}
	return progress{at: at, goesOn: true}, nil
}
