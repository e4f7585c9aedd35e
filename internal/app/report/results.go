package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

// mostRows is the number of trials in the table.
const mostRows = 500

// results are the best point, how it was reached, and all trials.
func (s *sheet) results() group {
	g := group{ID: "results", Name: "Results", Intro: s.summary()}
	g.Figures = append(g.Figures, figure{
		ID: "points", Title: "Best and recommended point", Broad: true, Table: s.points(),
		Read: "The best point has the best value that was seen. The recommended point is the evaluated one that the model expects to be best. Where evaluations are noisy, use the recommended one: the best value is partly luck.",
	})
	g.Figures = append(g.Figures, broad("history", "History",
		"Each dot is an evaluation, from left to right in the order in which they ended; the line is the best value so far. A line that has been flat for long says that more evaluations bring little. Triangles at the edge are values outside the range shown; evaluations without a value are marked below.",
		&picture.History{Title: "History", Objective: s.objective, Evaluations: Evaluations(s.ended, ByEvaluations), Recommended: s.recommended, Goal: s.Study.Spec.Objective.Goal}))
	if c := s.curves(); c != nil {
		g.Figures = append(g.Figures, broad("curves", "Curves of the trials",
			"Each line is what one trial reported while it ran. Lines that cross late say that early values predict final ones badly, so that early stopping is risky. Dots end the lines of trials that were stopped early.", c))
	}
	g.Figures = append(g.Figures, figure{
		ID: "trials", Title: "Trials", Broad: true, Table: s.trials(),
		Read: "All trials, the best first, then those without a value. trials.csv of fantasia run has the same numbers.",
	})
	return g
}

