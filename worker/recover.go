package worker

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

const (
	// recoverTimeout bounds the search for what an earlier process has begun:
	// the attempts' leases end meanwhile.
	recoverTimeout = 10 * time.Second
	// settleTimeout bounds the note that a result is on disk.
	settleTimeout = 10 * time.Second
)

// recovered is an attempt that an earlier process has begun, in its registered
// context.
type recovered struct {
	evaluation.Recovered
	ctx context.Context
	end func()
}

// recover registers the attempts that an earlier process of this worker has
// begun, so that the first heartbeat renews their leases.
func (r *run) recover(ctx context.Context) {
	keeper := r.options.Keeper
	if keeper == nil {
		return
	}
	search, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	found, err := keeper.Recover(search)
	if err != nil {
		r.options.Logger.Error("what an earlier process has begun cannot be found; it counts as lost", telemetry.LogError, err)
	}
	for _, f := range found {
		a := f.Assignment
		if r.sender.has(a.AttemptID) {
			r.settle(ctx, a)
			continue
		}
		if err := r.journal.Add(a.AttemptID); err != nil {
			r.options.Logger.Error("a claim is not on disk", telemetry.LogError, err)
		}
		work, end, ok := r.registry.begin(remoteContext(context.WithoutCancel(ctx), a.TraceContext), a.AttemptID)
		if !ok {
			continue
		}
		r.options.Logger.Info("an attempt goes on that an earlier process has begun",
			telemetry.LogStudy, a.StudyName, telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt)
		r.recovered = append(r.recovered, recovered{Recovered: f, ctx: work, end: end})
	}
}

// resume goes on with recovered attempts until there are none that no other slot
// has. Those that the worker leaves before are handed back as all others are.
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
		r.evaluate(next.ctx, slot, ev, next.Assignment, next.Started, next.Started)
		next.end()
	}
}

// settle notes that an attempt's result is on disk.
func (r *run) settle(ctx context.Context, a *messaging.Assignment) {
	if r.options.Keeper == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := r.options.Keeper.Settle(ctx, a); err != nil {
		r.options.Logger.Warn("an ended attempt is not marked as such; another start of this worker would send its result again",
			telemetry.LogStudy, a.StudyName, telemetry.LogTrial, a.Trial, telemetry.LogAttempt, a.Attempt, telemetry.LogError, err)
	}
}
