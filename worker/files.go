package worker

import (
	"context"
	"log/slog"
	"sync"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

// files bounds what attempts leave in the worker's folder; nil does nothing. It is safe
// for concurrent use, but a slot's calls must not overlap.
type files struct {
	keeper *logfile.Keeper
	log    *slog.Logger

	mu sync.Mutex
	// streams are the studies of the slots' long-lived programs, which may be idle.
	streams map[int]string
}

// newFiles returns the bound of the options; nil if there is none.
func newFiles(o Options, s *sender) *files {
	if o.KeepTrials == 0 {
		return nil
	}
	needed := func() ([]messaging.AttemptID, error) {
		ids := s.unsent()
		if o.Spared == nil {
			return ids, nil
		}
		more, err := o.Spared()
		return append(ids, more...), err
	}
	return &files{
		keeper: logfile.NewKeeper(o.StateDir, o.KeepTrials, needed), log: o.Logger, streams: map[int]string{},
	}
}

// load finds what earlier processes have left, until ctx ends.
func (f *files) load(ctx context.Context) {
	if f != nil {
		f.warn(f.keeper.Load(ctx))
	}
}

// begin says that an attempt may begin: it is not claimed yet.
func (f *files) begin(a *messaging.Assignment) {
	if f != nil {
		f.keeper.Begin(a.AttemptID)
	}
}

// enter says that a slot evaluates a claimed attempt.
func (f *files) enter(a *messaging.Assignment, slot int) {
	if f == nil {
		return
	}
	stream := ""
	if a.Run.Mode == study.ModeStream {
		stream = a.Study
	}
	f.move(slot, stream)
}

// end says that an attempt has ended.
func (f *files) end(a *messaging.Assignment) {
	if f != nil {
		f.warn(f.keeper.End(a.AttemptID))
	}
}

// leave says that a slot has ended, with its program.
func (f *files) leave(slot int) {
	if f != nil {
		f.move(slot, "")
	}
}

// move notes the study of a slot's long-lived program; empty if it has none. The program of
// another study is ended when the slot's next attempt starts, so what it writes until then
// may be lost.
func (f *files) move(slot int, stream string) {
	f.mu.Lock()
	before := f.streams[slot]
	f.streams[slot] = stream
	f.mu.Unlock()
	if before == stream {
		return
	}
	if stream != "" {
		f.keeper.BeginStream(stream, slot)
	}
	if before != "" {
		f.warn(f.keeper.EndStream(before, slot))
	}
}

func (f *files) warn(err error) {
	if err != nil {
		f.log.Warn("cannot remove what ended attempts left: the worker's folder may grow", telemetry.LogError, err)
	}
}