// summary says in a sentence how the study went.
func (s *sheet) summary() string {
	c := s.View.Trials
	text := fmt.Sprintf("%d evaluations ended: %d completed", c.Ended(), c.Completed)
	for _, part := range []struct {
		n    int
		what string
	}{{c.Failed, "failed"}, {c.Infeasible, "infeasible"}, {c.Pruned, "stopped early"}, {c.Cancelled, "cancelled besides"}, {c.Open(), "still open"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	text += ". "
	if s.objective.Maximize {
		text += fmt.Sprintf("The study maximises %s.", s.objective.Name)
	} else {
		text += fmt.Sprintf("The study minimises %s.", s.objective.Name)
	}
	return text
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
		columns = append(columns, column{recommended.Trial, cell{Text: view.Expected(recommended.Mean, recommended.SD) + " (by the model)", Value: exact(recommended.Mean), Class: "number"}, recommended.Parameters})
	}
	if len(columns) == 0 {
		t.Note = "No trial has completed."
		return t
	}
	trial, value := []cell{text("trial")}, []cell{text(s.objective.Name)}
	for _, c := range columns {
		trial = append(trial, cell{strconv.Itoa(c.trial), strconv.Itoa(c.trial), "number"})
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

// number is a cell of a number, shown to six digits.
func number(v float64) cell { return cell{view.Number(v), exact(v), "number"} }

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// parameter is a cell of a parameter's value; an inactive one is empty.
func parameter(v any, active bool) cell {
	if !active {
		return cell{}
	}
	if f, ok := v.(float64); ok {
		return number(f)
	}
	return text(study.Format(v))
}

// curves are what the trials reported; nil if none reported anything more than once.
func (s *sheet) curves() *picture.Curves {
	c := &picture.Curves{Title: "Curves of the trials", Objective: s.objective, Best: s.best, Of: s.withCurves()}
	for i := range s.Trials {
		t := &s.Trials[i]
		for _, m := range t.Measurements {
			if m.Metric != s.objective.Name || len(m.Steps) < 2 {
				continue
			}
			steps := make([]float64, len(m.Steps))
			for k, step := range m.Steps {
				steps[k] = float64(step)
			}
			c.Curves = append(c.Curves, picture.Curve{Trial: t.Trial, State: StateOf(t.State), Steps: steps, Values: m.Values})
		}
	}
	if len(c.Curves) == 0 {
		return nil
	}
	return c
}

// mostCurves is how many trials' curves a report is made from: reading each takes time.
const mostCurves = 120

// ForCurves returns the indices of the trials whose curves a report shows: all ended ones
// or, where there are many, an even share of them and the best one.
func ForCurves(trials []view.Trial, best *view.Best) []int {
	var all []int
	at := -1
	for i := range trials {
		if !trials[i].Times.Ended.IsZero() {
			if best != nil && trials[i].Trial == best.Trial {
				at = i
			}
			all = append(all, i)
		}
	}
	if len(all) <= mostCurves {
		return all
	}
	var chosen []int
	for k := range mostCurves {
		chosen = append(chosen, all[k*len(all)/mostCurves])
	}
	if at >= 0 && !slices.Contains(chosen, at) {
		chosen = append(chosen, at)
	}
	return chosen
}

// withCurves returns how many trials have a curve, as far as the chosen ones tell.
func (s *sheet) withCurves() int {
	chosen := ForCurves(s.Trials, s.View.Best)
	if len(chosen) == 0 {
		return 0
	}
	with, ended := 0, 0
	for _, i := range chosen {
		if len(s.Trials[i].Measurements) > 0 {
			with++
		}
	}
	for i := range s.Trials {
		if !s.Trials[i].Times.Ended.IsZero() {
			ended++
		}
	}
	return with * ended / len(chosen)
}

// trials lists the trials, the best first.
func (s *sheet) trials() *table {
	t := &table{Header: []string{"trial", "state", s.objective.Name}}
	for i := range s.parameters {
		t.Header = append(t.Header, s.parameters[i].Name)
	}
	t.Header = append(t.Header, "seconds", "attempts", "worker", "from", "message")
	all := make([]*view.Trial, len(s.Trials))
	for i := range s.Trials {
		all[i] = &s.Trials[i]
	}
	slices.SortStableFunc(all, func(a, b *view.Trial) int { return s.rank(a, b) })
	if n := len(all); n > mostRows {
		t.Note = fmt.Sprintf("The first %d of %d trials.", mostRows, n)
		all = all[:mostRows]
	}
	for _, trial := range all {
		row := []cell{{strconv.Itoa(trial.Trial), strconv.Itoa(trial.Trial), "number"}, text(string(StateOf(trial.State))), {Class: "number"}}
		if trial.State.Terminal() {
			row[1] = text(string(trial.State))
		}
		if trial.Value != nil {
			row[2] = number(*trial.Value)
		}
		for i := range s.parameters {
			v, ok := trial.Parameters[s.parameters[i].Name]
			row = append(row, parameter(v, ok))
		}
		seconds := cell{Class: "number"}
		if !trial.Times.Started.IsZero() && !trial.Times.Ended.IsZero() {
			took := trial.Times.Ended.Sub(trial.Times.Started).Seconds()
			seconds = cell{strconv.FormatFloat(took, 'g', 4, 64), strconv.FormatFloat(took, 'f', 3, 64), "number"}
		}
		row = append(row, seconds, cell{strconv.Itoa(trial.Attempts), strconv.Itoa(trial.Attempts), "number"}, text(trial.Worker), text(string(trial.Source)), text(reasonOf(trial)))
		t.Rows = append(t.Rows, row)
	}
	return t
}

// rank orders trials: completed ones by value, then the others by number.
func (s *sheet) rank(a, b *view.Trial) int {
	has := func(t *view.Trial) bool { return t.Value != nil && t.State == study.TrialCompleted }
	switch {
	case has(a) && has(b):
		d := s.Study.Spec.Objective.Direction
		if d.Better(*a.Value, *b.Value) {
			return -1
		}
		if d.Better(*b.Value, *a.Value) {
			return 1
		}
		return 0
	case has(a):
		return -1
	case has(b):
		return 1
	}
	return 0
}
