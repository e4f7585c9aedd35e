package worker

import (
	"context"
	"maps"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

const (
	// quickBeat is how long a change lasts before a heartbeat reports it.
	quickBeat = 200 * time.Millisecond
	// maxSpooled is the largest number of spooled attempts in a heartbeat.
	maxSpooled = 500
	// controlPause is the pause before subscribing to the controls again.
	controlPause = time.Second
)

// beat sends a heartbeat at every interval, and soon after the number of free slots, or what keeps
// attempts waiting, has changed for more than a moment. The leader learns the rest from claims and results: if a
// slot takes one trial after another, a heartbeat for each would tell it nothing that it
// needs before the interval is over. The last one announces that the worker leaves.
func (r *run) beat(ctx context.Context) {
	interval := time.NewTicker(r.options.HeartbeatInterval)
	defer interval.Stop()
	last := r.status()
	r.heartbeat(ctx, last)
	for {
		due := false
		select {
		case <-ctx.Done():
			r.heartbeat(context.WithoutCancel(ctx), r.status())
			return
		case <-interval.C:
			due = true
		case <-r.registry.changed:
			backoff.Sleep(ctx, min(quickBeat, r.options.HeartbeatInterval))
			select {
			case <-r.registry.changed: // the status includes this change
			default:
			}
		}
		next := r.status()
		if !due && next.Free == last.Free && next.Leaving == last.Leaving && maps.Equal(next.Causes(), last.Causes()) {
			continue
		}
		r.heartbeat(ctx, next)
		last = next
	}
}

// status returns the worker's heartbeat as of now.
func (r *run) status() *messaging.Heartbeat {
	// An attempt moves from running to spooled; reading in this order misses none.
	h := &messaging.Heartbeat{
		Version: messaging.SchemaVersion, Worker: r.options.Name, Pool: r.options.Pool, Instance: r.instance, Slots: r.options.Slots,
		At: time.Now(), Host: r.host, Software: r.options.Software, StudyCommands: r.studyCommands(),
		OwnCommand: len(r.options.Command) > 0 || r.options.NewEvaluator != nil && !r.options.JobsOnly,
		StudyJobs:  r.options.StudyJobs, Runs: r.runs(),
	}
	r.registry.tell(h)
	h.Free, h.Spooled = max(0, h.Slots-len(h.Running)), r.sender.waiting(maxSpooled)
	return h
}

func (r *run) heartbeat(ctx context.Context, h *messaging.Heartbeat) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	if err := r.options.Bus.Heartbeat(ctx, h); err != nil && ctx.Err() == nil {
		r.options.Logger.Warn("a heartbeat was not sent", telemetry.LogError, err)
	}
}

// studyCommands reports whether the worker runs commands of studies.
func (r *run) studyCommands() bool {
	return r.options.AllowStudyCommands && len(r.options.Command) == 0 && r.options.NewEvaluator == nil
}

// runs says what evaluates the worker's trials; empty if that is not known.
func (r *run) runs() string {
	if r.options.NewEvaluator == nil {
		return messaging.RunsCommand
	}
	return r.options.Runs
}

// subscribe subscribes to the leader's messages; it returns nil if that fails.
func (r *run) subscribe(ctx context.Context) <-chan messaging.Control {
	controls, err := r.options.Bus.Controls(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.options.Logger.Warn("cannot subscribe to the leader's messages; retrying", telemetry.LogError, err)
		}
		return nil
	}
	return controls
}

// listen handles the leader's messages until ctx ends. It calls ready after the first
// try to subscribe.
func (r *run) listen(ctx context.Context, ready func()) {
	controls := r.subscribe(ctx)
	ready()
	for ctx.Err() == nil {
		if controls != nil {
			for c := range controls {
				r.obey(c)
			}
		}
		backoff.Sleep(ctx, controlPause)
		controls = r.subscribe(ctx)
	}
}

func (r *run) obey(c messaging.Control) {
	log := r.options.Logger.With(telemetry.LogTrial, c.Trial, telemetry.LogAttempt, c.Attempt, telemetry.LogReason, c.Reason)
	switch c.Kind {
	case messaging.ControlReceipt:
		known, err := r.sender.receipt(c.AttemptID)
		if err != nil {
			log.Error("cannot remove a spooled result", telemetry.LogError, err)
		}
		if known {
			log.Debug("receipt", "disposition", c.Disposition)
			select {
			case r.stored <- c.AttemptID:
			default: // whoever keeps evaluations is only told to make room
			}
		}
	case messaging.ControlCancel:
		if study, ok := r.registry.cancel(c.AttemptID, evaluation.ErrCancelled); ok {
			log.Info("an attempt was cancelled by the leader", telemetry.LogStudy, study)
		}
	case messaging.ControlPrune:
		if study, ok := r.registry.cancel(c.AttemptID, evaluation.ErrPruned); ok {
			log.Info("stopping a trial early", telemetry.LogStudy, study)
		}
	case messaging.ControlLogs:
		select {
		case r.logs <- c:
		default:
			log.Warn("too many requests for logs: one is dropped")
		}
	case messaging.ControlAvoid:
		if r.registry.avoid(c.Study) {
			log.Warn("the leader assigns this worker no more trials of a study", "studyId", c.Study)
		}
	default:
		log.Warn("ignored a message of an unknown kind", "kind", c.Kind)
	}
}
