package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

var (
	// errNone means that there is no trial yet.
	errNone = errors.New("there is no trial yet")
	// errLeaving means that there will be no more trials.
	errLeaving = errors.New("the worker is leaving: there are no more trials")
	// errBusy means that too many requests wait.
	errBusy = errors.New("too many requests wait for a trial")
)

// assignment is what a client receives: an attempt to evaluate.
type assignment struct {
	ID         string          `json:"id"`
	Study      string          `json:"study"`
	Trial      int             `json:"trial"`
	Attempt    int             `json:"attempt"`
	Slot       int             `json:"slot"`
	Seed       uint64          `json:"seed"`
	Parameters json.RawMessage `json:"parameters"`
	// Metric and Direction are those of the objective, or of the first of several.
	Metric    string          `json:"metric"`
	Direction study.Direction `json:"direction"`
	// Objectives are all objectives if there are several.
	Objectives []study.Objective `json:"objectives,omitempty"`
	// Limits bound metrics, which the client reports too.
	Limits        []study.Limit `json:"limits,omitempty"`
	Checkpoint    string        `json:"checkpoint,omitempty"`
	CheckpointDir string        `json:"checkpointDir,omitempty"`
	Traceparent   string        `json:"traceparent,omitempty"`
	Tracestate    string        `json:"tracestate,omitempty"`
}

func (s *Sidecar) assignment(a *attempt) *assignment {
	as := a.task.Assignment
	first := as.Objectives()[0]
	return &assignment{
		ID: a.id, Study: as.StudyName, Trial: as.Trial, Attempt: as.Attempt, Slot: a.task.Slot, Seed: as.Seed,
		Parameters: a.parameters, Metric: first.Metric, Direction: first.Direction, Objectives: as.Several, Limits: as.Limits,
		Checkpoint: a.reports.Checkpoint, CheckpointDir: a.checkpointDir(s.options.Checkpoints),
		Traceparent: a.task.Trace.Traceparent, Tracestate: a.task.Trace.Tracestate,
	}
}

// next returns the trial that the client has not ended, or waits for a new one until
// ctx ends (errNone).
func (s *Sidecar) next(ctx context.Context, name string) (*assignment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.polls >= maxPolls {
		return nil, errBusy
	}
	s.forget()
	c := s.client(name)
	s.polls++
	c.polls++
	s.broadcast()
	defer func() {
		s.polls--
		c.polls--
		c.until = time.Time{}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // the client is told to ask again
			c.until = time.Now().Add(linger)
		}
		s.broadcast()
	}()
	for {
		if t, err := s.pick(c); t != nil || err != nil {
			return t, err
		}
		changed := s.changed
		s.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = errNone
		}
		s.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
}

// pick returns the client's trial, or one that waits for a client, or nil. The caller
// MUST hold the lock.
func (s *Sidecar) pick(c *client) (*assignment, error) {
	if a := c.attempt; a != nil {
		if a.stop == nil && !s.leaving && !a.isEnded && a.handed < maxHanded {
			s.hand(a)
			return s.assignment(a), nil
		}
		a.finish() // asking again gives up the previous trial
	}
	switch {
	case s.leaving:
		return nil, errLeaving
	case c.attempt != nil: // its slot has not concluded it yet
		return nil, nil
	case len(s.offered) == 0:
		return nil, nil
	}
	a := s.offered[0]
	s.offered = s.offered[1:]
	a.client, c.attempt = c, a
	s.hand(a)
	s.broadcast()
	return s.assignment(a), nil
}

// hand records that a client receives the attempt. The caller MUST hold the lock.
func (s *Sidecar) hand(a *attempt) {
	a.handed++
	a.heard = time.Now()
	if a.handed > 1 {
		as := a.task.Assignment
		s.options.Logger.Warn("training code receives its unfinished trial again", telemetry.LogStudy, as.StudyName,
			telemetry.LogTrial, as.Trial, telemetry.LogAttempt, as.Attempt, "times", a.handed)
	}
}

// The reasons for stopping that clients are told.
const (
	stopLeaving   = "leaving"   // end it within the grace, with a checkpoint
	stopTimeout   = "timeout"   // it ran too long
	stopCancelled = "cancelled" // its result is no longer needed
	stopPruned    = "pruned"    // it does worse than other trials: end it within the grace
	stopEnded     = "ended"     // it has ended
	stopUnknown   = "unknown"   // it is not this worker's attempt, or ended long ago
)

// stopReason returns why the client of an attempt (nil: unknown) should stop; empty if
// it should not. The caller MUST hold the lock.
func (s *Sidecar) stopReason(a *attempt) string {
	switch {
	case a == nil:
		return stopUnknown
	case errors.Is(a.stop, evaluation.ErrCancelled):
		return stopCancelled
	case errors.Is(a.stop, evaluation.ErrPruned):
		return stopPruned
	case errors.Is(a.stop, evaluation.ErrTimeout):
		return stopTimeout
	case a.outcome != "" || a.isEnded:
		return stopEnded
	case a.stop != nil || s.leaving:
		return stopLeaving
	default:
		return ""
	}
}
