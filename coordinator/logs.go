package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

var (
	// ErrNoLog says that there is no log: no worker has claimed the attempt, or its
	// log was removed, or its worker keeps no logs.
	ErrNoLog = study.NewError(study.ErrNotFound, "there is no log")
	// ErrLogAway says that the worker that has the log does not answer.
	ErrLogAway = study.NewError(study.ErrUnavailable, "the log cannot be read now")
)

const (
	// MaxTails is how many logs a replica reads at once.
	MaxTails = 64
	// tailEvery is how often a followed log is polled.
	tailEvery = 500 * time.Millisecond
	// tailFor bounds how long one request may follow a log, so that a reader who has forgotten it does not keep one of
	// the MaxTails places for ever.
	tailFor = 24 * time.Hour
)

// logPatience is how long each request to a worker waits for its answer. In a NATS
// cluster, the worker may send the first answer before all servers know the
// subscription.
var logPatience = [...]time.Duration{time.Second, 2 * time.Second, 3 * time.Second}

// LogTail says what to read of a log.
type LogTail struct {
	// Attempt is the attempt's number; 0 means the last one that a worker claimed.
	Attempt int
	// Streams are the outputs to read.
	Streams []messaging.LogStream
	// Lines is how many of the last lines of each output to start with, at least 1.
	Lines int
	// Follow continues until the attempt has ended.
	Follow bool
}

// LogPart is a part of a log, in order within its stream.
type LogPart struct {
	Attempt int
	Stream  messaging.LogStream
	Data    []byte
}

// TailLogs yields the end of a trial's output, read from the worker that ran it. Any
// replica can call it. It requests one part at a time, and the next one only after
// the caller has taken the last, so that a slow reader delays nobody else. The error
// wraps ErrNoLog or ErrLogAway, or comes from the bus or ctx.
func (c *Coordinator) TailLogs(ctx context.Context, study string, t *record.Trial, o LogTail) iter.Seq2[LogPart, error] {
	return func(yield func(LogPart, error) bool) {
		if err := c.tailLogs(ctx, study, t, o, yield); err != nil {
			yield(LogPart{}, err)
		}
	}
}

// errTaken says that the reader has stopped reading.
var errTaken = errors.New("the reader has gone")

func (c *Coordinator) tailLogs(ctx context.Context, study string, trial *record.Trial, o LogTail, yield func(LogPart, error) bool) error {
	a, err := Taken(trial, o.Attempt)
	if err != nil {
		return err
	}
	select {
	case c.tails <- struct{}{}:
		defer func() { <-c.tails }()
	default:
		return fmt.Errorf("%w: this replica is already reading %d logs, try again later", ErrLogAway, MaxTails)
	}
	ctx, cancel := context.WithTimeout(ctx, tailFor)
	defer cancel()
	t := &tail{
		c: c, attempt: a, id: messaging.AttemptID{Study: study, Trial: trial.Number, Attempt: a.Number, Nonce: a.Nonce},
		follow: o.Follow, answers: make(chan messaging.LogPart, 1), awaited: make(chan string, 1),
	}
	// Subscribe BEFORE the first request: an answer that comes earlier is lost.
	parts, err := c.o.Bus.Logs(ctx, a.Worker)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLogAway, err)
	}
	// The subscription ends with ctx, and listen with the subscription: cancel first, then wait.
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.listen(parts)
	}()
	defer func() { <-done }()
	defer cancel()
	err = t.run(ctx, o, func(s messaging.LogStream, data []byte) error {
		if !yield(LogPart{Attempt: a.Number, Stream: s, Data: data}, nil) {
			return errTaken
		}
		return nil
	})
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}

// Taken returns the trial's attempt with a number, or the last claimed one for 0. The
// error wraps ErrNoLog if no worker has claimed the attempt. An attempt that the leader has claimed, to withdraw
// it, has no log.
func Taken(t *record.Trial, number int) (*record.Attempt, error) {
	for i := len(t.Attempts) - 1; i >= 0; i-- {
		a := &t.Attempts[i]
		if number != 0 && a.Number != number {
			continue
		}
		if a.Worker != "" && a.Worker != messaging.LeaderName {
			return a, nil
		}
		if number != 0 {
			return nil, fmt.Errorf("%w: no worker has taken attempt %d of trial %d", ErrNoLog, number, t.Number)
		}
	}
	if number != 0 {
		return nil, fmt.Errorf("%w: trial %d has no attempt %d, its last one is %d", ErrNoLog, t.Number, number, len(t.Attempts))
	}
	return nil, fmt.Errorf("%w: no worker has taken trial %d yet", ErrNoLog, t.Number)
}

// tail reads the log of one attempt.
type tail struct {
	c       *Coordinator
	attempt *record.Attempt
	id      messaging.AttemptID
	follow  bool

	// awaited holds the id of the request in flight, if any; answers receives its
	// answer.
	awaited chan string
	answers chan messaging.LogPart
}

