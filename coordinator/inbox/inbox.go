// Package inbox hands work to the one goroutine that owns a term's state: the leader's loop.
package inbox

import (
	"context"
	"time"
)

// Size bounds an inbox; senders wait while it is full.
const Size = 1024

// Work is one piece of work for the loop.
type Work struct {
	// Do runs in the loop; its error ends the term.
	Do func(ctx context.Context, now time.Time) error
	// Refused runs instead if the term has ended; nil if nobody waits for the work.
	Refused func()
}

// Post hands work to the loop. It returns false if ctx or the term ends before the inbox has the
// work. An error of the work ends the term.
type Post func(ctx context.Context, do func(ctx context.Context, now time.Time) error) bool

// Wait runs f in the loop and waits for it. It returns false if ctx or the term ends first; f may
// then still run later, so the caller MUST NOT read what f writes.
func (p Post) Wait(ctx context.Context, f func(now time.Time)) bool {
	done := make(chan struct{})
	posted := p(ctx, func(_ context.Context, now time.Time) error {
		defer close(done)
		f(now)
		return nil
	})
	if !posted {
		return false
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// Inbox is the inbox of one term. It is safe for concurrent use.
type Inbox struct {
	work chan Work
	over chan struct{}
}

// New returns an empty inbox.
func New() *Inbox { return &Inbox{work: make(chan Work, Size), over: make(chan struct{})} }

// Post implements Post.
func (b *Inbox) Post(ctx context.Context, do func(ctx context.Context, now time.Time) error) bool {
	return b.Submit(ctx, Work{Do: do})
}

// Submit is Post for work whose sender wants to know if it is refused.
func (b *Inbox) Submit(ctx context.Context, w Work) bool {
	select {
	case b.work <- w:
		return true
	case <-b.over:
		return false
	case <-ctx.Done():
		return false
	}
}

// Wake makes the loop go round once. If the inbox is full, the loop is awake.
func (b *Inbox) Wake() {
	select {
	case b.work <- Work{Do: func(context.Context, time.Time) error { return nil }}:
	default:
	}
}

// Waiting is where the loop receives its work.
func (b *Inbox) Waiting() <-chan Work { return b.work }

// Over is closed when the inbox is no longer read. All work that it had was done or refused before
// that or soon after.
func (b *Inbox) Over() <-chan struct{} { return b.over }

// Close refuses what still waits, and all later work. The loop MUST have ended BEFORE.
func (b *Inbox) Close() {
	close(b.over)
	for {
		select {
		case w := <-b.work:
			if w.Refused != nil {
				w.Refused()
			}
		default:
			return
		}
	}
}
