package dashboard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// fill fills a page with what its group shows.
func (d *Dashboard) fill(ctx context.Context, q *request, b *bodyData) error {
	switch q.view {
	case "":
		curves, any, err := q.curves(ctx)
		if err != nil {
			return err
		}
		if b.Panels = q.panels(append(q.Fronts(), q.History())...); any {
			curves.Help += fmt.Sprintf(" Shown are running trials, the best and the latest, at most %d.", maxDrawnCurves)
			b.Panels = append(b.Panels, q.panels(curves)...)
		}
		b.Panels = append(b.Panels, q.panels(q.Allocation()...)...)
		b.Table = newTable(q)
	case "insights":
		d.model(q, b)
		b.Insight.Findings = nil // they are on the page of diagnostics
		figures := q.Insights()
		figures[0].Help += " Drag along an axis to show only the trials in that range; the filter above does the same."
		b.Panels = q.panels(figures...)
		b.Table = newTable(q)
	case "diagnostics":
		d.model(q, b)
		b.Panels = q.panels(append(b.judged, q.Diagnostics()...)...)
		diagnostics(q, b)
	case "health":
		b.Panels = q.panels(q.Health()...)
		health(q, b)
	}
	return nil
}

// model adds the model, if there is one, and what the page says about it.
func (d *Dashboard) model(q *request, b *bodyData) {
	last, coming := d.analyst.of(q)
	if b.Insight = note(last, coming); last != nil {
		q.Model = last.model
		b.judged = figure.Judged(last.judged, q.name(), last.read, last.of)
	}
}

// curves reads the curves of some trials, whose steps the study's figures then know; any is false if they have none.
func (q *request) curves(ctx context.Context) (f figure.Figure, any bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var list []picture.Curve
	for i, t := range chosen(q.Trials, q.Direction(), maxDrawnCurves) {
		if i == 8 && len(list) == 0 { // the program seems to report none
			break
		}
		reported, err := q.follow.curves.of(ctx, t)
		if err != nil {
			return f, false, err
		}
		q.Read(t, reported)
		if c, ok := t.Curve(q.Spec, reported); ok {
			list = append(list, c)
		}
	}
	return q.Curves(list, len(q.Trials)), len(list) > 0, nil
}

// insightNote says what an analysis is based on.
type insightNote struct {
	Text     string
	Coming   bool
	Findings []diagnosis.Finding
}

// note returns what the page says about the analysis.
func note(i *insight, coming bool) *insightNote {
	n := &insightNote{Coming: coming}
	switch {
	case i == nil && coming:
		n.Text = "A model is being fitted to the trials. It appears here in a few seconds."
	case i == nil:
		n.Text = "A model is fitted once all trials have been read."
	case i.problem != "":
		n.Text = "There is no model: " + i.problem + "."
	default:
		n.Text = fmt.Sprintf("The model was fitted to %s, in %s.", count(i.fitted, "completed trial", "completed trials"),
			figure.Duration(i.took))
		if i.fitted < i.completed {
			n.Text = fmt.Sprintf("The model was fitted to %s of %s completed trials, evenly spread over the study, in %s.", thousands(i.fitted),
				thousands(i.completed), figure.Duration(i.took))
		}
		if coming {
			n.Text += " The next one, with the latest trials, is being fitted."
		}
		n.Findings = i.model.Findings
	}
	return n
}

// diagnostics adds how well the search works.
func diagnostics(q *request, b *bodyData) {
	b.Cost = costs(q)
	fallbacks := 0
	for _, t := range q.Trials {
		if t.Source == optimizer.SourceFallback {
			fallbacks++
		}
	}
	b.Facts = append(b.Facts, fact{"Fallback suggestions", fmt.Sprintf("%s of %s", thousands(fallbacks), thousands(len(q.Trials))),
		"Points of a Sobol sequence, because the optimiser had not answered in time."})
}

// costRow compares trials by how many results their suggestion did not know.
type costRow struct {
	Missed    string
	Trials    int
	Completed int
	Improved  string
	Median    string
}

// costs shows what asynchrony cost: whether suggestions that knew fewer results were worse.
func costs(q *request) []costRow {
	groups := []struct {
		name      string
		low, high int
	}{{"0", 0, 0}, {"1 to 3", 1, 3}, {"4 to 15", 4, 15}, {"16 or more", 16, 1 << 30}}
	d := q.Direction()
	type sum struct {
		trials, improved int
		values           []float64
	}
	sums := make([]sum, len(groups))
	best, have := 0.0, false
	for _, r := range figure.Ended(q.All) {
		better := r.Counts() && (!have || d.Better(r.Value, best))
		if better {
			best, have = r.Value, true
		}
		for i, g := range groups {
			if r.Staleness < g.low || r.Staleness > g.high {
				continue
			}
			sums[i].trials++
			if r.Completed() {
				sums[i].values = append(sums[i].values, r.Value)
			}
			if better {
				sums[i].improved++
			}
		}
	}
	var list []costRow
	for i, g := range groups {
		s := &sums[i]
		if s.trials == 0 {
			continue
		}
		row := costRow{Missed: g.name, Trials: s.trials, Completed: len(s.values),
			Improved: fmt.Sprintf("%.1f%%", 100*float64(s.improved)/float64(s.trials)), Median: "–"}
		if len(s.values) > 0 {
			slices.Sort(s.values)
			row.Median = view.Number(s.values[(len(s.values)-1)/2])
		}
		list = append(list, row)
	}
	return list
}

// health adds how the evaluations run.
func health(q *request, b *bodyData) {
	queued, pending, lost, retried := 0, 0, 0, 0
	for _, t := range q.Trials {
		switch t.State {
		case study.TrialQueued:
			queued++
		case study.TrialPending:
			pending++
		}
		if len(t.Attempts) > 1 {
			retried++
		}
		for _, a := range t.Attempts {
			if a.State == study.AttemptLost {
				lost++
			}
		}
	}
	b.Facts = append(b.Facts,
		fact{"Queue", fmt.Sprintf("%d queued, %d pending", queued, pending), "Trials that wait for a worker, and trials that wait for another " +
			"attempt."},
		fact{"Lost attempts", thousands(lost), "Attempts whose worker fell silent. Their trials were tried again."},
		fact{"Trials tried again", thousands(retried), "Trials with more than one attempt."},
	)
	b.Intro, b.Stages, b.StagesHelp = q.Idle(), q.Stages(), figure.StagesHelp
}
