package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// defaultWait is how long SuggestTrials waits if the request does not say.
	defaultWait = 10 * time.Second
	// maxWait is the longest wait that the API accepts.
	maxWait = 30 * time.Second
)

// Clients is the part of a Backend that serves those who evaluate a study's trials
// themselves. If there are several replicas, only the leader's is called. Errors wrap
// ErrNotFound, ErrInvalid, ErrPrecondition or ErrUnavailable.
type Clients interface {
	// Suggest waits until the client holds count trials of the study, at most for wait.
	// The error wraps ErrBusy if too many calls wait.
	Suggest(ctx context.Context, study, client string, count int, wait time.Duration) (Suggestions, error)
	// Heartbeat renews the client's leases, and says what to do with each trial.
	Heartbeat(ctx context.Context, study, client string, held []Held) ([]Instruction, error)
	// AddMeasurement stores a measurement, and says what to do with its trial.
	AddMeasurement(ctx context.Context, study, client string, m Reached) (Instruction, error)
	// End ends the client's attempt of a trial.
	End(ctx context.Context, study, client string, e Ending) (record.Trial, error)
	// Enqueue has a point evaluated before the next suggestion.
	Enqueue(ctx context.Context, study string, p study.Point, requestID string, r Remarks) (record.Trial, error)
	// Add adds a trial that was evaluated elsewhere.
	Add(ctx context.Context, study string, f Finished, requestID string) (record.Trial, error)
	// CancelTrial ends a trial.
	CancelTrial(ctx context.Context, study string, number int, reason string) (record.Trial, error)
	// EditTrial changes what people say of a trial.
	EditTrial(ctx context.Context, study string, e Edit) (record.Trial, error)
}

// Remarks are what people say of a trial.
type Remarks struct {
	Labels map[string]string
	Note   string
}

// Edit changes the remarks of a trial: labels to set and keys to remove, and the note
// unless it is nil.
type Edit struct {
	Trial  int
	Labels map[string]string
	Remove []string
	Note   *string
}

// Suggestions are the trials that a client holds.
type Suggestions struct {
	// Trials are the trials, oldest first.
	Trials []record.Trial
	// State is the study's state, and Reason why it is in it.
	State  study.State
	Reason string
	// Lease is how long the client may be silent about a trial.
	Lease time.Duration
}

// Instruction says what a client should do with a trial, and why.
type Instruction struct {
	Trial  int
	Action fantasiav1.TrialAction
	Reason string
}

// Held is an attempt that a client evaluates: its trial's number and its own, which is 0
// for the last one that the client was given.
type Held struct{ Trial, Attempt int }

// Reached is what an evaluation has reached at a step.
type Reached struct {
	Held
	Step    int64
	Metrics map[string]float64
}

// Ending is how a client's attempt of a trial ended. Outcome is completed, failed,
// infeasible, handed-back or pruned.
type Ending struct {
	Held
	Outcome    messaging.Outcome
	Values     study.Values
	Metrics    map[string]float64
	Failure    *messaging.Failure
	Checkpoint string
}

// Finished is a trial that was evaluated elsewhere.
type Finished struct {
	Point   study.Point
	Values  study.Values
	Metrics map[string]float64
	Remarks
}

// SuggestTrials gives a client trials to evaluate.
func (s *service) SuggestTrials(ctx context.Context, req *connect.Request[fantasiav1.SuggestTrialsRequest]) (*connect.Response[fantasiav1.SuggestTrialsResponse], error) {
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
func (s *service) HeartbeatTrials(ctx context.Context, req *connect.Request[fantasiav1.HeartbeatTrialsRequest]) (*connect.Response[fantasiav1.HeartbeatTrialsResponse], error) {
	attempts := req.Msg.GetAttempts()
	if n := len(req.Msg.GetTrials()); len(attempts) > 0 && len(attempts) != n {
		return nil, badField("attempts", fmt.Errorf("attempts has %d numbers; want none, or one for each of the %d trials", len(attempts), n))
	}
	held := make([]Held, len(req.Msg.GetTrials()))
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
			Action: i.Action, Reason: i.Reason,
		})
	}
	return respond(answer, err)
}

