package worker

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

const (
	// quickBeat is the least time between heartbeats that changes bring about.
	quickBeat = 200 * time.Millisecond
	// maxSpooled bounds how many spooled attempts a heartbeat lists.
	maxSpooled = 500
	// controlPause is the pause before the controls are subscribed to again.
	controlPause = time.Second
)

// beat sends a heartbeat at every interval, and soon after each change. The
// last says that the worker leaves.
func (r *run) beat(ctx context.Context) {
	interval := time.NewTicker(r.options.HeartbeatInterval)
	defer interval.Stop()
	r.heartbeat(ctx)
	for {
		select {
		case <-ctx.Done():
			r.heartbeat(context.WithoutCancel(ctx))
			return
		case <-interval.C:
		case <-r.registry.changed:
			sleep(ctx, min(quickBeat, r.options.HeartbeatInterval))
			select {
			case <-r.registry.changed: // this heartbeat says it
			default:
			}
		}
		r.heartbeat(ctx)
	}
}

func (r *run) heartbeat(ctx context.Context) {
	// An attempt goes from running to spooled: in this order none is missed.
	running, leaving := r.registry.snapshot()
	h := &messaging.Heartbeat{
		Version: messaging.SchemaVersion, Worker: r.options.Name, Pool: r.options.Pool, Instance: r.instance,
		Slots: r.options.Slots, Free: max(0, r.options.Slots-len(running)), Running: running,
		Spooled: r.sender.waiting(maxSpooled), Leaving: leaving,
		At: time.Now(), Host: r.host, Software: r.options.Software, StudyCommands: r.studyCommands(),
		OwnCommand: len(r.options.Command) > 0 || r.options.NewEvaluator != nil,
	}
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	if err := r.options.Bus.Heartbeat(ctx, h); err != nil && ctx.Err() == nil {
		r.options.Logger.Warn("a heartbeat was not sent", telemetry.LogError, err)
	}
}

// studyCommands says whether the worker runs commands that studies bring.
func (r *run) studyCommands() bool {
	return r.options.AllowStudyCommands && len(r.options.Command) == 0 && r.options.NewEvaluator == nil
}

// subscribe receives the leader's messages; nil where that fails now.
func (r *run) subscribe(ctx context.Context) <-chan messaging.Control {
	controls, err := r.options.Bus.Controls(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.options.Logger.Warn("the leader's messages cannot be received; it will be tried again", telemetry.LogError, err)
		}
		return nil
	}
	return controls
}

// listen does what the leader's messages say until ctx ends; it calls ready when
// it has first tried to subscribe.
func (r *run) listen(ctx context.Context, ready func()) {
	controls := r.subscribe(ctx)
	ready()
	for ctx.Err() == nil {
		if controls != nil {
			for c := range controls {
				r.obey(c)
			}
		}
		sleep(ctx, controlPause)
		controls = r.subscribe(ctx)
	}
}

func (r *run) obey(c messaging.Control) {
	log := r.options.Logger.With(telemetry.LogTrial, c.Trial, telemetry.LogAttempt, c.Attempt, telemetry.LogReason, c.Reason)
	switch c.Kind {
	case messaging.ControlReceipt:
		known, err := r.sender.receipt(c.AttemptID)
		if err != nil {
			log.Error("a spooled result could not be removed", telemetry.LogError, err)
		}
		if known {
			log.Debug("receipt", "disposition", c.Disposition)
		}
	case messaging.ControlCancel:
		if r.registry.cancel(c.AttemptID, evaluation.ErrCancelled) {
			log.Info("the leader cancels an attempt")
		}
	case messaging.ControlLogs:
		select {
		case r.logs <- c:
		default:
			log.Warn("too many requests for logs: one is dropped")
		}
	case messaging.ControlAvoid:
		if r.registry.avoid(c.Study) {
			log.Warn("the leader gives this worker no more trials of a study", "studyId", c.Study)
		}
	default:
		log.Warn("a message of an unknown kind", "kind", c.Kind)
	}
}