// listen picks the answer to the request in flight from all that the worker sends,
// until the subscription ends. The worker also answers other readers, and requests that this one has given up: each
// request has an id of its own, also when it is repeated.
func (t *tail) listen(parts <-chan messaging.LogPart) {
	for p := range parts {
		select {
		case id := <-t.awaited:
			if id == p.Request {
				t.answers <- p // does not wait: one request is awaited at a time
			} else {
				t.awaited <- id
			}
		default:
		}
	}
	close(t.answers)
}

// output holds how far a stream has been read.
type output struct {
	stream messaging.LogStream
	begun  bool
	next   int64 // where the next part begins
	until  int64 // where the log ended at the first read
	done   bool
}

// run reads the log to its end or, if it is followed, until the attempt has ended. An attempt may have only one of the
// outputs; it is an error only if it has none. A worker sends nothing by itself: a followed log is asked for
// again and again, so that nothing is left at the worker when a reader is gone.
func (t *tail) run(ctx context.Context, o LogTail, write func(messaging.LogStream, []byte) error) error {
	outputs := each.Of(o.Streams, func(s messaging.LogStream) *output { return &output{stream: s} })
	missing := ""
	for {
		more := false
		for _, out := range outputs {
			if out.done {
				continue
			}
			request := messaging.LogRequest{Stream: out.stream, Offset: out.next}
			if !out.begun {
				request = messaging.LogRequest{Stream: out.stream, Lines: o.Lines}
			}
			p, err := t.ask(ctx, request)
			if err != nil {
				return err
			}
			if p.Missing != "" {
				missing, out.done = p.Missing, true
				continue
			}
			if err := t.took(out, &p, write); err != nil {
				return err
			}
			more = more || len(p.Data) > 0
		}
		if !slices.ContainsFunc(outputs, func(o *output) bool { return !o.done }) {
			break
		}
		if !more {
			if !backoff.Sleep(ctx, tailEvery) {
				return context.Cause(ctx)
			}
		}
	}
	if missing != "" && !slices.ContainsFunc(outputs, func(o *output) bool { return o.begun }) {
		return fmt.Errorf("%w: %s%s", ErrNoLog, missing, t.placeOfLog())
	}
	return nil
}

// took writes a part and records how far the output has been read. A log that is not followed ends where it ended at
// the first read: a program that writes faster than it is read would never let it end.
func (t *tail) took(out *output, p *messaging.LogPart, write func(messaging.LogStream, []byte) error) error {
	if p.Size > 0 && !out.begun {
		out.begun, out.until = true, p.Size
	}
	if out.begun {
		out.next = p.Offset + int64(len(p.Data))
	}
	if len(p.Data) > 0 {
		if err := write(out.stream, p.Data); err != nil {
			return err
		}
	}
	if t.follow {
		out.done = !p.Running && out.next >= p.Size
	} else {
		out.done = out.next >= out.until
	}
	return nil
}

// ask sends a request and repeats it until the answer arrives. A request only reads, so a worker may answer it twice.
func (t *tail) ask(ctx context.Context, r messaging.LogRequest) (messaging.LogPart, error) {
	for _, patience := range logPatience {
		r.ID = rand.Text()
		t.awaited <- r.ID
		p, ok, err := t.try(ctx, &r, patience)
		if err != nil || ok {
			return p, err
		}
		if !t.heard() {
			return p, fmt.Errorf("%w: worker %s is gone%s", ErrLogAway, t.attempt.Worker, t.placeOfLog())
		}
	}
	return messaging.LogPart{}, fmt.Errorf("%w: worker %s does not answer: it is busy, runs an older version, "+
		"or lacks the NATS permission to send logs%s", ErrLogAway, t.attempt.Worker, t.placeOfLog())
}

// try sends a request once and waits for its answer.
func (t *tail) try(ctx context.Context, r *messaging.LogRequest, patience time.Duration) (p messaging.LogPart, ok bool, err error) {
	err = t.c.o.Bus.Control(ctx, &messaging.Control{
		Version: messaging.SchemaVersion, Kind: messaging.ControlLogs, Worker: t.attempt.Worker, AttemptID: t.id, Logs: r,
	})
	if err != nil {
		return p, false, fmt.Errorf("%w: ask worker %s: %w", ErrLogAway, t.attempt.Worker, err)
	}
	select {
	case p, ok = <-t.answers:
		if !ok {
			return p, false, fmt.Errorf("%w: NATS is not connected", ErrLogAway)
		}
		return p, true, nil
	case <-ctx.Done():
		return p, false, context.Cause(ctx)
	case <-time.After(patience):
	}
	select {
	case <-t.awaited: // nobody waits for the answer any more
		return p, false, nil
	case p, ok = <-t.answers: // the answer came just now
		return p, ok, nil
	}
}

// heard reports whether this replica has received a heartbeat from the worker within
// its lease. It decides what a reader is told: a worker that is gone will not answer later either.
func (t *tail) heard() bool {
	return slices.ContainsFunc(t.c.Workers(), func(w Worker) bool { return w.Worker == t.attempt.Worker })
}

// placeOfLog returns a text that says where the log is, if the worker has said so.
func (t *tail) placeOfLog() string {
	if t.attempt.Logs == "" {
		return ""
	}
	return "; the log is at " + t.attempt.Logs
}
