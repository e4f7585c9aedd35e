package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// tickEvery is how often an open page of a running study is told to refresh even if no
	// trial has changed: running trials report curves, and times go on.
	tickEvery = 3 * time.Second
	// writeTimeout bounds one write to a stream.
	writeTimeout = 10 * time.Second
)

// events tells an open page that its study has changed. A stream only says so; the page
// then asks for itself again, with its reader's token.
func (d *Dashboard) events(w http.ResponseWriter, r *http.Request) error {
	ctx, leave, ok := d.streams.admit(r.Context(), reader(r))
	if !ok {
		return &statusError{http.StatusServiceUnavailable, "too many pages are open"}
	}
	defer leave()
	s, err := d.backend.Study(r.Context(), r.PathValue("study"))
	if err != nil {
		return err
	}
	f, err := d.follow.of(&s) //nolint:contextcheck // it outlives the request
	if err != nil {
		return err
	}
	f.count(1)
	defer f.count(-1)
	out := newStream(w)
	if err := out.send("retry: 3000\n\n"); err != nil {
		return nil // the reader is gone
	}
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		// The page may show an older state than this one, so that it is told at once.
		now, changed := f.current()
		if err := out.send(fmt.Sprintf("event: change\ndata: %d\n\n", now.revision)); err != nil {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		case <-d.o.Draining:
			return nil
		}
		if _, ok := d.find(r); !ok { // the token was withdrawn
			return nil
		}
	}
}

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not wait for more
	return &stream{w: w, control: http.NewResponseController(w)}
}

// send writes text and sends it at once.
func (s *stream) send(text string) error {
	// A server without deadlines, as in a test, is fine too.
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// event sends an event with text of any number of lines.
func (s *stream) event(name, text string) error {
	var b strings.Builder
	b.WriteString("event: " + name + "\n")
	for line := range strings.SplitSeq(lineEnds.Replace(text), "\n") {
		b.WriteString("data: " + line + "\n")
	}
	b.WriteString("\n")
	return s.send(b.String())
}

// untilDrained returns a context that also ends when the server begins to shut down.
func untilDrained(ctx context.Context, draining <-chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-draining:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(); waiting.Wait() }
}

// lineEnds makes every end of a line a newline, as server-sent events need it.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")
