// Package htmlreport makes a page of a study that needs no server: one HTML file with all its
// pictures and numbers, without scripts, and without anything from the network.
package htmlreport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
)

// Source is what a report is made from.
type Source struct {
	Study *study.Study
	// View is how far the study has come, and Reason why it is in its state.
	View   view.Study
	Reason string
	// Trials are all trials by number. Those that ForCurves names have their Measurements.
	Trials view.Trials
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
	Figures         []item
}

// item is a figure or a table of the report.
type item struct {
	figure.Figure
	Table *table
}

// tableItem is a broad table.
func tableItem(id, title, help string, t *table) item {
	return item{figure.Figure{ID: id, Title: title, Help: help, Broad: true}, t}
}

// add adds figures to the group.
func (g *group) add(figures ...figure.Figure) {
	for _, f := range figures {
		g.Figures = append(g.Figures, item{Figure: f})
	}
}

// sheet is a study as the parts of a report see it.
type sheet struct {
	*Source
	fig *figure.Study
	// replays are what rules for early stopping would have saved.
	replays []diagnosis.Replay
	// judged is what a model of curves says of the trials of a study that stops some early; nil without it.
	judged *diagnosis.Judged
	// why says why there is no model.
	why string
}

// Of makes a report. It fits the optimiser's model to the trials, unless ctx ends before
// that is done: the report then says what is missing.
func Of(ctx context.Context, src *Source) (*Report, error) {
	s := &sheet{Source: src, fig: src.figures()}
	if err := s.examine(ctx); err != nil {
		return nil, err
	}
	if s.fig.Stops() {
		var err error
		if s.judged, err = diagnosis.Judge(ctx, s.Study, s.Trials); err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("study %q: %w", s.Study.Metadata.Name, err)
		}
	}
	insights := group{ID: "insights", Name: "Insights", Intro: s.trust()}
	insights.add(s.fig.Insights()...)
	diagnostics := group{ID: "diagnostics", Name: "Diagnostics", Intro: s.why}
	if s.fig.Model != nil {
		diagnostics.Figures = append(diagnostics.Figures, s.findings())
	}
	diagnostics.add(figure.Judged(s.judged, s.Study.Metadata.Name, len(ForCurves(s.Trials, s.View.Best)), s.ended())...)
	diagnostics.add(s.fig.Diagnostics()...)
	health := group{ID: "health", Name: "Health", Intro: s.fig.Idle()}
	health.add(s.fig.Health()...)
	health.Figures = append(health.Figures, s.times())
	return &Report{src: src, groups: []group{s.results(), insights, diagnostics, health}}, nil
}

// Show chooses the objective that figures of one objective show; "" for the first. The error
// names the objectives.
func (src *Source) Show(metric string) error {
	if metric == "" {
		return nil
	}
	chosen, place, err := figure.Chosen(src.Study, metric)
	if err != nil || place == 0 {
		return err
	}
	src.Study, src.Trials, src.View.Front = chosen, shown{src.Trials, place}, slices.Clone(src.View.Front)
	for i := range src.View.Front {
		src.View.Front[i].Values = figure.First(src.View.Front[i].Values, place)
	}
	if r := src.View.Recommended; r != nil {
		shown := *r
		shown.Front = slices.Clone(r.Front)
		for i, e := range shown.Front {
			shown.Front[i].Means, shown.Front[i].SDs = figure.First(e.Means, place), figure.First(e.SDs, place)
		}
		src.View.Recommended = &shown
	}
	first := src.Study.Spec.FirstObjective().Direction
	slices.SortStableFunc(src.View.Front, func(a, b view.Optimal) int { return cmp.Compare(first.Cost(a.Values[0]), first.Cost(b.Values[0])) })
	return nil
}

// shown are trials with the objective at a place as the first one.
type shown struct {
	view.Trials
	place int
}

// At implements view.Trials.
func (s shown) At(i int) view.Trial {
	t := s.Trials.At(i)
	if t.Values = figure.First(t.Values, s.place); len(t.Values) > 0 {
		t.Value = &t.Values[0]
	}
	return t
}

// figures returns the study as figures take it.
func (src *Source) figures() *figure.Study {
	f := &figure.Study{Spec: &src.Study.Spec, Axes: figure.AxesOf(src.Study)}
	inside := func(study.Point) bool { return true }
	if len(src.Study.Spec.Several) > 0 {
		inside = figure.Inside(src.Study)
	}
	for _, t := range view.Each(src.Trials) {
		row := figure.From(f.Axes, t)
		row.Outside = !inside(study.Point(t.Parameters))
		f.All = append(f.All, row)
		begun := figure.At(t.Times.Suggested)
		if begun == 0 && len(t.Runs) > 0 {
			begun = figure.At(t.Runs[0].Opened)
		}
		if begun != 0 && (f.Started == 0 || begun < f.Started) {
			f.Started = begun
		}
	}
	f.Trials = f.All
	if b := src.View.Best; b != nil {
		f.Best = b.Trial
	}
	if r := src.View.Recommended; r != nil {
		f.Recommended = r.Trial
	}
	if src.View.State == study.Running {
		f.Now = figure.At(src.Now)
	}
	return f
}

