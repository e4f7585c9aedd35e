package worker

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

const (
	// recoverTimeout limits the search for attempts of an earlier process, whose leases
	// expire in the meantime.
	recoverTimeout = 10 * time.Second
	// markTimeout limits recording that a result is on disk.
	markTimeout = 10 * time.Second
)

// recovered is an attempt that an earlier process started, in its registered context.
type recovered struct {
	evaluation.Recovered
	ctx context.Context
	end func()
}

// recover registers the attempts that an earlier process of this worker started, so
// that the first heartbeat renews their leases.
func (r *run) recover(ctx context.Context) {
	keeper := r.options.Keeper
	if keeper == nil {
		return
	}
	search, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	found, err := keeper.Recover(search)
	if err != nil {
		r.options.Logger.Error("cannot recover the attempts of a previous process: they are lost", telemetry.LogError, err)
	}
	for _, f := range found {
		a := f.Assignment
		if r.sender.has(a.AttemptID) {
			r.markEnded(ctx, a)
			continue
		}
		if err := r.claims.Add(a.AttemptID); err != nil {
			r.options.Logger.Error("cannot write a claim to disk", telemetry.LogError, err)
		}
		work, end, ok := r.registry.begin(remoteContext(context.WithoutCancel(ctx), a.TraceContext), a.StudyName, a.AttemptID)
		if !ok {
			continue
		}
		r.options.Logger.Info("resuming an attempt started by a previous process",
			telemetry.LogStudy, a.StudyName, telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt)
		r.recovered = append(r.recovered, recovered{Recovered: f, ctx: work, end: end})
	}
}

// resume evaluates recovered attempts until no unassigned one is left. If the worker
// leaves before that, the rest is handed back like all others.
func (r *run) resume(slot int, ev evaluation.Evaluator) {
	for {
		r.mu.Lock()
		if len(r.recovered) == 0 {
			r.mu.Unlock()
			return
		}
		next := r.recovered[0]
		r.recovered = r.recovered[1:]
		r.mu.Unlock()
		r.files.begin(next.Assignment)
		r.files.enter(next.Assignment, slot)
		r.evaluate(next.ctx, slot, ev, next.Assignment, next.Started, next.Started)
		next.end()
		r.files.end(next.Assignment)
	}
}

// markEnded records that an attempt's result is on disk.
func (r *run) markEnded(ctx context.Context, a *messaging.Assignment) {
	if r.options.Keeper == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	if err := r.options.Keeper.MarkEnded(ctx, a); err != nil {
		r.options.Logger.Warn("cannot mark an attempt as ended: the worker's next start may send its result again",
			telemetry.LogStudy, a.StudyName, telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt, telemetry.LogError, err)
	}
}

// maxStored is how many stored results may wait until the Keeper is told of them.
const maxStored = 1000

// markStored tells the Keeper of results that the leader has stored, until ctx ends.
func (r *run) markStored(ctx context.Context) {
	for {
		select {
		case id := <-r.stored:
			if r.options.Keeper == nil {
				continue
			}
			marking, cancel := context.WithTimeout(ctx, markTimeout)
			if err := r.options.Keeper.MarkStored(marking, id); err != nil && ctx.Err() == nil {
				r.options.Logger.Warn("cannot mark a result as stored", telemetry.LogTrial, id.Trial, telemetry.LogAttempt, id.Attempt,
					telemetry.LogError, err)
			}
			cancel()
		case <-ctx.Done():
			return
		}
	}
}
