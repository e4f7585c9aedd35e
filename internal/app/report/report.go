// Package report makes a page of a study that needs no server: one HTML file with all its
// pictures and numbers, without scripts, and without anything from the network.
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/base/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

// Source is what a report is made from.
type Source struct {
	Study *study.Study
	// View is how far the study has come, and Reason why it is in its state.
	View   view.Study
	Reason string
	// Trials are all trials by number. Those that ForCurves names have their Measurements.
	Trials []view.Trial
	// Now is the time at which the source was read.
	Now time.Time
	// Version is that of the program.
	Version string
}

// Report is a report before it is written.
type Report struct {
	src    *Source
	groups []group
}

// group is one of the four parts of a report.
type group struct {
	ID, Name, Intro string
	Figures         []figure
}

// sheet is a study as the parts of a report see it.
type sheet struct {
	*Source
	objective picture.Objective
	// parameters are those with more than one value, axes their axes.
	parameters []study.Parameter
	axes       []picture.Parameter
	// ended are the trials that count as evaluations, in the order in which they ended.
	ended []*view.Trial
	// start is when the study began.
	start time.Time
	// diagnosis and model are nil if there are too few trials, or no time; why says so.
	diagnosis *diagnosis.Report
	model     *diagnosis.Model
	why       string
	// best and recommended are numbers of trials; 0 for none.
	best, recommended int
}

// Of makes a report. It fits the optimiser's model to the trials, unless ctx ends before
// that is done: the report then says what is missing.
func Of(ctx context.Context, src *Source) (*Report, error) {
	s := newSheet(src)
	if err := s.examine(ctx); err != nil {
		return nil, err
	}
	return &Report{src: src, groups: []group{s.results(), s.insights(ctx), s.diagnostics(), s.health()}}, nil
}

func newSheet(src *Source) *sheet {
	s := &sheet{Source: src, objective: ObjectiveOf(src.Study.Spec.Objective)}
	for _, p := range src.Study.Spec.Parameters {
		if n, finite := p.Cardinality(); !finite || n > 1 {
			s.parameters = append(s.parameters, p)
			s.axes = append(s.axes, AxisOf(p))
		}
	}
	s.ended = Ended(src.Trials)
	s.start = Start(src.Trials)
	if b := src.View.Best; b != nil {
		s.best = b.Trial
	}
	if r := src.View.Recommended; r != nil {
		s.recommended = r.Trial
	}
	return s
}

// examine fits the model. An error is that of a study whose trials do not fit its file.
func (s *sheet) examine(ctx context.Context) error {
	problem, err := diagnosis.Problem(s.Study, s.Trials)
	if err != nil {
		return fmt.Errorf("study %q: %w", s.Study.Metadata.Name, err)
	}
	if err = ctx.Err(); err == nil {
		s.diagnosis, s.model, err = diagnosis.Examine(ctx, s.Study, problem)
	}
	switch {
	case err == nil:
		if s.diagnosis.EarlyStopping, err = diagnosis.Replays(s.Study, s.Trials); err != nil {
			return err
		}
	case ctx.Err() != nil:
		s.why = "The model was left out, because there was no time for it. The command fantasia report makes a report with it."
	case errors.Is(err, diagnosis.ErrTooLittle):
		s.why = fmt.Sprintf("There is no model yet (%v).", errors.Unwrap(err))
	default:
		// An algorithm of another version, or settings that this one does not know.
		s.why = fmt.Sprintf("There is no model (%v).", err)
	}
	return nil
}

// ObjectiveOf returns what a study optimises, for pictures.
func ObjectiveOf(o study.Objective) picture.Objective {
	return picture.Objective{Name: o.Metric, Maximize: o.Direction == study.Maximize}
}

