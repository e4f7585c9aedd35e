package htmlreport

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/study"
)

// mostRows is the number of trials in the table.
const mostRows = 500

// results are the best point, how it was reached, and all trials.
func (s *sheet) results() group {
	g := group{ID: "results", Name: "Results", Intro: s.summary()}
	points := tableItem("points", "Best and recommended point", "The best point has the best value that was seen. The recommended point is "+
		"the evaluated one that the model expects to be best. Where evaluations are noisy, use the recommended one: the best value is "+
		"partly luck.", s.points())
	if len(s.Study.Spec.Several) > 0 {
		points = s.front()
	}
	g.Figures = append(g.Figures, points)
	if r := s.View.Recommended; r != nil && r.Front != nil {
		g.Figures = append(g.Figures, s.recommended(r))
	}
	g.add(s.fig.Fronts()...)
	g.add(s.fig.History())
	if curves := s.curves(); len(curves) > 0 {
		g.add(s.fig.Curves(curves, s.withCurves()))
	}
	g.add(s.fig.Allocation()...)
	g.Figures = append(g.Figures, tableItem("trials", "Trials", "All trials, the best first, then those without a value. trials.csv of "+
		"fantasia run has the same numbers.", s.trials()))
	return g
}

// summary says in a sentence how the study went.
func (s *sheet) summary() string {
	c := s.View.Trials
	text := fmt.Sprintf("%d evaluations ended: %d completed", c.Ended(), c.Completed)
	for _, part := range []struct {
		n    int
		what string
	}{{c.Failed, "failed"}, {c.Infeasible, "infeasible"}, {c.Pruned, "stopped early"}, {c.Cancelled, "cancelled besides"},
		{c.Open(), "still open"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	if limits := s.View.Limits; len(limits) > 0 {
		text += fmt.Sprintf(". Of these, %d are within all limits", *s.View.WithinLimits)
		for i, l := range limits {
			text += fmt.Sprintf("%s%s (%d)", []string{": ", ", "}[min(i, 1)], l.Limit, l.Met)
		}
	}
	if several := s.Study.Spec.Several; len(several) > 0 {
		return fmt.Sprintf("%s. The study has %d objectives: %s. Figures that show one objective show %s.", text, len(several),
			view.Aims(several), several[0].Metric)
	}
	does := map[study.Direction]string{study.Minimize: "minimises", study.Maximize: "maximises"}[s.fig.Direction()]
	return fmt.Sprintf("%s. The study %s %s.", text, does, s.Study.Spec.FirstObjective().Metric)
}

// front lists the front of a study with several objectives.
func (s *sheet) front() item {
	front, names := s.View.Front, study.Names(s.fig.Axes)
	t := &table{Header: slices.Concat([]string{"trial"}, study.MetricNames(s.Study.Spec.Several), names)}
	if len(front) == 0 {
		t.Note = s.nothing()
	} else if n := len(front); n > mostRows {
		t.Note = fmt.Sprintf("The first %d of %d trials.", mostRows, n)
		front = front[:mostRows]
	}
	for _, o := range front {
		row := []cell{whole(o.Trial)}
		for _, v := range o.Values {
			row = append(row, number(v))
		}
		for _, name := range names {
			v, ok := o.Parameters[name]
			row = append(row, parameter(v, ok))
		}
		t.Rows = append(t.Rows, row)
	}
	return tableItem("points", "Trials on the front", "The trials that no other trial dominates: none is as good in all objectives and "+
		"better in one. The best in the first objective come first. Which of them to use is a choice between the objectives.", t)
}

// recommended lists the recommended front of a study with several objectives.
func (s *sheet) recommended(r *view.Recommendation) item {
	t := &table{Header: append([]string{"trial"}, study.MetricNames(s.Study.Spec.Several)...)}
	for _, e := range r.Front {
		row := []cell{whole(e.Trial)}
		if e.Knee {
			row[0].Text += " (knee)"
		}
		for k := range e.Means {
			row = append(row, cell{Text: view.Expected(e.Means[k], e.SDs[k]), Value: exact(e.Means[k]), Class: "number"})
		}
		t.Rows = append(t.Rows, row)
	}
	return tableItem("recommended", "Recommended trials", "The front by what the models expect of each evaluated point. Where evaluations "+
		"are noisy, use these trials: those on the front of the values are partly lucky. At the knee, a small gain in one objective costs "+
		"most of the others.", t)
}

// nothing says why there is neither a best trial nor a front.
func (s *sheet) nothing() string {
	if unmet := s.View.UnmetLimits; unmet != "" {
		return strings.ToUpper(unmet[:1]) + unmet[1:] + "."
	}
	return "No trial has completed."
}

// points compares the best and the recommended point.
func (s *sheet) points() *table {
	t := &table{Header: []string{""}}
	best, recommended := s.View.Best, s.View.Recommended
	type column struct {
		trial      int
		value      cell
		parameters view.Parameters
	}
	var columns []column
	if best != nil {
		t.Header = append(t.Header, "best")
		columns = append(columns, column{best.Trial, number(best.Value), best.Parameters})
	}
	if recommended != nil {
		t.Header = append(t.Header, "recommended")
		columns = append(columns, column{recommended.Trial, cell{Text: view.Expected(recommended.Mean, recommended.SD) + " (by the model)",
			Value: exact(recommended.Mean), Class: "number"}, recommended.Parameters})
	}
	if len(columns) == 0 {
		t.Note = s.nothing()
		return t
	}
	trial, value := []cell{text("trial")}, []cell{text(s.Study.Spec.FirstObjective().Metric)}
	for _, c := range columns {
		trial = append(trial, whole(c.trial))
		value = append(value, c.value)
	}
	t.Rows = append(t.Rows, trial, value)
	for i := range s.Study.Spec.Parameters {
		name := s.Study.Spec.Parameters[i].Name
		row, given := []cell{text(name)}, false
		for _, c := range columns {
			v, ok := c.parameters[name]
			given = given || ok
			row = append(row, parameter(v, ok))
		}
		if given {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// curves are what the trials reported. The study's figures then know their steps.
func (s *sheet) curves() (list []picture.Curve) {
	for i, t := range s.fig.All {
		reported := s.Trials.At(i).Measurements
		s.fig.Read(t, reported)
		if c, ok := t.Curve(s.fig.Spec, reported); ok {
			list = append(list, c)
		}
	}
	return list
}

// ForCurves returns the indices of the trials whose curves a report shows: all ended ones
// or, where there are many, an even share of them and the best one.
func ForCurves(trials view.Trials, best *view.Best) []int {
	var all []int
	at := -1
	for i, t := range view.Each(trials) {
		if !t.Times.Ended.IsZero() {
			if best != nil && t.Trial == best.Trial {
				at = i
			}
			all = append(all, i)
		}
	}
	return figure.Sample(all, at)
}

// withCurves returns how many trials have a curve, as far as the chosen ones tell.
func (s *sheet) withCurves() int {
	chosen := ForCurves(s.Trials, s.View.Best)
	if len(chosen) == 0 {
		return 0
	}
	with := 0
	for _, i := range chosen {
		if len(s.Trials.At(i).Measurements) > 0 {
			with++
		}
	}
	return with * s.ended() / len(chosen)
}

// ended returns how many trials have ended.
func (s *sheet) ended() (n int) {
	for _, t := range s.fig.All {
		if t.Ended != 0 {
			n++
		}
	}
	return n
}

// trials lists the trials, the best first.
func (s *sheet) trials() *table {
	t := &table{Header: slices.Concat([]string{"trial", "state", s.Study.Spec.FirstObjective().Metric}, study.Names(s.fig.Axes),
		[]string{"seconds", "attempts", "worker", "from", "message"})}
	rank := func(i int) float64 {
		if f := s.fig.All[i]; f.Counts() {
			return s.fig.Direction().Cost(f.Value)
		}
		return math.Inf(1)
	}
	order := indices.Sorted(s.Trials.Len(), func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	if n := len(order); n > mostRows {
		t.Note = fmt.Sprintf("The first %d of %d trials.", mostRows, n)
		order = order[:mostRows]
	}
	for _, i := range order {
		trial, f := s.Trials.At(i), s.fig.All[i]
		row := []cell{whole(trial.Trial), text(f.StateText()), {Class: "number"}}
		if trial.Value != nil {
			row[2] = number(*trial.Value)
		}
		for i := range s.fig.Axes {
			v, ok := trial.Parameters[s.fig.Axes[i].Name]
			row = append(row, parameter(v, ok))
		}
		seconds := cell{Class: "number"}
		if took := f.Took(0).Seconds(); f.Started != 0 && f.Ended != 0 {
			seconds = cell{view.Short(took, 4), strconv.FormatFloat(took, 'f', 3, 64), "number"}
		}
		t.Rows = append(t.Rows, append(row, seconds, whole(trial.Attempts), text(trial.Worker), text(string(trial.Source)), text(f.Reason)))
	}
	return t
}

// table is a table of the report.
type table struct {
	Header []string
	Rows   [][]cell
	// Note says which rows are missing; "" if none are.
	Note string
}

// cell is a cell of a table. Value is the exact number, for those who read the page by
// program; "" for text. Class is "number" for what is aligned at its right, as all of its column then is.
type cell struct{ Text, Value, Class string }

func text(s string) cell { return cell{Text: s} }

// number is a cell of a number, shown to six digits, whole one of a whole number.
func number(v float64) cell { return cell{view.Number(v), exact(v), "number"} }
func whole(n int) cell      { return cell{strconv.Itoa(n), strconv.Itoa(n), "number"} }

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// parameter is a cell of a parameter's value; an inactive one is empty.
func parameter(v any, active bool) cell {
	if !active {
		return cell{}
	}
	if f, ok := study.Number(v); ok {
		return cell{view.Value(v), exact(f), "number"}
	}
	return text(view.Value(v))
}
