package server

import (
	"context"
	"sync"
	"time"
)

// turn waits until few enough requests of the caller are worked on: see Limits.AtOnce. Requests of
// other callers do not wait for it. So if one caller sends many at once, these stand in a line of their
// own, and not before the requests of others at etcd and at the leader. The caller MUST call end, and
// may do so several times, and early when it only waits.
func (f *inFlight) turn(ctx context.Context) (end func()) {
	patience := time.NewTimer(f.l.limits.Patience)
	defer patience.Stop()
	select {
	case f.c.turns <- struct{}{}:
		return sync.OnceFunc(func() { <-f.c.turns })
	case <-patience.C:
	case <-ctx.Done():
	}
	return func() {}
}
