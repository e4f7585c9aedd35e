package membus

import (
	"context"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// reader implements messaging.Reader. It notices a replaced stream at once.
type reader struct {
	l      *Leader
	stream messaging.Stream
	life   context.Context // of the Read that made it
	end    context.CancelFunc
	cursor messaging.Cursor
}

// Read implements messaging.Leader.
func (l *Leader) Read(ctx context.Context, s messaging.Stream, from messaging.Cursor) (messaging.Reader, error) {
	if err := l.alive(ctx); err != nil {
		return nil, err
	}
	if l.b.streams[s] == nil {
		return nil, errStream(s)
	}
	r := &reader{l: l, stream: s, cursor: from}
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	r.locate(l.b.streams[s])
	r.life, r.end = context.WithCancel(ctx)
	return r, nil
}

// Cursor implements messaging.Reader.
func (r *reader) Cursor() messaging.Cursor { return r.cursor }

// Close implements messaging.Reader.
func (r *reader) Close() error {
	r.end()
	return nil
}

// Next implements messaging.Reader.
func (r *reader) Next(ctx context.Context) (messaging.Entry, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	defer context.AfterFunc(r.life, func() { cancel(context.Cause(r.life)) })()
	for {
		if err := r.l.alive(ctx); err != nil {
			return messaging.Entry{}, err
		}
		entry, ok, changed := r.poll()
		if ok {
			return entry, nil
		}
		if err := r.l.wait(ctx, changed, noTime); err != nil {
			return messaging.Entry{}, err
		}
	}
}

// poll reads one entry; if there is none, it returns what to wait for.
func (r *reader) poll() (messaging.Entry, bool, <-chan struct{}) {
	b := r.l.b
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.streams[r.stream]
	r.locate(j)
	next := j.after(r.cursor.Sequence)
	if next == nil {
		return messaging.Entry{}, false, b.changed
	}
	r.cursor.Sequence, r.cursor.Timestamp = next.sequence, next.at
	return messaging.NewEntry(r.stream, r.cursor, next.subject, next.data, next.decode), true, nil
}

// locate moves a cursor of another stream before the first message. The caller MUST
// hold the broker's mu.
func (r *reader) locate(j *stream) {
	if !r.belongs(j) {
		r.cursor = messaging.Cursor{Created: j.created}
	}
}

// belongs reports whether the cursor was taken from this stream in its present state.
func (r *reader) belongs(j *stream) bool {
	if !r.cursor.Created.Equal(j.created) || r.cursor.Sequence > j.last {
		return false
	}
	at := j.at(r.cursor.Sequence)
	return at == nil || at.at.Equal(r.cursor.Timestamp)
}