// examine fits the model. An error is that of a study whose trials do not fit its file.
func (s *sheet) examine(ctx context.Context) error {
	problem, took, err := diagnosis.Problem(s.Study, s.Trials)
	if err != nil {
		return fmt.Errorf("study %q: %w", s.Study.Metadata.Name, err)
	}
	if err = ctx.Err(); err == nil {
		var origin study.Point
		name := "the recommended trial"
		if r, b := s.View.Recommended, s.View.Best; r != nil {
			origin, _ = problem.Space.Normalize(r.Parameters) // nil if the space was edited
		} else if b != nil {
			origin, _ = problem.Space.Normalize(b.Parameters)
			name = "the best trial"
		} else if front, knee := s.fig.Front(); len(front) > 0 {
			at := cmp.Or(knee, front[0])
			origin, _ = problem.Space.Normalize(s.Trials.At(slices.Index(s.fig.All, at)).Parameters)
			name = fmt.Sprintf("trial %d of the front", at.Number)
		}
		s.fig.Model, err = figure.Fit(ctx, s.Study, problem, took, origin, name)
	}
	switch {
	case err == nil:
		if s.replays, err = diagnosis.Replays(s.Study, s.Trials); err != nil {
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

// trust says how far the model can be trusted.
func (s *sheet) trust() string {
	m := s.fig.Model
	if m == nil {
		return s.why
	}
	used := ""
	if m.Used < m.Completed {
		used = fmt.Sprintf(" It was fitted to %d of the %d completed trials.", m.Used, m.Completed)
	}
	return fmt.Sprintf("The model explains %.0f%% of the variance of evaluations that it was not shown. The closer this is to 100%%, the "+
		"more its pictures below can be trusted.%s", 100*max(0, m.Explained), used)
}

// findings are those of fantasia study diagnose.
func (s *sheet) findings() item {
	f := tableItem("findings", "Findings", "What fantasia study diagnose finds: whether the model predicts well, how noisy evaluations are, "+
		"and which settings of the optimiser fit. With several objectives it also says which of them conflict, and with limits what they "+
		"cost.", &table{Header: []string{"topic", "finding", "evidence"}})
	for _, found := range s.fig.Model.Findings {
		f.Table.Rows = append(f.Table.Rows, []cell{text(string(found.Topic)), text(found.Statement), text(found.Evidence)})
	}
	for _, r := range s.replays {
		line := fmt.Sprintf("The rule %s would have stopped %d of %d trials early and saved %.0f%% of the steps", r.Rule, r.Stopped, r.Trials,
			100*float64(r.Saved)/float64(max(r.Steps, 1)))
		if r.BestStoppedAt != nil {
			line += fmt.Sprintf(", but it would have stopped the best trial at step %d.", *r.BestStoppedAt)
		} else {
			line += ", and kept the best trial."
		}
		f.Lines = append(f.Lines, line)
	}
	return f
}

// times tell how long the stages of trials took.
func (s *sheet) times() item {
	f := item{Table: &table{Header: []string{"", "half of them at most", "nine of ten at most", "longest"},
		Note: "Nothing has been evaluated."}}
	f.ID, f.Title, f.Help = "times", "Times", figure.StagesHelp
	for _, stage := range s.fig.Stages() {
		row := []cell{text(stage.Name)}
		for _, d := range []time.Duration{stage.Half, stage.Nine, stage.Longest} {
			row = append(row, cell{figure.Duration(d), exact(d.Seconds()), "number"})
		}
		f.Table.Rows, f.Table.Note = append(f.Table.Rows, row), ""
	}
	return f
}

// Single makes one of the pictures that figure.Single names, of the given parameters. It fits
// the optimiser's model if the picture needs it. The error of a picture that the study does not
// have is a *figure.NoPicture.
func Single(ctx context.Context, src *Source, name string, parameters []string) (figure.Figure, error) {
	wanted, err := figure.Find(name)
	if err != nil {
		return figure.Figure{}, err
	}
	s := &sheet{Source: src, fig: src.figures()}
	return wanted.Draw(s.fig, parameters, func() (figure.Figure, error) {
		return s.fig.Curves(s.curves(), s.withCurves()), nil
	}, func() error {
		if err := s.examine(ctx); err != nil {
			return err
		}
		if s.fig.Model == nil {
			return &figure.NoPicture{Why: s.why}
		}
		return nil
	})
}
