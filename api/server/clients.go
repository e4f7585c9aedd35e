package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// defaultWait is how long SuggestTrials waits if the request does not say.
	defaultWait = 10 * time.Second
	// maxWait is the longest wait that the API accepts.
	maxWait = 30 * time.Second
)

// SuggestTrials gives a client trials to evaluate.
func (s *service) SuggestTrials(
	ctx context.Context, req *connect.Request[fantasiav1.SuggestTrialsRequest],
) (*connect.Response[fantasiav1.SuggestTrialsResponse], error) {
	ctx, end := s.watch(ctx)
	defer end()
	wait := defaultWait
	if w := req.Msg.GetWait(); w != nil {
		wait = w.AsDuration()
	}
	name := studyOf(req.Msg.GetParent())
	got, err := s.backend.Suggest(ctx, name, req.Msg.GetClientId(), max(1, int(req.Msg.GetCount())), wait)
	if err != nil {
		return nil, watchError(ctx, err)
	}
	answer := &fantasiav1.SuggestTrialsResponse{
		StudyState: toStudyState(got.State), Reason: got.Reason, Lease: durationpb.New(got.Lease),
	}
	for _, t := range got.Trials {
		m, err := toTrial(name, t)
		if err != nil {
			return nil, toConnect(err)
		}
		answer.Trials = append(answer.Trials, m)
	}
	return respond(answer, nil)
}

// HeartbeatTrials renews a client's leases.
func (s *service) HeartbeatTrials(
	ctx context.Context, req *connect.Request[fantasiav1.HeartbeatTrialsRequest],
) (*connect.Response[fantasiav1.HeartbeatTrialsResponse], error) {
	attempts := req.Msg.GetAttempts()
	if n := len(req.Msg.GetTrials()); len(attempts) > 0 && len(attempts) != n {
		return nil, badField("attempts", fmt.Errorf("attempts has %d numbers; want none, or one for each of the %d trials", len(attempts), n))
	}
	held := make([]coordinator.HeldAttempt, len(req.Msg.GetTrials()))
	for i, n := range req.Msg.GetTrials() {
		held[i].Trial = int(n)
		if len(attempts) > 0 {
			held[i].Attempt = int(attempts[i])
		}
	}
	list, err := s.backend.Heartbeat(ctx, studyOf(req.Msg.GetParent()), req.Msg.GetClientId(), held)
	answer := &fantasiav1.HeartbeatTrialsResponse{}
	for _, i := range list {
		answer.Instructions = append(answer.Instructions, &fantasiav1.TrialInstruction{
			Trial:  int32(i.Trial), //nolint:gosec // from an int32
			Action: actions[i.Do], Reason: i.Reason,
		})
	}
	return respond(answer, err)
}

// actions are what clients should do with their trials.
var actions = map[engine.Action]fantasiav1.TrialAction{
	engine.Continue: fantasiav1.TrialAction_TRIAL_ACTION_CONTINUE,
	engine.Prune:    fantasiav1.TrialAction_TRIAL_ACTION_PRUNE,
	engine.Abandon:  fantasiav1.TrialAction_TRIAL_ACTION_ABANDON,
}

// AddMeasurement stores what an evaluation has reached at a step.
func (s *service) AddMeasurement(
	ctx context.Context, req *connect.Request[fantasiav1.AddMeasurementRequest],
) (*connect.Response[fantasiav1.AddMeasurementResponse], error) {
	name, number, err := view.ParseTrialName(req.Msg.GetName())
	if err != nil {
		return nil, badField("name", err)
	}
	reports := make([]coordinator.Report, 0, len(req.Msg.GetEarlier())+1)
	for _, m := range req.Msg.GetEarlier() {
		reports = append(reports, coordinator.Report{Step: m.GetStep(), Metrics: m.GetMetrics()})
	}
	reports = append(reports, coordinator.Report{Step: req.Msg.GetStep(), Metrics: req.Msg.GetMetrics()})
	for _, r := range reports {
		if err := checkMetrics(r.Metrics); err != nil {
			return nil, err
		}
	}
	held := coordinator.HeldAttempt{Trial: number, Attempt: int(req.Msg.GetAttempt())}
	next, err := s.backend.Measure(ctx, name, req.Msg.GetClientId(), held, reports)
	return respond(&fantasiav1.AddMeasurementResponse{Action: actions[next.Do], Reason: next.Reason, Ignored: next.Ignored}, err)
}

