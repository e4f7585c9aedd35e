package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// FromStudy shows a study as a server sent it.
func FromStudy(s *fantasiav1.Study) Study {
	v := Study{
		Study:   strings.TrimPrefix(s.GetName(), "studies/"),
		State:   study.State(EnumName(s.GetState())),
		Trials:  fromCounts(s.GetTrials()),
		Seconds: Seconds(s.GetElapsed().AsDuration()),
		Labels:  s.GetLabels(),
		Note:    s.GetNote(),
	}
	if f := s.GetFront(); f != nil {
		v.FrontSize, v.Hypervolume = new(int(f.GetSize())), f.Hypervolume
	}
	if a := s.GetAttributes(); a != nil {
		v.Attributes = a.AsMap()
	}
	for _, l := range s.GetLimits() {
		within := int(s.GetWithinLimits())
		v.Limits = append(v.Limits, Limit{study.Limit{Metric: l.GetMetric(), Max: l.Max, Min: l.Min, Early: l.GetEarly()}, int(l.GetMet())})
		v.WithinLimits, v.UnmetLimits = &within, s.GetUnmetLimits()
	}
	if c := s.GetTrials().GetCost(); c != nil {
		v.Cost = &Cost{Metric: c.GetMetric(), Spent: c.GetSpent(), Max: c.Max}
	}
	if b := s.GetBest(); b != nil {
		v.Best = &Best{Trial: int(b.GetTrial()), Value: b.GetValue(), Parameters: fromStruct(b.GetParameters())}
	}
	if r := s.GetRecommended(); r != nil {
		v.Recommended = &Recommendation{
			Trial: int(r.GetTrial()), Mean: r.GetMean(), SD: r.GetSd(), Parameters: fromStruct(r.GetParameters()),
		}
		for _, e := range r.GetFront() {
			v.Recommended.Front = append(v.Recommended.Front,
				optimizer.Expected{Trial: int(e.GetTrial()), Means: e.GetMeans(), SDs: e.GetSds(), Knee: e.GetKnee()})
		}
	}
	return v
}

// FromTrial shows a trial as a server sent it.
func FromTrial(t *fantasiav1.Trial) Trial {
	times := t.GetTimes()
	v := Trial{
		Trial:      int(t.GetNumber()),
		State:      study.TrialState(EnumName(t.GetState())),
		Attempts:   len(t.GetAttempts()),
		Runs:       each.Of(t.GetAttempts(), fromAttempt),
		Parameters: fromStruct(t.GetParameters()),
		Metrics:    t.GetMetrics(),
		Value:      t.Value,
		Values:     Several(t.GetValues()),
		Source:     optimizer.Source(strings.ToLower(EnumName(t.GetSource()))),
		Staleness:  int(t.GetStaleness()),
		Rung:       int(t.GetRung()), Predecessor: int(t.GetPredecessor()),
		Times: Times{
			Suggested: Time(times.GetSuggested()),
			Created:   Time(times.GetCreated()),
			Claimed:   Time(times.GetClaimed()),
			Started:   Time(times.GetStarted()),
			Ended:     Time(times.GetEnded()),
			Folded:    Time(times.GetFolded()),
		},
		TraceID:   t.GetTraceId(),
		Cancelled: t.GetCancelReason(),
		Labels:    t.GetLabels(),
		Note:      t.GetNote(),
		Cost:      t.Cost, Expected: t.GetExpectedCost(),
	}
	if a := t.GetAttributes(); a != nil {
		v.Attributes = a.AsMap()
	}
	if v.Metrics == nil {
		v.Metrics = map[string]float64{}
	}
	if s := t.GetStopped(); s != nil {
		v.Stopped = &Stopped{Step: s.GetStep(), Value: First(s.GetValues()), Reason: s.GetReason(), At: Time(s.GetTime())}
		if e := s.GetExpected(); e != nil {
			v.Stopped.Expected = &record.Expected{
				Steps: e.GetSteps(), Values: e.GetValues(), Low: e.GetLow(), High: e.GetHigh(), Level: e.GetLevel(),
			}
		}
	}
	if n := len(t.GetAttempts()); n > 0 {
		last := t.GetAttempts()[n-1]
		v.Worker, v.Failure, v.Logs = last.GetWorker(), FromFailure(last.GetFailure()), last.GetLogs()
		v.Site = messaging.Site{Job: last.GetJob(), Node: last.GetNode(), Devices: last.GetDevices()}
		v.Phases = PhasesOf(FromPhases(last.GetPhases()))
	}
	return v
}

// FromMeasurements shows measurements, which are by metric and step, as a server
// sent them.
func FromMeasurements(list []*fantasiav1.Measurement) []Curve {
	var curves []Curve
	for _, m := range list {
		n := len(curves) - 1
		if n < 0 || curves[n].Metric != m.GetMetric() {
			curves = append(curves, Curve{Metric: m.GetMetric()})
			n++
		}
		curves[n].Steps = append(curves[n].Steps, m.GetStep())
		curves[n].Values = append(curves[n].Values, m.GetValue())
	}
	return curves
}

