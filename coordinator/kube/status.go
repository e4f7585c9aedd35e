package kube

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// The states of a resource besides those of a study.
const (
	// StateRejected means that the resource's study was never started.
	StateRejected study.State = "REJECTED"
	// StateDeleted means that the resource's running study was deleted from the ledger
	// by someone else.
	StateDeleted study.State = "DELETED"
	// StateUnknown means that the study was running when coordinators ceased to run those of
	// its namespace.
	StateUnknown study.State = "UNKNOWN"
)

// The conditions of a resource.
const (
	// ConditionAccepted tells whether the study runs with the resource's spec.
	ConditionAccepted = "Accepted"
	// ConditionProgressing tells whether trials are being evaluated, or why none is.
	ConditionProgressing = "Progressing"
	// ConditionComplete tells whether the study has ended well: it has completed, or a
	// user has stopped it.
	ConditionComplete = "Complete"
	// ConditionFailed tells whether the study has failed, was rejected, or was deleted
	// from the ledger while it ran.
	ConditionFailed = "Failed"
	// ConditionFinished tells whether the study has ended, for any reason.
	ConditionFinished = "Finished"
)

// The reasons of the conditions.
const (
	ReasonAccepted = "Accepted"
	// ReasonInvalid means that file.Parse refuses the spec.
	ReasonInvalid = "Invalid"
	// ReasonDenied means that the namespace may not use the pool.
	ReasonDenied = "Denied"
	// ReasonIncompatible means that a change does not fit the evaluated trials.
	ReasonIncompatible = "Incompatible"
	// ReasonDeleted means that the study was deleted from the ledger, or that a backup without
	// it was restored.
	ReasonDeleted = "Deleted"
	// ReasonNotWatched means that no coordinator is known to run the studies of the
	// resource's namespace.
	ReasonNotWatched = "NotWatched"

	ReasonRunning   = "Running"
	ReasonCompleted = "Completed"
	ReasonStopped   = "Stopped"
	ReasonFailed    = "Failed"
	ReasonRejected  = "Rejected"
	// ReasonNoWorkers and ReasonPoolBusy say why no trial of a running study runs.
	ReasonNoWorkers = "NoWorkers"
	ReasonPoolBusy  = "PoolBusy"
	// ReasonTrialsWait says that no program of a running study's trials has started yet.
	ReasonTrialsWait = "TrialsWait"
)

