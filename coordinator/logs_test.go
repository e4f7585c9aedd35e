package coordinator

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// library is a worker that answers requests for the log of one attempt.
type library struct {
	mu      sync.Mutex
	log     map[messaging.LogStream]string
	running bool
	missing string
	asked   chan messaging.LogRequest
	part    int // the most bytes of an answer
}

// serve answers until ctx ends.
func (l *library) serve(ctx context.Context, t *testing.T, bus *membus.Worker, name string) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	controls, err := bus.Controls(ctx)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c := range controls {
			if c.Kind != messaging.ControlLogs {
				continue
			}
			_ = bus.SendLog(ctx, l.answer(name, &c)) // the reader asks again
			select {
			case l.asked <- *c.Logs:
			default:
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func (l *library) answer(name string, c *messaging.Control) *messaging.LogPart {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.log[c.Logs.Stream]
	p := &messaging.LogPart{
		AttemptID: c.AttemptID, Worker: name, Request: c.Logs.ID, Stream: c.Logs.Stream, Offset: c.Logs.Offset,
		Size: int64(len(text)), Running: l.running, Missing: l.missing,
	}
	if l.missing == "" && int(p.Offset) < len(text) {
		p.Data = []byte(text[p.Offset:min(len(text), int(p.Offset)+l.part)])
	}
	return p
}

func (l *library) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// logged is a trial whose second attempt a worker took.
func logged() *record.Trial {
	return &record.Trial{Number: 7, Attempts: []record.Attempt{
		{Number: 1, Nonce: "n1", Worker: "old", Logs: "/state/trials/s/7/1"}, {Number: 2, Nonce: "n2", Worker: "w"}, {Number: 3, Nonce: "n3"},
	}}
}

// both are the outputs of a program.
var both = []messaging.LogStream{messaging.LogStdout, messaging.LogStderr}

// readAll reads a log to its end.
func readAll(ctx context.Context, c *replica, o LogTail) (log map[messaging.LogStream]string, err error) {
	log = map[messaging.LogStream]string{}
	for p, err := range c.TailLogs(ctx, "s", logged(), o) {
		if err != nil {
			return log, err
		}
		log[p.Stream] += string(p.Data)
	}
	return log, nil
}

// newLibrary starts a replica, and the worker that has the logs.
func newLibrary(t *testing.T) (*library, *replica, context.Context) {
	t.Helper()
	r := newRig(t, membus.Options{})
	c, h := r.replica(), r.hand("w", 1, never)
	l := &library{log: map[messaging.LogStream]string{}, part: 5, asked: make(chan messaging.LogRequest, 100)}
	l.serve(r.ctx(), t, h.bus, "w")
	return l, c, r.ctx()
}

// The log of an attempt that has ended is read part by part, and no further.
func TestLogsAreRead(t *testing.T) {
	t.Parallel()
	l, c, ctx := newLibrary(t)
	l.log[messaging.LogStdout], l.log[messaging.LogStderr] = "the whole output\n", "the errors\n"
	got, err := readAll(ctx, c, LogTail{Streams: both, Lines: 10})
	if err != nil || got[messaging.LogStdout] != l.log[messaging.LogStdout] || got[messaging.LogStderr] != l.log[messaging.LogStderr] {
		t.Errorf("read %q, %v", got, err)
	}
	if r := <-l.asked; r.Lines != 10 {
		t.Errorf("first asked for %+v, want the last 10 lines", r)
	}
	if got, err = readAll(ctx, c, LogTail{Streams: both[1:], Lines: 10, Attempt: 2, Follow: true}); err != nil || len(got) != 1 ||
		got[messaging.LogStderr] != "the errors\n" {
		t.Errorf("stderr alone: %q, %v", got, err)
	}
}

// A followed log is read until its attempt has ended; any other one, up to where it
// ended at the first read.
func TestLogsAreFollowed(t *testing.T) {
	t.Parallel()
	l, c, ctx := newLibrary(t)
	l.change(func() { l.running, l.log[messaging.LogStdout] = true, "one\n" })
	if got, err := readAll(ctx, c, LogTail{Streams: both, Lines: 10}); err != nil || got[messaging.LogStdout] != "one\n" {
		t.Errorf("not followed: %q, %v", got, err)
	}
	var got string
	for p, err := range c.TailLogs(ctx, "s", logged(), LogTail{Streams: both[:1], Lines: 10, Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		switch got += string(p.Data); got {
		case "one\n":
			l.change(func() { l.log[messaging.LogStdout] += "two\n" })
		case "one\ntwo\n":
			l.change(func() { l.running, l.log[messaging.LogStdout] = false, "one\ntwo\nend\n" })
		}
	}
	if got != "one\ntwo\nend\n" {
		t.Errorf("followed: %q", got)
	}
	// It ends when the reader goes away.
	l.change(func() { l.running = true })
	for _, err := range c.TailLogs(ctx, "s", logged(), LogTail{Streams: both, Lines: 10, Follow: true}) {
		if err != nil {
			t.Errorf("a log that is left: %v", err)
		}
		break
	}
	gone, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, err := range c.TailLogs(gone, "s", logged(), LogTail{Streams: both, Lines: 10, Follow: true}) {
		if cancel(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("a request that ends: %v", err)
		}
	}
}

// The error for a missing or unreadable log says where the log is.
func TestLogsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	l, c, ctx := newLibrary(t)
	for _, tt := range []struct {
		attempt int
		missing string
		want    error
		words   string
	}{
		{1, "", ErrLogAway, "worker old is gone; the log is at /state/trials/s/7/1"},
		{2, "it was removed", ErrNoLog, "it was removed"},
		{3, "", ErrNoLog, "no worker has taken attempt 3 of trial 7"},
		{4, "", ErrNoLog, "trial 7 has no attempt 4, its last one is 3"},
	} {
		l.change(func() { l.missing = tt.missing })
		_, err := readAll(ctx, c, LogTail{Streams: both, Lines: 1, Attempt: tt.attempt, Follow: true})
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("attempt %d: %v, want %q", tt.attempt, err, tt.words)
		}
	}
	for _, err := range c.TailLogs(ctx, "s", &record.Trial{Number: 8}, LogTail{Streams: both, Lines: 1}) {
		if !errors.Is(err, ErrNoLog) || !strings.Contains(err.Error(), "no worker has taken trial 8 yet") {
			t.Errorf("a trial that nobody has taken: %v", err)
		}
	}
}