// AddMeasurement stores what an evaluation has reached at a step.
func (s *service) AddMeasurement(ctx context.Context, req *connect.Request[fantasiav1.AddMeasurementRequest]) (*connect.Response[fantasiav1.AddMeasurementResponse], error) {
	name, number, err := view.ParseTrialName(req.Msg.GetName())
	if err != nil {
		return nil, badField("name", err)
	}
	if err := checkMetrics(req.Msg.GetMetrics()); err != nil {
		return nil, err
	}
	next, err := s.backend.AddMeasurement(ctx, name, req.Msg.GetClientId(), Reached{Held: Held{number, int(req.Msg.GetAttempt())}, Step: req.Msg.GetStep(), Metrics: req.Msg.GetMetrics()})
	return respond(&fantasiav1.AddMeasurementResponse{Action: next.Action, Reason: next.Reason}, err)
}

// CompleteTrial ends a trial with its values.
func (s *service) CompleteTrial(ctx context.Context, req *connect.Request[fantasiav1.CompleteTrialRequest]) (*connect.Response[fantasiav1.CompleteTrialResponse], error) {
	ending := Ending{Outcome: messaging.OutcomeCompleted, Values: req.Msg.GetValues(), Metrics: req.Msg.GetMetrics(), Checkpoint: req.Msg.GetCheckpoint()}
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
func (s *service) FailTrial(ctx context.Context, req *connect.Request[fantasiav1.FailTrialRequest]) (*connect.Response[fantasiav1.FailTrialResponse], error) {
	ending := Ending{Outcome: messaging.OutcomeFailed}
	if req.Msg.GetInfeasible() {
		ending.Outcome = messaging.OutcomeInfeasible
	}
	ending.Failure = &messaging.Failure{Reason: req.Msg.GetReason(), Message: req.Msg.GetMessage()}
	if ending.Failure.Reason == "" {
		ending.Failure.Reason = string(ending.Outcome)
	}
	m, err := s.end(ctx, req.Msg, ending)
	return respond(&fantasiav1.FailTrialResponse{Trial: m}, err)
}

// ReleaseTrial hands a trial back.
func (s *service) ReleaseTrial(ctx context.Context, req *connect.Request[fantasiav1.ReleaseTrialRequest]) (*connect.Response[fantasiav1.ReleaseTrialResponse], error) {
	ending := Ending{Outcome: messaging.OutcomeHandedBack, Checkpoint: req.Msg.GetCheckpoint()}
	if reason := req.Msg.GetReason(); reason != "" {
		ending.Failure = &messaging.Failure{Reason: reason}
	}
	m, err := s.end(ctx, req.Msg, ending)
	return respond(&fantasiav1.ReleaseTrialResponse{Trial: m}, err)
}

// ofClient is a request of a client about a trial.
type ofClient interface {
	GetName() string
	GetClientId() string
	GetAttempt() int32
}

// end ends a client's attempt of a trial.
func (s *service) end(ctx context.Context, req ofClient, e Ending) (*fantasiav1.Trial, error) {
	name, number, err := view.ParseTrialName(req.GetName())
	if err != nil {
		return nil, badField("name", err)
	}
	e.Held = Held{number, int(req.GetAttempt())}
	ended, err := s.backend.End(ctx, name, req.GetClientId(), e)
	if err != nil {
		return nil, err
	}
	return toTrial(name, ended)
}

// EnqueueTrial has a point evaluated before the next suggestion.
func (s *service) EnqueueTrial(ctx context.Context, req *connect.Request[fantasiav1.EnqueueTrialRequest]) (*connect.Response[fantasiav1.EnqueueTrialResponse], error) {
	remarks, err := remarksOf(req.Msg)
	if err != nil {
		return nil, err
	}
	name := studyOf(req.Msg.GetParent())
	made, err := s.backend.Enqueue(ctx, name, req.Msg.GetParameters().AsMap(), req.Msg.GetRequestId(), remarks)
	if err != nil {
		return nil, toConnect(err)
	}
	m, err := toTrial(name, made)
	return respond(&fantasiav1.EnqueueTrialResponse{Trial: m}, err)
}

// AddTrial adds a trial that was evaluated elsewhere.
func (s *service) AddTrial(ctx context.Context, req *connect.Request[fantasiav1.AddTrialRequest]) (*connect.Response[fantasiav1.AddTrialResponse], error) {
	if err := checkMetrics(req.Msg.GetMetrics()); err != nil {
		return nil, err
	}
	remarks, err := remarksOf(req.Msg)
	if err != nil {
		return nil, err
	}
	name := studyOf(req.Msg.GetParent())
	made, err := s.backend.Add(ctx, name, Finished{
		Point: req.Msg.GetParameters().AsMap(), Values: req.Msg.GetValues(), Metrics: req.Msg.GetMetrics(), Remarks: remarks,
	}, req.Msg.GetRequestId())
	if err != nil {
		return nil, toConnect(err)
	}
	m, err := toTrial(name, made)
	return respond(&fantasiav1.AddTrialResponse{Trial: m}, err)
}

// CancelTrial ends a trial.
func (s *service) CancelTrial(ctx context.Context, req *connect.Request[fantasiav1.CancelTrialRequest]) (*connect.Response[fantasiav1.CancelTrialResponse], error) {
	name, number, err := view.ParseTrialName(req.Msg.GetName())
	if err != nil {
		return nil, badField("name", err)
	}
	ended, err := s.backend.CancelTrial(ctx, name, number, req.Msg.GetReason())
	if err != nil {
		return nil, toConnect(err)
	}
	m, err := toTrial(name, ended)
	return respond(&fantasiav1.CancelTrialResponse{Trial: m}, err)
}

// EditTrial changes the labels and the note of a trial.
func (s *service) EditTrial(ctx context.Context, req *connect.Request[fantasiav1.EditTrialRequest]) (*connect.Response[fantasiav1.EditTrialResponse], error) {
	name, number, err := view.ParseTrialName(req.Msg.GetName())
	if err != nil {
		return nil, badField("name", err)
	}
	if _, err := remarksOf(req.Msg); err != nil {
		return nil, err
	}
	edited, err := s.backend.EditTrial(ctx, name, Edit{
		Trial: number, Labels: req.Msg.GetLabels(), Remove: req.Msg.GetRemoveLabels(), Note: req.Msg.Note,
	})
	if err != nil {
		return nil, toConnect(err)
	}
	m, err := toTrial(name, edited)
	return respond(&fantasiav1.EditTrialResponse{Trial: m}, err)
}

// remarksOf returns the remarks of a request, or the error of the first field that is
// wrong.
func remarksOf(req interface {
	GetLabels() map[string]string
	GetNote() string
}) (Remarks, error) {
	for _, p := range append(study.CheckLabels("labels", req.GetLabels()), study.CheckNote("note", req.GetNote())...) {
		return Remarks{}, badField(p.Path, errors.New(p.String()))
	}
	return Remarks{Labels: req.GetLabels(), Note: req.GetNote()}, nil
}

// checkMetrics returns an error if metrics would not fit into a trial's record.
func checkMetrics(metrics map[string]float64) error {
	names := 0
	for name := range metrics {
		names += len(name)
	}
	if names > messaging.MaxMetricNames {
		return badField("metrics", fmt.Errorf("the names of %d metrics have %d bytes together; want at most %d", len(metrics), names, messaging.MaxMetricNames))
	}
	return nil
}