// AxisOf returns the axis of a parameter.
func AxisOf(p study.Parameter) picture.Parameter {
	axis := picture.Parameter{Name: p.Name, Whole: p.Type == study.Int}
	if p.Type == study.Float || p.Type == study.Int {
		axis.Low, axis.High = *p.Min, *p.Max
		switch p.Scale {
		case study.Log:
			axis.Scale = picture.Log
		case study.Logit:
			if p.Type == study.Float {
				axis.Scale = picture.Logit
			}
		}
		return axis
	}
	n, _ := p.Cardinality()
	for k := range n {
		axis.Levels = append(axis.Levels, study.Format(p.At(k)))
	}
	return axis
}

// PlaceOf returns where a value lies on the axis of a parameter; NaN if it has no place.
func PlaceOf(p study.Parameter, value any) float64 {
	if value == nil {
		return math.NaN()
	}
	if p.Type == study.Float || p.Type == study.Int {
		if v, ok := study.Number(value); ok {
			return v
		}
		return math.NaN()
	}
	converted, err := p.Convert(value)
	if err != nil {
		return math.NaN()
	}
	if k, ok := p.Index(converted); ok {
		return float64(k)
	}
	return math.NaN()
}

// StateOf returns the state of a trial, for pictures.
func StateOf(s study.TrialState) picture.State {
	switch s {
	case study.TrialCompleted:
		return picture.Completed
	case study.TrialFailed:
		return picture.Failed
	case study.TrialInfeasible:
		return picture.Infeasible
	case study.TrialPruned:
		return picture.Pruned
	case study.TrialCancelled:
		return picture.Cancelled
	}
	return picture.Running
}

// Ended returns the trials that count as evaluations, in the order in which their results
// were counted. Cancelled trials do not count.
func Ended(trials []view.Trial) (ended []*view.Trial) {
	for i := range trials {
		if t := &trials[i]; t.State.Terminal() && t.State != study.TrialCancelled {
			ended = append(ended, t)
		}
	}
	slices.SortStableFunc(ended, func(a, b *view.Trial) int {
		return cmp.Or(a.Times.Folded.Compare(b.Times.Folded), cmp.Compare(a.Trial, b.Trial))
	})
	return ended
}

// Start returns when the first trial was suggested or handed out; zero if none was.
func Start(trials []view.Trial) (start time.Time) {
	consider := func(t time.Time) {
		if !t.IsZero() && (start.IsZero() || t.Before(start)) {
			start = t
		}
	}
	for i := range trials {
		consider(trials[i].Times.Suggested)
		for _, r := range trials[i].Runs {
			consider(r.Opened)
		}
	}
	return start
}

// Evaluations returns ended trials for a picture. at gives the place of each along the
// horizontal axis.
func Evaluations(ended []*view.Trial, at func(place int, t *view.Trial) float64) []picture.Evaluation {
	list := make([]picture.Evaluation, len(ended))
	for i, t := range ended {
		e := picture.Evaluation{Trial: t.Trial, X: at(i+1, t), State: StateOf(t.State), Reason: reasonOf(t)}
		if t.Value != nil && t.State == study.TrialCompleted {
			e.Value = *t.Value
		} else if t.State == study.TrialCompleted {
			e.Value = math.NaN()
		}
		list[i] = e
	}
	return list
}

// reasonOf returns why a trial has no final value; "" if it has one.
func reasonOf(t *view.Trial) string {
	switch {
	case t.State == study.TrialPruned && t.Stopped != nil:
		return t.Stopped.Reason
	case t.State != study.TrialCompleted && t.Failure != nil:
		return view.FailureLine(t.Failure)
	}
	return ""
}

// ByEvaluations places a trial at its number among all evaluations.
func ByEvaluations(place int, _ *view.Trial) float64 { return float64(place) }

// ByClock returns a function that places a trial at the time at which its result was
// counted, in seconds since the start.
func ByClock(start time.Time) func(int, *view.Trial) float64 {
	return func(_ int, t *view.Trial) float64 {
		at := t.Times.Folded
		if at.IsZero() {
			at = t.Times.Ended
		}
		if at.IsZero() {
			return math.NaN()
		}
		return max(0, at.Sub(start).Seconds())
	}
}
