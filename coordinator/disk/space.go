// Package disk watches the disk of etcd: whether its database is nearly full, and whether somebody
// compacts its history.
package disk

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
	// SpaceEvery is how often the leader looks how full etcd is.
	SpaceEvery = 5 * time.Second
	// callTimeout bounds one call to etcd.
	callTimeout = 10 * time.Second
	// usedShare and sizeShare are shares of etcd's quota. The leader begins nothing new once the bytes in
	// use reach usedShare, or the file reaches sizeShare. sizeShare is larger, because a file with free
	// space in it does not grow. The rest of the quota is kept for the results of trials that run.
	usedShare, sizeShare = 0.9, 0.97
)

// ErrNearlyFull says that etcd is nearly full, so that nothing new is begun.
var ErrNearlyFull = study.NewError(study.ErrBusy, "etcd is nearly full")

// Space knows whether etcd has space for what is new: studies, and their trials. Results,
// ends and deletions always go on. It is safe for concurrent use.
type Space struct {
	log  *slog.Logger
	read func(ctx context.Context) (ledger.Space, error)

	now atomic.Pointer[ledger.Space] // nil while it is not known
}

// NewSpace returns a Space that knows nothing until Run asks read.
func NewSpace(log *slog.Logger, read func(ctx context.Context) (ledger.Space, error)) *Space {
	return &Space{log: log, read: read}
}

// Now returns how full etcd is; nil if that is not known.
func (s *Space) Now() *ledger.Space { return s.now.Load() }

// Run looks how full etcd is, each time after a pause, until ctx ends.
func (s *Space) Run(ctx context.Context, every time.Duration) error {
	defer s.now.Store(nil)
	for range backoff.Every(ctx, every) {
		reading, stop := context.WithTimeout(ctx, callTimeout)
		space, err := s.read(reading)
		stop()
		if err != nil {
			if ctx.Err() == nil {
				s.log.Debug("cannot look how full etcd is", telemetry.LogError, err)
			}
			continue
		}
		before := s.Lacking()
		s.now.Store(&space)
		switch after := s.Lacking(); {
		case before == nil && after != nil:
			s.log.Error("no new studies and trials are begun", telemetry.LogError, after)
		case before != nil && after == nil:
			s.log.Info("etcd has space again", "bytes", space.Size, "quota", space.Quota)
		}
	}
	return ctx.Err()
}

// Lacking returns why nothing new is begun; nil if there is enough space, or if that is not known.
// The error wraps ErrNearlyFull.
func (s *Space) Lacking() error {
	now := s.now.Load()
	if !Full(now) {
		return nil
	}
	return fmt.Errorf("%w: its database has %d bytes, %d of them in use, and may have %d (--quota-backend-bytes). "+
		"No studies and no trials are begun until there is space: delete or archive studies, compact and defragment etcd, or raise its quota",
		ErrNearlyFull, now.Size, now.Used, now.Quota)
}

// Full reports whether too little space is left to begin something new; false for nil.
func Full(s *ledger.Space) bool {
	if s == nil || s.Full {
		return s != nil
	}
	quota := float64(s.Quota)
	return quota > 0 && (float64(s.Used) >= usedShare*quota || float64(s.Size) >= sizeShare*quota)
}
