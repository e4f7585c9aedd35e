package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

const (
	// maxLogRequests is how many requests for logs may wait. Further ones are
	// dropped: whoever asks asks again.
	maxLogRequests = 32
	// logTimeout bounds the sending of one answer.
	logTimeout = 5 * time.Second
)

// answerLogs answers requests for logs, one after the other, until ctx ends.
func (r *run) answerLogs(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-r.logs:
			sending, cancel := context.WithTimeout(ctx, logTimeout)
			if err := r.options.Bus.SendLog(sending, r.logPart(&c)); err != nil && ctx.Err() == nil {
				r.options.Logger.Warn("a part of a log could not be sent",
					telemetry.LogTrial, c.Trial, telemetry.LogAttempt, c.Attempt, telemetry.LogError, err)
			}
			cancel()
		}
	}
}

// logPart reads what is asked for.
func (r *run) logPart(c *messaging.Control) *messaging.LogPart {
	p := &messaging.LogPart{
		Version: messaging.SchemaVersion, AttemptID: c.AttemptID, Worker: r.options.Name,
		Request: c.Logs.ID, Stream: c.Logs.Stream, Offset: c.Logs.Offset,
		Running: r.registry.runs(c.AttemptID), // BEFORE the log is read: what comes later is asked for again
	}
	if r.options.NoLogs != "" {
		p.Missing = r.options.NoLogs
		return p
	}
	switch err := readLog(p, r.options.StateDir, c.Logs); {
	case errors.Is(err, fs.ErrNotExist) && p.Running: // its program has not been started yet
	case errors.Is(err, fs.ErrNotExist):
		p.Missing = fmt.Sprintf("the %s of attempt %d does not exist on worker %s: it was removed, or never written",
			c.Logs.Stream, c.Attempt, p.Worker)
	case err != nil:
		p.Missing = evaluation.Bounded(fmt.Sprintf("the %s of attempt %d: %v", c.Logs.Stream, c.Attempt, err), messaging.MaxReference)
	}
	return p
}

// readLog fills in the part that is asked for.
func readLog(p *messaging.LogPart, dir string, request *messaging.LogRequest) (err error) {
	l, err := logfile.Open(dir, p.AttemptID, p.Stream)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if p.Size = l.Size(); request.Lines > 0 {
		if p.Offset, err = l.Tail(request.Lines); err != nil {
			return err
		}
	}
	data := make([]byte, messaging.MaxLogData)
	n, err := l.ReadAt(data, p.Offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	p.Data = data[:n]
	return err
}