// CompleteTrial ends a trial with its values.
func (s *service) CompleteTrial(
	ctx context.Context, req *connect.Request[fantasiav1.CompleteTrialRequest],
) (*connect.Response[fantasiav1.CompleteTrialResponse], error) {
	ending := engine.Told{Outcome: messaging.OutcomeCompleted, Values: req.Msg.GetValues(), Metrics: req.Msg.GetMetrics(),
		Checkpoint: req.Msg.GetCheckpoint(), Point: pointOf(req.Msg)}
	if req.Msg.GetPruned() {
		ending.Outcome = messaging.OutcomePruned
	}
	if err := checkMetrics(ending.Metrics); err != nil {
		return nil, err
	}
	m, err := s.end(ctx, req.Msg, ending)
	return respond(&fantasiav1.CompleteTrialResponse{Trial: m}, err)
}

// FailTrial ends an attempt that found no value.
func (s *service) FailTrial(
	ctx context.Context, req *connect.Request[fantasiav1.FailTrialRequest],
) (*connect.Response[fantasiav1.FailTrialResponse], error) {
	ending := engine.Told{Outcome: messaging.OutcomeFailed, Point: pointOf(req.Msg)}
	if req.Msg.GetInfeasible() {
		ending.Outcome = messaging.OutcomeInfeasible
	}
	ending.Failure = &messaging.Failure{Reason: req.Msg.GetReason(), Message: req.Msg.GetMessage()}
	ending.Failure.Reason = cmp.Or(ending.Failure.Reason, string(ending.Outcome))
	m, err := s.end(ctx, req.Msg, ending)
	return respond(&fantasiav1.FailTrialResponse{Trial: m}, err)
}

// ReleaseTrial hands a trial back.
func (s *service) ReleaseTrial(
	ctx context.Context, req *connect.Request[fantasiav1.ReleaseTrialRequest],
) (*connect.Response[fantasiav1.ReleaseTrialResponse], error) {
	ending := engine.Told{Outcome: messaging.OutcomeHandedBack, Checkpoint: req.Msg.GetCheckpoint()}
	if reason := req.Msg.GetReason(); reason != "" {
		ending.Failure = &messaging.Failure{Reason: reason}
	}
	m, err := s.end(ctx, req.Msg, ending)
	return respond(&fantasiav1.ReleaseTrialResponse{Trial: m}, err)
}

// pointOf returns the point that a client says it has evaluated; nil for none.
func pointOf(req interface{ GetParameters() *structpb.Struct }) map[string]any {
	if p := req.GetParameters(); p != nil {
		return p.AsMap()
	}
	return nil
}

// ofClient is a request of a client about a trial.
type ofClient interface {
	GetName() string
	GetClientId() string
	GetAttempt() int32
}

// end ends a client's attempt of a trial.
func (s *service) end(ctx context.Context, req ofClient, e engine.Told) (*fantasiav1.Trial, error) {
	name, number, err := view.ParseTrialName(req.GetName())
	if err != nil {
		return nil, badField("name", err)
	}
	e.Client, e.Trial, e.Attempt = req.GetClientId(), number, int(req.GetAttempt())
	return s.tell(ctx, name, func(now time.Time) engine.Event { e.At = now; return e })
}

// tell applies an event to a study and returns its trial.
func (s *service) tell(ctx context.Context, study string, event func(now time.Time) engine.Event) (*fantasiav1.Trial, error) {
	told, err := s.backend.Tell(ctx, study, event)
	if err != nil {
		return nil, err
	}
	return toTrial(study, told)
}

