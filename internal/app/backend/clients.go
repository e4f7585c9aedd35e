package backend

import (
	"context"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// Suggest implements server.Clients.
func (b *Backend) Suggest(ctx context.Context, nameOrID, client string, count int, wait time.Duration) (server.Suggestions, error) {
	got, err := b.c.Suggest(ctx, nameOrID, client, count, wait)
	return server.Suggestions{Trials: got.Trials, State: got.State, Reason: got.Reason, Lease: got.Lease}, translate(err)
}

// Heartbeat implements server.Clients.
func (b *Backend) Heartbeat(ctx context.Context, nameOrID, client string, held []server.Held) ([]server.Instruction, error) {
	attempts := make([]coordinator.Held, len(held))
	for i, h := range held {
		attempts[i] = coordinator.Held(h)
	}
	list, err := b.c.Heartbeat(ctx, nameOrID, client, attempts)
	if err != nil {
		return nil, translate(err)
	}
	out := make([]server.Instruction, len(list))
	for i := range list {
		out[i] = instruction(list[i])
	}
	return out, nil
}

// AddMeasurement implements server.Clients.
func (b *Backend) AddMeasurement(ctx context.Context, nameOrID, client string, m server.Reached) (server.Instruction, error) {
	var next coordinator.Instruction
	err := b.l.write(ctx, func(ctx context.Context) (err error) {
		next, err = b.c.Measure(ctx, nameOrID, client, coordinator.Held(m.Held), m.Step, m.Metrics)
		return err
	})
	if err != nil {
		return server.Instruction{}, err
	}
	return instruction(next), nil
}

// instruction converts an instruction to one of the API.
func instruction(i coordinator.Instruction) server.Instruction {
	action := fantasiav1.TrialAction_TRIAL_ACTION_CONTINUE
	switch i.Do {
	case engine.Prune:
		action = fantasiav1.TrialAction_TRIAL_ACTION_PRUNE
	case engine.Abandon:
		action = fantasiav1.TrialAction_TRIAL_ACTION_ABANDON
	case engine.Continue:
	}
	return server.Instruction{Trial: i.Trial, Action: action, Reason: i.Reason}
}

// End implements server.Clients.
func (b *Backend) End(ctx context.Context, nameOrID, client string, e server.Ending) (record.Trial, error) {
	return b.tell(ctx, nameOrID, func(now time.Time) engine.Event {
		return engine.Told{
			At: now, Client: client, Trial: e.Trial, Attempt: e.Attempt, Outcome: e.Outcome,
			Values: e.Values, Metrics: e.Metrics, Failure: e.Failure, Checkpoint: e.Checkpoint,
		}
	})
}

// Enqueue implements server.Clients.
func (b *Backend) Enqueue(ctx context.Context, nameOrID string, p study.Point, requestID string, m server.Remarks) (record.Trial, error) {
	return b.tell(ctx, nameOrID, func(now time.Time) engine.Event {
		return engine.Enqueue{At: now, Point: p, RequestID: requestID, Remarks: engine.Remarks(m)}
	})
}

// Add implements server.Clients.
func (b *Backend) Add(ctx context.Context, nameOrID string, f server.Finished, requestID string) (record.Trial, error) {
	return b.tell(ctx, nameOrID, func(now time.Time) engine.Event {
		return engine.Add{At: now, Point: f.Point, Values: f.Values, Metrics: f.Metrics, RequestID: requestID, Remarks: engine.Remarks(f.Remarks)}
	})
}

// CancelTrial implements server.Clients.
func (b *Backend) CancelTrial(ctx context.Context, nameOrID string, number int, reason string) (record.Trial, error) {
	return b.tell(ctx, nameOrID, func(now time.Time) engine.Event {
		return engine.CancelTrial{At: now, Trial: number, Reason: reason}
	})
}

// EditTrial implements server.Clients.
func (b *Backend) EditTrial(ctx context.Context, nameOrID string, e server.Edit) (record.Trial, error) {
	return b.tell(ctx, nameOrID, func(now time.Time) engine.Event {
		return engine.Annotate{At: now, Trial: e.Trial, Labels: e.Labels, Remove: e.Remove, Note: e.Note}
	})
}

// tell applies an event of a client or a user and returns its trial.
func (b *Backend) tell(ctx context.Context, nameOrID string, event func(now time.Time) engine.Event) (record.Trial, error) {
	var told record.Trial
	err := b.l.write(ctx, func(ctx context.Context) (err error) {
		told, err = b.c.Tell(ctx, nameOrID, event)
		return err
	})
	return told, err
}
