// Package backoff waits between the tries of what fails for a time.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff gives the pauses between tries: each is twice as long as the one before, up to a
// limit, less a random share of at most a half, so that programs which fail together do not
// try again together. It is for one goroutine.
type Backoff struct{ first, next, most time.Duration }

// New returns a Backoff whose first pause is at most first, and the longest one most.
func New(first, most time.Duration) *Backoff {
	return &Backoff{first: first, next: first, most: most}
}

// Next returns the next pause. The clock seeds the random share, so that tests in virtual
// time see the same pauses in each run.
func (b *Backoff) Next() time.Duration {
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	pause := b.next - time.Duration(random.Int64N(int64(b.next)/2+1))
	b.next = min(2*b.next, b.most)
	return pause
}

// Wait waits for the next pause. It returns false if ctx ends first.
func (b *Backoff) Wait(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Reset makes the next pause the first again, after a success.
func (b *Backoff) Reset() { b.next = b.first }

// Ticks makes a loop run at each interval until ctx ends: for range Ticks(ctx, interval).
func Ticks(ctx context.Context, interval time.Duration) func(yield func() bool) {
	return ticks(ctx, interval, false)
}

// Every is Ticks with a first turn at once.
func Every(ctx context.Context, interval time.Duration) func(yield func() bool) {
	return ticks(ctx, interval, true)
}

func ticks(ctx context.Context, interval time.Duration, now bool) func(yield func() bool) {
	return func(yield func() bool) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for ; ; now = true {
			if now && !yield() {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// Sleep waits. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