// EnqueueTrial has a point evaluated before the next suggestion, or a trial run to its end.
func (s *service) EnqueueTrial(
	ctx context.Context, req *connect.Request[fantasiav1.EnqueueTrialRequest],
) (*connect.Response[fantasiav1.EnqueueTrialResponse], error) {
	remarks, err := remarksOf(req.Msg)
	if err != nil {
		return nil, err
	}
	m, err := s.tell(ctx, studyOf(req.Msg.GetParent()), func(now time.Time) engine.Event {
		return engine.Enqueue{
			At: now, Point: req.Msg.GetParameters().AsMap(), Continues: int(req.Msg.GetContinues()),
			RequestID: req.Msg.GetRequestId(), Remarks: remarks,
		}
	})
	return respond(&fantasiav1.EnqueueTrialResponse{Trial: m}, err)
}

// AddTrial adds a trial that was evaluated elsewhere.
func (s *service) AddTrial(
	ctx context.Context, req *connect.Request[fantasiav1.AddTrialRequest],
) (*connect.Response[fantasiav1.AddTrialResponse], error) {
	if err := checkMetrics(req.Msg.GetMetrics()); err != nil {
		return nil, err
	}
	remarks, err := remarksOf(req.Msg)
	if err != nil {
		return nil, err
	}
	m, err := s.tell(ctx, studyOf(req.Msg.GetParent()), func(now time.Time) engine.Event {
		return engine.Add{
			At: now, Point: req.Msg.GetParameters().AsMap(), Values: req.Msg.GetValues(), Metrics: req.Msg.GetMetrics(),
			RequestID: req.Msg.GetRequestId(), Remarks: remarks,
		}
	})
	return respond(&fantasiav1.AddTrialResponse{Trial: m}, err)
}

// CancelTrial ends a trial.
func (s *service) CancelTrial(
	ctx context.Context, req *connect.Request[fantasiav1.CancelTrialRequest],
) (*connect.Response[fantasiav1.CancelTrialResponse], error) {
	name, number, err := view.ParseTrialName(req.Msg.GetName())
	if err != nil {
		return nil, badField("name", err)
	}
	m, err := s.tell(ctx, name, func(now time.Time) engine.Event {
		return engine.CancelTrial{At: now, Trial: number, Reason: req.Msg.GetReason()}
	})
	return respond(&fantasiav1.CancelTrialResponse{Trial: m}, err)
}

// EditTrial changes the labels, the note and the attributes of a trial.
func (s *service) EditTrial(
	ctx context.Context, req *connect.Request[fantasiav1.EditTrialRequest],
) (*connect.Response[fantasiav1.EditTrialResponse], error) {
	name, number, err := view.ParseTrialName(req.Msg.GetName())
	if err != nil {
		return nil, badField("name", err)
	}
	if _, err := remarksOf(req.Msg); err != nil {
		return nil, err
	}
	m, err := s.tell(ctx, name, func(now time.Time) engine.Event {
		return engine.Annotate{At: now, Trial: number, Labels: req.Msg.GetLabels(), Remove: req.Msg.GetRemoveLabels(),
			Note: req.Msg.Note, Attributes: req.Msg.GetAttributes().AsMap()}
	})
	return respond(&fantasiav1.EditTrialResponse{Trial: m}, err)
}

// remarksOf returns the remarks of a request, or the error of the first field that is
// wrong.
func remarksOf(req interface {
	GetLabels() map[string]string
	GetNote() string
}) (engine.Remarks, error) {
	for _, p := range append(study.CheckLabels("labels", req.GetLabels()), study.CheckNote("note", req.GetNote())...) {
		return engine.Remarks{}, badField(p.Path, errors.New(p.String()))
	}
	return engine.Remarks{Labels: req.GetLabels(), Note: req.GetNote()}, nil
}

// checkMetrics returns an error if metrics would not fit into a trial's record.
func checkMetrics(metrics map[string]float64) error {
	names := 0
	for name := range metrics {
		names += len(name)
	}
	if names > messaging.MaxMetricNames {
		return badField("metrics", fmt.Errorf("the names of %d metrics have %d bytes together; want at most %d", len(metrics),
			names, messaging.MaxMetricNames))
	}
	return nil
}
