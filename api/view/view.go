// Package view holds the JSON shapes in which people and scripts see studies,
// trials and workers: what `fantasia run -o json` ends with, and what the
// commands of a server print. The shapes are a promise: keys are only added.
package view

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Study is a study and how far it has come.
type Study struct {
	// Study is its name.
	Study  string        `json:"study"`
	State  study.State   `json:"state"`
	Trials record.Counts `json:"trials"`
	// Best is the best value seen; nil where no trial has completed within all limits, and
	// where there are several objectives.
	Best *Best `json:"best"`
	// Front are the trials that no other trial dominates, the best in the first objective
	// first, where there are several objectives; nil where there is one, and in lists.
	Front []Optimal `json:"front,omitzero"`
	// FrontSize is how many trials are on the front; nil where there is one objective.
	FrontSize *int `json:"frontSize,omitempty"`
	// Hypervolume is what the front dominates, where each of two to four objectives has a
	// reference.
	Hypervolume *float64 `json:"hypervolume,omitempty"`
	// Recommended is the evaluated point whose posterior mean is best; nil where
	// the optimiser has no model of it.
	Recommended *Recommendation `json:"recommended"`
	// Limits are the study's limits; nil where there are none.
	Limits []Limit `json:"limits,omitempty"`
	// WithinLimits is how many completed trials are within all limits; nil where there are none.
	WithinLimits *int `json:"withinLimits,omitempty"`
	// UnmetLimits says which limit is the hard one, if trials have completed and none is within
	// all limits.
	UnmetLimits string `json:"unmetLimits,omitempty"`
	// Cost is what the trials have cost; nil if the study has no cost but time.
	Cost *Cost `json:"cost,omitempty"`
	// Seconds is how long the study has run, rounded to milliseconds.
	Seconds float64 `json:"seconds"`
	// Labels and Note are what people say of it, Attributes what programs have noted.
	Labels     map[string]string `json:"labels,omitempty"`
	Note       string            `json:"note,omitempty"`
	Attributes map[string]any    `json:"attributes,omitempty"`
	// Directory is the state directory that holds it; "" for a study of a server.
	Directory string `json:"directory,omitempty"`
}

// Limit bounds a metric: Met completed trials are within it.
type Limit struct {
	study.Limit
	Met int `json:"met"`
}

// Cost is what the ended trials of a study have cost, in the unit of a metric, and what all of them may cost.
type Cost struct {
	Metric string  `json:"metric"`
	Spent  float64 `json:"spent"`
	// Max is nil if there is no bound.
	Max *float64 `json:"max,omitempty"`
}

// OfCost shows what the trials of a study have cost; nil if it has no cost but time.
func OfCost(spec *study.Spec, status *record.Status) *Cost {
	if spec.Cost == nil {
		return nil
	}
	c := &Cost{Metric: spec.Cost.Metric, Spent: status.Spent}
	if spec.Budget.MaxCost > 0 {
		c.Max = &spec.Budget.MaxCost
	}
	return c
}

// String is the text for people, such as "12.5 of 100 dollars".
func (c *Cost) String() string {
	if c.Max == nil {
		return Number(c.Spent) + " " + c.Metric
	}
	return Number(c.Spent) + " of " + Number(*c.Max) + " " + c.Metric
}

// Best is the trial with the best value seen.
type Best struct {
	Trial      int        `json:"trial"`
	Value      float64    `json:"value"`
	Parameters Parameters `json:"parameters"`
}

// Recommendation is the evaluated point whose posterior mean is best: see
// optimizer.Recommendation.
type Recommendation struct {
	Trial      int        `json:"trial"`
	Mean       float64    `json:"mean"`
	SD         float64    `json:"sd"`
	Parameters Parameters `json:"parameters"`
	// Front is that of posterior means, the best in the first objective first; nil where there
	// is one objective.
	Front []optimizer.Expected `json:"front,omitempty"`
}

// Parameters are a point as scripts see it, by name: numbers as JSON has them,
// which tells no float from an integer.
type Parameters map[string]any

