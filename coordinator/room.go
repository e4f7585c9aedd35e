package coordinator

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// roomEvery is how often the leader looks how full etcd is.
	roomEvery = 5 * time.Second
	// usedShare and sizeShare are shares of etcd's quota. The leader begins nothing new once the
	// bytes in use reach the first, or the file reaches the second. The file may be larger: it
	// does not grow while it has free space. The remaining bytes are for results of what has begun.
	usedShare, sizeShare = 0.9, 0.97
)

// ErrNoRoom says that etcd is nearly full, so that nothing new is begun.
var ErrNoRoom = study.NewError(study.ErrBusy, "etcd is nearly full")

// room knows whether etcd has room for what is new: studies, and their trials. Results,
// ends and deletions always go on. It is safe for concurrent use.
type room struct {
	log   *slog.Logger
	read  func(ctx context.Context) (ledger.Space, error)
	every time.Duration

	now atomic.Pointer[ledger.Space] // nil while it is not known
}

// run looks how full etcd is until ctx ends.
func (r *room) run(ctx context.Context) error {
	defer r.now.Store(nil)
	for range backoff.Every(ctx, r.every) {
		reading, stop := context.WithTimeout(ctx, callTimeout)
		s, err := r.read(reading)
		stop()
		if err != nil {
			if ctx.Err() == nil {
				r.log.Debug("cannot look how full etcd is", telemetry.LogError, err)
			}
			continue
		}
		before := r.lacking()
		r.now.Store(&s)
		switch after := r.lacking(); {
		case before == nil && after != nil:
			r.log.Error("no new studies and trials are begun", telemetry.LogError, after)
		case before != nil && after == nil:
			r.log.Info("etcd has room again", "bytes", s.Size, "quota", s.Quota)
		}
	}
	return ctx.Err()
}

// Lacking returns why this replica, if it leads, begins no studies and no trials; nil if it does.
// The error wraps ErrNoRoom.
func (c *Coordinator) Lacking() error { return c.room.lacking() }

// lacking returns the error, which wraps ErrNoRoom, for what is new; nil if there is room, or if
// it is not known.
func (r *room) lacking() error {
	s := r.now.Load()
	if !isLacking(s) {
		return nil
	}
	return fmt.Errorf("%w: its database has %d bytes, %d of them in use, and may have %d (--quota-backend-bytes). No studies and no trials are begun "+
		"until there is room: delete or archive studies, compact and defragment etcd, or raise its quota", ErrNoRoom, s.Size, s.Used, s.Quota)
}

// isLacking reports whether there is no room; false if that is not known.
func (r *room) isLacking() bool { return isLacking(r.now.Load()) }

func isLacking(s *ledger.Space) bool {
	if s == nil || s.Full {
		return s != nil
	}
	quota := float64(s.Quota)
	return quota > 0 && (float64(s.Used) >= usedShare*quota || float64(s.Size) >= sizeShare*quota)
}