// Status is the status of a resource.
type Status struct {
	// ID is the study's id in the ledger, set once it has started, and Study its name.
	ID    string `json:"id,omitempty"`
	Study string `json:"study,omitempty"`
	// CoordinatorNamespace is the namespace of the coordinators that run the study;
	// empty if they run outside of the cluster.
	CoordinatorNamespace string      `json:"coordinatorNamespace,omitempty"`
	State                study.State `json:"state,omitempty"`
	// Reason explains to people why the study is in its state.
	Reason             string             `json:"reason,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Done               int                `json:"done"`
	Counts             *record.Counts     `json:"counts,omitempty"`
	Best               *Best              `json:"best,omitempty"`
	Recommended        *Recommendation    `json:"recommended,omitempty"`
	Front              *Front             `json:"front,omitempty"`
	StartTime          *metav1.Time       `json:"startTime,omitempty"`
	CompletionTime     *metav1.Time       `json:"completionTime,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// Best is the completed trial with the best value.
type Best struct {
	Trial int     `json:"trial"`
	Value float64 `json:"value"`
	// Text is the value rounded for kubectl's columns, which cannot round.
	Text       string         `json:"text,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
}

// Recommendation is the evaluated point with the best posterior mean. Of several objectives it is the
// knee of the recommended front, with the mean and the standard deviation of the first objective.
type Recommendation struct {
	Trial int     `json:"trial"`
	Mean  float64 `json:"mean"`
	SD    float64 `json:"sd"`
	// Text is the mean rounded for kubectl's columns.
	Text       string         `json:"text,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
}

// Front is the front of a study of several objectives.
type Front struct {
	Size int `json:"size"`
	// Hypervolume is nil if the objectives' references do not give one.
	Hypervolume *float64 `json:"hypervolume,omitempty"`
	// Text is the hypervolume rounded for kubectl's columns.
	Text string `json:"text,omitempty"`
	// Recommended are the trials on the recommended front, the best in the first objective first.
	Recommended []int `json:"recommended,omitempty"`
}

// Verdict tells whether a resource's study runs with its spec.
type Verdict struct {
	Accepted bool
	Reason   string
	Message  string
}

// view is what is known about a study besides its resource; the ledger's parts are nil
// if unknown.
type view struct {
	home        string // the coordinators' namespace
	id          string
	status      *record.Status
	best        *record.Trial
	recommended *optimizer.Recommendation
	stall       stall
}

// next returns the status of a resource after a verdict, based on its present status
// and the ledger.
func (r *Resource) next(v Verdict, ledger view, now time.Time) Status {
	s := r.Status
	v.Message = clip(v.Message)
	if s.State == StateUnknown { // its namespace is run again
		s.State = study.Running
	}
	s.Conditions = append([]metav1.Condition(nil), s.Conditions...)
	if s.ID != r.ID() { // without a study yet, or copied from another resource
		s = Status{Conditions: s.Conditions}
	}
	s.Study, s.ObservedGeneration, s.CoordinatorNamespace = r.StudyName(), r.Generation, ledger.home
	switch {
	case ledger.status != nil:
		s.ID = ledger.id
		s.fill(ledger)
	case s.ID == "":
		s.State, s.Reason = StateRejected, v.Message
	case !s.State.Terminal() && v.Reason == ReasonDeleted:
		s.State, s.Reason = StateDeleted, v.Message
	}
	accepted := metav1.Condition{Type: ConditionAccepted, Status: metav1.ConditionFalse, Reason: v.Reason, Message: v.Message}
	if v.Accepted {
		accepted.Status = metav1.ConditionTrue
	}
	for _, c := range append([]metav1.Condition{accepted}, s.progress(ledger.stall)...) {
		c.ObservedGeneration, c.LastTransitionTime = r.Generation, metav1.NewTime(now.UTC().Truncate(time.Second))
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return s
}

// maxMessage is the largest size of a message in bytes: a condition's is at most 32
// KiB, and a status contains it several times.
const maxMessage = 8 << 10

// clip truncates a long text after its last whole line.
func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	text = text[:maxMessage]
	if end := strings.LastIndexByte(text, '\n'); end > 0 {
		return text[:end] + "\n…"
	}
	return strings.ToValidUTF8(text, "") + "…"
}

// fill copies what the ledger knows.
func (s *Status) fill(ledger view) {
	status := ledger.status
	if status.State.Terminal() && (!s.State.Terminal() || s.Done != status.Counts.Ended()) {
		s.Recommended = nil // based on fewer trials
	}
	counts := status.Counts
	s.State, s.Reason, s.Done, s.Counts = status.State, clip(status.Reason), counts.Ended(), &counts
	s.StartTime, s.CompletionTime = instant(status.Started), instant(status.Ended)
	switch {
	case status.Best == 0:
		s.Best = nil
	case ledger.best != nil && len(ledger.best.Values) > 0:
		s.Best = &Best{Trial: ledger.best.Number, Value: ledger.best.Values.First(), Parameters: ledger.best.Point}
	}
	was := s.Front
	s.Front = nil
	if f := status.Front; f != nil {
		s.Front = &Front{Size: f.Size, Hypervolume: f.Hypervolume}
		if was != nil && s.Recommended != nil {
			s.Front.Recommended = was.Recommended
		}
		if f.Hypervolume != nil {
			s.Front.Text = rounded(*f.Hypervolume)
		}
	}
	if r := ledger.recommended; r != nil {
		s.Recommended = &Recommendation{Trial: r.Trial, Mean: r.Mean, SD: r.SD, Parameters: r.Point}
		if s.Front != nil {
			s.Front.Recommended = nil
			for _, e := range r.Front {
				s.Front.Recommended = append(s.Front.Recommended, e.Trial)
			}
		}
	}
	if s.Best != nil {
		best := *s.Best
		best.Text, s.Best = rounded(best.Value), &best
	}
	if s.Recommended != nil {
		recommended := *s.Recommended
		if s.Front == nil { // of several objectives one mean says little
			recommended.Text = rounded(recommended.Mean)
		}
		s.Recommended = &recommended
	}
}

// instant converts a time to Kubernetes' format, in whole seconds; nil for no time.
func instant(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t.UTC().Truncate(time.Second)))
}

// rounded returns a number with four significant digits.
func rounded(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// progress returns the conditions that follow from the state. A study that has ended
// has Finished and one of Complete and Failed, so that a wait for its end can end.
func (s *Status) progress(stalled stall) []metav1.Condition {
	reason := map[study.State]string{
		study.Running: ReasonRunning, study.Completed: ReasonCompleted, study.Stopped: ReasonStopped,
		study.Failed: ReasonFailed, StateRejected: ReasonRejected, StateDeleted: ReasonDeleted,
	}[s.State]
	if reason == "" {
		return nil
	}
	running, well := s.State == study.Running, s.State == study.Completed || s.State == study.Stopped
	of := func(kind string, holds bool) metav1.Condition {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: s.Reason}
		if holds {
			c.Status = metav1.ConditionTrue
		}
		return c
	}
	progressing := of(ConditionProgressing, running)
	if running && stalled.reason != "" {
		progressing.Status, progressing.Reason, progressing.Message = metav1.ConditionFalse, stalled.reason, stalled.message
	} else if running && stalled.message != "" {
		progressing.Message = stalled.message
	}
	return []metav1.Condition{
		progressing, of(ConditionComplete, well), of(ConditionFailed, !running && !well), of(ConditionFinished, !running),
	}
}