// Trial is one trial, flattened to its last attempt.
type Trial struct {
	Trial int              `json:"trial"`
	State study.TrialState `json:"state"`
	// Attempts is how many times the trial was handed out.
	Attempts int `json:"attempts"`
	// Runs are these attempts, oldest first; they are not part of the JSON.
	Runs       []Run              `json:"-"`
	Parameters Parameters         `json:"parameters"`
	Metrics    map[string]float64 `json:"metrics"`
	// Value is the objective's: that of a completed trial, or what a pruned one had
	// reached; otherwise nil.
	Value *float64 `json:"value"`
	// Values are those of all objectives, in the order of the study file, where there are
	// several; Value is then the first.
	Values []float64 `json:"values,omitempty"`
	// Objectives are the metrics that Value and Values are of; only in lists.
	Objectives []string `json:"objectives,omitempty"`
	// Exceeded are the limits that a completed trial is outside of, as text such as
	// "memory_mb <= 512"; nil if there are none.
	Exceeded []string `json:"exceeded,omitempty"`
	// Stopped is the decision to stop the trial early; nil if there was none.
	Stopped *Stopped `json:"stopped,omitempty"`
	// Cancelled is why a user has cancelled the trial; "" if none has.
	Cancelled string `json:"cancelled,omitempty"`
	// Rung is the level of the study's fidelity, from 1, and Predecessor the trial that this one
	// continues, at the level below or stopped early; 0 if there is none.
	Rung        int `json:"rung,omitempty"`
	Predecessor int `json:"predecessor,omitempty"`
	// Labels and Note are what people say of the trial.
	Labels map[string]string `json:"labels,omitempty"`
	Note   string            `json:"note,omitempty"`
	// Attributes are what programs have noted about it.
	Attributes map[string]any   `json:"attributes,omitempty"`
	Worker     string           `json:"worker"`
	Source     optimizer.Source `json:"source"`
	Staleness  int              `json:"staleness"`
	// Failure is the last attempt's; nil where nothing went wrong.
	Failure *messaging.Failure `json:"failure"`
	// Logs is where the worker keeps the last attempt's log.
	Logs string `json:"logs"`
	// Site is where the last attempt ran, as far as that is known.
	messaging.Site
	// Phases are the parts of the last attempt's evaluation, if it was in a Job of Kubernetes and has ended.
	Phases []Phase `json:"phases,omitempty"`
	Times  Times   `json:"times"`
	// Cost is what the trial has cost by now, in the unit of the study's cost; nil if that is not known. Expected is what it was
	// expected to cost; of an ended trial without a Cost it is what counts in its place.
	Cost     *float64 `json:"cost,omitempty"`
	Expected float64  `json:"expectedCost,omitempty"`
	// Takes is how long a trial that runs is expected to take in all; only where one trial is asked for.
	Takes   *Takes `json:"takes,omitempty"`
	TraceID string `json:"traceId"`
	// Measurements are what the program reported at each step; only where one
	// trial is asked for.
	Measurements []Curve `json:"measurements,omitempty"`
}

// All returns the values of all objectives; nil if there are none.
func (t *Trial) All() study.Values {
	if len(t.Values) == 0 && t.Value != nil {
		return study.Values{*t.Value}
	}
	return t.Values
}

// CostText says what a trial has cost and what was expected; "" if neither is known.
func (t *Trial) CostText() string {
	switch {
	case t.Cost == nil && t.Expected == 0:
		return ""
	case t.Cost == nil && t.State.Terminal():
		return fmt.Sprintf("counts as %s, which was expected of it: none was reported", Number(t.Expected))
	case t.Cost == nil:
		return Number(t.Expected) + " expected"
	case t.Expected == 0:
		return Number(*t.Cost)
	default:
		return fmt.Sprintf("%s (%s expected)", Number(*t.Cost), Number(t.Expected))
	}
}

