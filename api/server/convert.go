package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// toStudy converts a study to a message. file says whether to include the study file.
func toStudy(s Study, now time.Time, file bool) (*fantasiav1.Study, error) {
	spec := &s.Spec.Definition.Spec
	m := &fantasiav1.Study{
		Name:   studiesPrefix + s.Spec.Definition.Metadata.Name,
		Id:     s.Spec.ID,
		State:  toStudyState(s.Status.State),
		Reason: s.Status.Reason,

		Objective:    toObjective(spec.FirstObjective()),
		MaxTrials:    int32(spec.Budget.MaxTrials),
		Parallelism:  int32(spec.Parallelism),
		Pool:         spec.Pool,
		Algorithm:    spec.Algorithm.Name,
		Trials:       toCounts(s.Status.Counts),
		SpaceVersion: int32(s.Spec.SpaceVersion()),
		Labels:       s.Spec.Definition.Metadata.Labels,
		Note:         spec.Note,
		CreateTime:   toTime(s.Spec.Created),
		StartTime:    toTime(s.Status.Started),
		EndTime:      toTime(s.Status.Ended),
		Elapsed:      durationpb.New(view.Elapsed(s.Status, now)),
	}
	for i := range spec.Several {
		m.Objectives = append(m.Objectives, toObjective(&spec.Several[i]))
	}
	addFront(m, spec, s.Status.Front)
	addLimits(m, spec, &s.Status)
	if most := time.Duration(spec.Budget.MaxDuration); most > 0 {
		m.MaxDuration = durationpb.New(most)
	}
	if c := view.OfCost(spec, &s.Status); c != nil {
		m.Trials.Cost = &fantasiav1.TrialsCost{Metric: c.Metric, Spent: c.Spent, Max: c.Max}
	}
	if file {
		text, err := json.Marshal(s.Spec.Definition)
		if err != nil {
			return nil, fmt.Errorf("study %s: %w", s.Spec.Definition.Metadata.Name, err)
		}
		m.StudyFile = string(text)
		if len(spec.Attributes) > 0 {
			if m.Attributes, err = structpb.NewStruct(spec.Attributes); err != nil {
				return nil, fmt.Errorf("study %s: %w", s.Spec.Definition.Metadata.Name, err)
			}
		}
	}
	return m, addResults(m, s)
}

// addFront adds the goal of several objectives and the size of their front.
func addFront(m *fantasiav1.Study, spec *study.Spec, f *record.Front) {
	if spec.Goal != nil {
		m.GoalHypervolume = new(spec.Goal.Hypervolume)
	}
	if f != nil {
		m.Front = &fantasiav1.Front{Size: int32(f.Size), Hypervolume: f.Hypervolume}
	}
}

// addLimits adds the study's limits and how its trials stand to them.
func addLimits(m *fantasiav1.Study, spec *study.Spec, status *record.Status) {
	tally := status.Limits
	for i, l := range spec.Limits {
		limit := &fantasiav1.Limit{Metric: l.Metric, Max: l.Max, Min: l.Min, Early: l.Early}
		if tally != nil && i < len(tally.Each) {
			limit.Met = int32(tally.Each[i].Met)
		}
		m.Limits = append(m.Limits, limit)
	}
	if tally != nil {
		m.WithinLimits = int32(tally.Within)
	}
	m.UnmetLimits = status.Unmet(spec)
}

func toObjective(o *study.Objective) *fantasiav1.Objective {
	return &fantasiav1.Objective{
		Metric:    o.Metric,
		Direction: fantasiav1.Direction(fantasiav1.Direction_value["DIRECTION_"+strings.ToUpper(string(o.Direction))]),
		Goal:      o.Goal,
		Reference: o.Reference,
		Early:     o.Early,
	}
}

// addResults adds the best and the recommended trial.
func addResults(m *fantasiav1.Study, s Study) error {
	if best := view.OfBest(s.Best); best != nil {
		point, err := toStruct(best.Parameters)
		if err != nil {
			return fmt.Errorf("study %s, trial %d: %w", s.Spec.Definition.Metadata.Name, best.Trial, err)
		}
		m.Best = &fantasiav1.BestTrial{Trial: int32(best.Trial), Value: best.Value, Values: s.Best.Values, Parameters: point}
	}
	if r := s.Recommended; r != nil {
		point, err := toStruct(r.Point)
		if err != nil {
			return fmt.Errorf("study %s, recommended trial %d: %w", s.Spec.Definition.Metadata.Name, r.Trial, err)
		}
		m.Recommended = &fantasiav1.Recommendation{Trial: int32(r.Trial), Mean: r.Mean, Sd: r.SD, Parameters: point,
			Current: s.Status.RecommendedOfAll()}
		for _, e := range r.Front {
			m.Recommended.Front = append(m.Recommended.Front,
				&fantasiav1.ExpectedTrial{Trial: int32(e.Trial), Means: e.Means, Sds: e.SDs, Knee: e.Knee})
		}
	}
	return nil
}

func toCounts(c record.Counts) *fantasiav1.TrialCounts {
	return &fantasiav1.TrialCounts{
		Pending: int32(c.Pending), Queued: int32(c.Queued), Running: int32(c.Running),
		Completed: int32(c.Completed), Failed: int32(c.Failed), Infeasible: int32(c.Infeasible),
		Pruned: int32(c.Pruned), Cancelled: int32(c.Cancelled), Added: int32(c.Added),
	}
}

// toStudyState converts a study's state; unspecified if this version does not know it.
func toStudyState(s study.State) fantasiav1.StudyState {
	return fantasiav1.StudyState(fantasiav1.StudyState_value["STUDY_STATE_"+string(s)])
}