// FromWorker shows a worker as a server sent it.
func FromWorker(w *fantasiav1.Worker) Worker {
	v := Worker{
		Worker: strings.TrimPrefix(w.GetName(), "workers/"), Pool: w.GetPool(), Host: w.GetHost(),
		Slots: int(w.GetSlots()), Free: int(w.GetFree()), Running: make([]Attempt, len(w.GetRunning())),
		Leaving: w.GetLeaving(), Seen: Time(w.GetHeartbeatTime()),
		StudyCommands: w.GetStudyCommands(), Runs: w.GetRuns(), Software: w.GetSoftware(),
	}
	for i, r := range w.GetRunning() {
		name, trial, err := ParseTrialName(r.GetTrial())
		if err != nil {
			name = r.GetTrial()
		}
		v.Running[i] = Attempt{Study: name, Trial: trial, Attempt: int(r.GetAttempt()), Waiting: r.GetWaiting()}
	}
	return v
}

// FromQuota shows a quota as a server sent it.
func FromQuota(q *fantasiav1.Quota) Quota {
	return Quota{Holder: q.GetHolder(), Quota: q.GetQuota(), Limit: q.Limit, Used: q.GetUsed(), Prefixes: q.GetPrefixes()}
}

// TrialName is the resource name of a trial: "studies/{study}/trials/{number}".
func TrialName(study string, number int) string {
	return "studies/" + study + "/trials/" + strconv.Itoa(number)
}

// ParseTrialName reads what TrialName wrote.
func ParseTrialName(name string) (study string, number int, err error) {
	rest, ok := strings.CutPrefix(name, "studies/")
	study, digits, found := strings.Cut(rest, "/trials/")
	if !ok || !found {
		return "", 0, fmt.Errorf("name is %q; want studies/{study}/trials/{number}", name)
	}
	number, err = strconv.Atoi(digits)
	if err != nil || number < 1 {
		return "", 0, fmt.Errorf("name is %q; want studies/{study}/trials/{number} with a number from 1 on", name)
	}
	return study, number, nil
}

// enum is a generated enumeration.
type enum interface {
	fantasiav1.StudyState | fantasiav1.TrialState | fantasiav1.AttemptState | fantasiav1.Source | fantasiav1.Direction
	fmt.Stringer
}

// EnumName is an enumeration's value without its type's prefix: RUNNING for
// STUDY_STATE_RUNNING.
func EnumName[E enum](e E) string {
	name := e.String()
	for _, prefix := range []string{"STUDY_STATE_", "TRIAL_STATE_", "ATTEMPT_STATE_", "SOURCE_", "DIRECTION_"} {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			return short
		}
	}
	return name
}

func fromCounts(c *fantasiav1.TrialCounts) record.Counts {
	return record.Counts{
		Pending: int(c.GetPending()), Queued: int(c.GetQueued()), Running: int(c.GetRunning()),
		Completed: int(c.GetCompleted()), Failed: int(c.GetFailed()), Infeasible: int(c.GetInfeasible()),
		Pruned: int(c.GetPruned()), Cancelled: int(c.GetCancelled()), Added: int(c.GetAdded()),
	}
}

// FromFailure shows a failure as a server sent it; nil for nil.
func FromFailure(f *fantasiav1.Failure) *messaging.Failure {
	if f == nil {
		return nil
	}
	v := &messaging.Failure{Reason: f.GetReason(), Signal: f.GetSignal(), Message: f.GetMessage()}
	if f.ExitCode != nil {
		v.ExitCode = new(int(f.GetExitCode()))
	}
	return v
}

func fromStruct(s *structpb.Struct) Parameters { return s.AsMap() }

// Time returns a time as a server sent it; the zero time for nil.
func Time(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// Limited is what decides whether a study's trials are within its limits: its objectives and
// its limits.
func Limited(s *fantasiav1.Study) *study.Spec {
	spec := &study.Spec{Objective: study.Objective{Metric: s.GetObjective().GetMetric()}, Several: Objectives(s)}
	for _, l := range s.GetLimits() {
		spec.Limits = append(spec.Limits, study.Limit{Metric: l.GetMetric(), Max: l.Max, Min: l.Min, Early: l.GetEarly()})
	}
	return spec
}

// Mark sets which of a study's limits the trial is outside of, if it has completed.
func (t *Trial) Mark(spec *study.Spec) {
	t.Exceeded = nil
	if t.State != study.TrialCompleted {
		return
	}
	for i, e := range spec.Excess(t.All(), t.Metrics) {
		if !(e <= 0) {
			t.Exceeded = append(t.Exceeded, spec.Limits[i].String())
		}
	}
}

// ReasonEtcdAway is the reason, in a google.rpc.ErrorInfo of ErrorDomain, of an error
// that says that etcd does not answer.
const (
	ReasonEtcdAway = "ETCD_AWAY"
	ErrorDomain    = "fantasia.dev"
)