// Takes is how long a trial is expected to take: half of such trials take at most Median seconds, and nine tenths between Low
// and High.
type Takes struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// Stopped is the decision to stop a trial early, because of the report at a step. Value
// is the objective's by then; nil if it had not been reported.
type Stopped struct {
	Step   int64     `json:"step"`
	Value  *float64  `json:"value"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Expected is what a model expected of the trial then; nil for a rule without one.
	Expected *record.Expected `json:"expected,omitempty"`
}

// Curve is what a program reported of a metric: Values[i] at Steps[i].
type Curve struct {
	Metric string    `json:"metric"`
	Steps  []int64   `json:"steps"`
	Values []float64 `json:"values"`
}

// Times are when a trial passed each stage; stages not reached are left out.
type Times struct {
	Suggested time.Time `json:"suggested,omitzero"`
	Created   time.Time `json:"created,omitzero"`
	Claimed   time.Time `json:"claimed,omitzero"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Folded    time.Time `json:"folded,omitzero"`
}

// Quota bounds what somebody may keep or use.
type Quota struct {
	// Holder is whose quota it is, Quota its name.
	Holder string `json:"holder"`
	Quota  string `json:"quota"`
	Used   int64  `json:"used"`
	// Limit is absent if there is none.
	Limit *int64 `json:"limit,omitempty"`
	// Prefixes says which studies count: those whose names begin with one of them. Absent if all count.
	Prefixes []string `json:"prefixes,omitempty"`
}

// Worker is a worker as the leader knows it.
type Worker struct {
	Worker  string    `json:"worker"`
	Pool    string    `json:"pool"`
	Host    string    `json:"host"`
	Slots   int       `json:"slots"`
	Free    int       `json:"free"`
	Running []Attempt `json:"running"`
	// Leaving says that it takes no more and hands back what it runs.
	Leaving bool `json:"leaving"`
	// Seen is when the leader last heard of it.
	Seen time.Time `json:"seen,omitzero"`
	// StudyCommands says whether it runs commands that studies bring.
	StudyCommands bool `json:"studyCommands"`
	// Runs is what evaluates its trials, such as command or kubejob; empty if it does not
	// say.
	Runs     string `json:"runs"`
	Software string `json:"software"`
}

// Attempt names an attempt that a worker evaluates. Study is the study's id.
type Attempt struct {
	Study   string `json:"study"`
	Trial   int    `json:"trial"`
	Attempt int    `json:"attempt"`
	// Waiting is why its program has not started; "" if it has.
	Waiting string `json:"waiting,omitempty"`
}

// OfStudy shows a study as the ledger has it, at the time now. best and
// recommended are nil where there is none.
func OfStudy(spec record.Study, status record.Status, best *record.Trial, recommended *optimizer.Recommendation, now time.Time) Study {
	v := Study{
		Study:       spec.Definition.Metadata.Name,
		State:       status.State,
		Trials:      status.Counts,
		Best:        OfBest(best),
		Recommended: ofRecommendation(recommended),
		Seconds:     Seconds(Elapsed(status, now)),
		Labels:      spec.Definition.Metadata.Labels,
		Note:        spec.Definition.Spec.Note,
		Attributes:  spec.Definition.Spec.Attributes,
		UnmetLimits: status.Unmet(&spec.Definition.Spec),
		Cost:        OfCost(&spec.Definition.Spec, &status),
	}
	if f := status.Front; f != nil {
		v.FrontSize, v.Hypervolume = new(f.Size), f.Hypervolume
	}
	within := 0
	for i, l := range spec.Definition.Spec.Limits {
		limit := Limit{Limit: l}
		if tally := status.Limits; tally != nil && i < len(tally.Each) {
			within, limit.Met = tally.Within, tally.Each[i].Met
		}
		v.Limits, v.WithinLimits = append(v.Limits, limit), &within
	}
	return v
}

// OfBest shows the trial with the best value; nil for nil and for a trial
// without a value.
func OfBest(t *record.Trial) *Best {
	if t == nil || len(t.Values) == 0 {
		return nil
	}
	return &Best{Trial: t.Number, Value: t.Values.First(), Parameters: Parameters(t.Point)}
}