// toTrial converts a trial to a message. study is the name or id that the caller used.
func toTrial(study string, t record.Trial) (*fantasiav1.Trial, error) {
	point, err := toStruct(t.Point)
	if err != nil {
		return nil, fmt.Errorf("study %s, trial %d: %w", study, t.Number, err)
	}
	m := &fantasiav1.Trial{
		Name:       view.TrialName(study, t.Number),
		Number:     int32(t.Number),
		State:      toTrialState(t.State),
		Parameters: point,
		Metrics:    t.Metrics,
		Value:      view.First(t.Values),
		Values:     t.Values,
		Source:     fantasiav1.Source(fantasiav1.Source_value["SOURCE_"+strings.ToUpper(string(t.Origin()))]),
		Reasons: &fantasiav1.Reasons{
			Mean: t.Reasons.Mean, Sd: t.Reasons.SD, Acquisition: t.Reasons.Acquisition,
			Pending: int32(t.Reasons.Pending), Note: t.Reasons.Note,
		},
		Staleness:    int32(t.Staleness),
		Attempts:     make([]*fantasiav1.Attempt, len(t.Attempts)),
		Checkpoint:   t.Checkpoint,
		TraceId:      t.TraceID,
		Stopped:      toStopped(t.Stopped),
		Labels:       t.Labels,
		Note:         t.Note,
		CancelReason: t.Cancelled,
		Rung:         int32(t.Rung), Predecessor: int32(t.Predecessor),
		ExpectedCost: t.Expected,
		Times: &fantasiav1.TrialTimes{
			Asked: toTime(t.Times.Asked), Suggested: toTime(t.Times.Suggested), Created: toTime(t.Times.Created),
			Claimed: toTime(t.Times.Claimed), Started: toTime(t.Times.Started),
			Ended: toTime(t.Times.Ended), Folded: toTime(t.Times.Folded),
		},
	}
	if len(t.Attributes) > 0 {
		if m.Attributes, err = structpb.NewStruct(t.Attributes); err != nil {
			return nil, fmt.Errorf("study %s, trial %d: %w", study, t.Number, err)
		}
	}
	if cost, reported := t.Cost(); reported {
		m.Cost = &cost
	}
	for i := range t.Attempts {
		m.Attempts[i] = toAttempt(&t.Attempts[i])
	}
	return m, nil
}

func toStopped(s *record.Stopped) *fantasiav1.Stopped {
	if s == nil {
		return nil
	}
	m := &fantasiav1.Stopped{Attempt: int32(s.Attempt), Step: s.Step, Values: s.Values, Reason: s.Reason, Time: toTime(s.At)}
	if e := s.Expected; e != nil {
		m.Expected = &fantasiav1.StoppedExpected{Steps: e.Steps, Values: e.Values, Low: e.Low, High: e.High, Level: e.Level}
	}
	return m
}

func toTrialState(s study.TrialState) fantasiav1.TrialState {
	return fantasiav1.TrialState(fantasiav1.TrialState_value["TRIAL_STATE_"+string(s)])
}

func toAttempt(a *record.Attempt) *fantasiav1.Attempt {
	state := "ATTEMPT_STATE_" + strings.ToUpper(strings.ReplaceAll(string(a.State), "-", "_"))
	var site messaging.Site
	if a.Site != nil {
		site = *a.Site
	}
	return &fantasiav1.Attempt{
		Job: site.Job, Node: site.Node, Devices: site.Devices,
		Number:    int32(a.Number),
		State:     fantasiav1.AttemptState(fantasiav1.AttemptState_value[state]),
		Worker:    a.Worker,
		OpenTime:  toTime(a.Opened),
		ClaimTime: toTime(a.Claimed),
		StartTime: toTime(a.Started),
		EndTime:   toTime(a.Ended),
		Failure:   toFailure(a.Failure),
		Logs:      a.Logs,
		Waiting:   a.Waiting,
		Phases:    toPhases(a.Phases()),
	}
}

func toPhases(list []messaging.Phase) []*fantasiav1.Phase {
	var phases []*fantasiav1.Phase
	for _, p := range list {
		phases = append(phases, &fantasiav1.Phase{Phase: p.Name, StartTime: toTime(p.Start), EndTime: toTime(p.End)})
	}
	return phases
}

func toFailure(f *messaging.Failure) *fantasiav1.Failure {
	if f == nil {
		return nil
	}
	m := &fantasiav1.Failure{Reason: f.Reason, Signal: f.Signal, Message: strings.ToValidUTF8(f.Message, "\uFFFD")}
	if f.ExitCode != nil {
		m.ExitCode = new(int32(*f.ExitCode))
	}
	return m
}

func toWorker(w coordinator.Worker) *fantasiav1.Worker {
	h := &w.Heartbeat
	m := &fantasiav1.Worker{
		Name: workersPrefix + h.Worker, Pool: h.Pool, Slots: int32(h.Slots), Free: int32(h.Free),
		Running: make([]*fantasiav1.RunningAttempt, len(h.Running)), Leaving: h.Leaving,
		HeartbeatTime: toTime(w.Seen), Host: h.Host, Software: h.Software, StudyCommands: h.StudyCommands,
		Runs: h.Runs,
	}
	causes := h.Causes()
	for i, a := range h.Running {
		m.Running[i] = &fantasiav1.RunningAttempt{Trial: view.TrialName(a.Study, a.Trial), Attempt: int32(a.Attempt)}
		m.Running[i].Waiting = causes[a]
	}
	return m
}

func toStruct(p map[string]any) (*structpb.Struct, error) { return structpb.NewStruct(p) }

// toTime converts a time; it returns nil for the zero time.
func toTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