// First shows the value of the first objective; nil where there is none.
func First(values study.Values) *float64 {
	if len(values) == 0 {
		return nil
	}
	return new(values.First())
}

// Several returns the values if there are several objectives; nil if there is one.
func Several(values []float64) []float64 {
	if len(values) < 2 {
		return nil
	}
	return values
}

func ofRecommendation(r *optimizer.Recommendation) *Recommendation {
	if r == nil {
		return nil
	}
	return &Recommendation{Trial: r.Trial, Mean: r.Mean, SD: r.SD, Parameters: Parameters(r.Point), Front: r.Front}
}

// Elapsed is how long a study has run: until it ended, or until now. The time between an end and the update that resumed
// the study does not count, and neither does the time without a leader.
func Elapsed(status record.Status, now time.Time) time.Duration {
	switch {
	case status.Started.IsZero():
		return 0
	case !status.Ended.IsZero() && status.Ran > 0:
		return status.Ran
	case !status.Ended.IsZero():
		now = status.Ended
	case !status.Counted.IsZero():
		return status.Ran + max(now.Sub(status.Counted), 0)
	}
	return max(now.Sub(status.Started)-status.Idle, 0) // an earlier version has written it
}

// OfTrial shows a trial as the ledger has it.
func OfTrial(t record.Trial) Trial {
	v := Trial{
		Trial:      t.Number,
		State:      t.State,
		Attempts:   len(t.Attempts),
		Runs:       each.Of(t.Attempts, ofAttempt),
		Parameters: Parameters(t.Point),
		Metrics:    t.Metrics,
		Value:      First(t.Values),
		Values:     Several(t.Values),
		Source:     t.Origin(),
		Staleness:  t.Staleness,
		Rung:       t.Rung, Predecessor: t.Predecessor,
		Times: Times{
			Suggested: t.Times.Suggested,
			Created:   t.Times.Created,
			Claimed:   t.Times.Claimed,
			Started:   t.Times.Started,
			Ended:     t.Times.Ended,
			Folded:    t.Times.Folded,
		},
		TraceID:   t.TraceID,
		Cancelled: t.Cancelled,
		Labels:    t.Labels,
		Note:      t.Note, Attributes: t.Attributes,
		Expected: t.Expected,
	}
	if cost, reported := t.Cost(); reported {
		v.Cost = &cost
	}
	if v.Metrics == nil {
		v.Metrics = map[string]float64{}
	}
	if s := t.Stopped; s != nil {
		v.Stopped = &Stopped{Step: s.Step, Value: First(s.Values), Reason: s.Reason, At: s.At, Expected: s.Expected}
	}
	if last := t.Last(); last != nil {
		v.Worker, v.Failure, v.Logs = last.Worker, last.Failure, last.Logs
		if last.Site != nil {
			v.Site = *last.Site
		}
		v.Phases = PhasesOf(last.Phases())
	}
	return v
}

// SiteLine says where an attempt ran, such as "job 4711_3, node n17, devices 0,1"; empty if nothing is known.
func SiteLine(s messaging.Site) string {
	var parts []string
	for _, p := range []struct{ name, text string }{{"job ", s.Job}, {"node ", s.Node}, {"devices ", s.Devices}} {
		if p.text != "" {
			parts = append(parts, p.name+p.text)
		}
	}
	return strings.Join(parts, ", ")
}

// OfSeries shows what a program reported, as the ledger has it.
func OfSeries(list []curve.Series) []Curve {
	curves := make([]Curve, len(list))
	for i, s := range list {
		curves[i].Metric = s.Metric
		for _, p := range s.Points {
			curves[i].Steps, curves[i].Values = append(curves[i].Steps, p.Step), append(curves[i].Values, p.Value)
		}
	}
	return curves
}

// Seconds is a duration in seconds, rounded to milliseconds.
func Seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e3) / 1e3 }
