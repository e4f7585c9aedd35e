package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// trialTable prints a list of trials.
func trialTable(w screen, trials []view.Trial) error {
	rows := make([][]string, len(trials))
	for i, t := range trials {
		rows[i] = []string{
			strconv.Itoa(t.Trial), string(t.State), trialValue(t), rung(t), strconv.Itoa(t.Attempts), orDash(t.Worker),
			between(t.Times.Started, t.Times.Ended), trialCost(&t), orDash(string(t.Source)), point(t.Parameters),
		}
	}
	columns := []layout.Column{
		{Head: "TRIAL"}, {Head: "STATE"}, {Head: "VALUE"}, {Head: "RUNG"}, {Head: "ATTEMPTS", Rank: 4}, {Head: "WORKER", Rank: 3},
		{Head: "TIME", Rank: 1}, {Head: "COST", Rank: 1}, {Head: "SOURCE", Rank: 2}, {Head: "PARAMETERS", Least: 20},
	}
	for _, optional := range []string{"RUNG", "COST"} { // in studies with a fidelity, or with a cost that is not time
		k := slices.IndexFunc(columns, func(c layout.Column) bool { return c.Head == optional })
		if slices.ContainsFunc(rows, func(row []string) bool { return row[k] != "-" }) {
			continue
		}
		columns = slices.Delete(columns, k, k+1)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], k, k+1)
		}
	}
	return w.table(columns, rows)
}

// trialCost is what a trial has cost, or what is expected of it while nothing is reported.
func trialCost(t *view.Trial) string {
	switch {
	case t.Cost != nil:
		return number(*t.Cost)
	case t.Expected > 0:
		return number(t.Expected) + " expected"
	default:
		return "-"
	}
}

// rung is a trial's level of the study's fidelity, and the trial that it continues.
func rung(t view.Trial) string {
	switch {
	case t.Rung == 0:
		return "-"
	case t.Predecessor == 0:
		return strconv.Itoa(t.Rung)
	default:
		return fmt.Sprintf("%d, after trial %d", t.Rung, t.Predecessor)
	}
}

// trialValue formats a trial's value, or the reason why it has none.
func trialValue(t view.Trial) string {
	text := view.Numbers(t.All())
	switch {
	case text == "" && t.Failure != nil:
		text = t.Failure.Reason
	case text == "":
		text = "-"
	case t.Failure != nil: // a warning
		text += " (" + t.Failure.Reason + ")"
	}
	if len(t.Exceeded) > 0 {
		text += ", outside of " + strings.Join(t.Exceeded, ", ")
	}
	return text
}

// trialLine formats a trial as one line of a watch.
func trialLine(t view.Trial) string {
	line := fmt.Sprintf("trial %-5d  %-10s  %-8s  %s", t.Trial, t.State, trialValue(t), point(t.Parameters))
	if t.Worker != "" {
		line += "  on " + t.Worker
	}
	if took := between(t.Times.Started, t.Times.Ended); took != "-" {
		line += " in " + took
	}
	return line
}

// trialBlock prints one trial; idle means that no process runs its study.
func trialBlock(w screen, m *fantasiav1.Trial, t view.Trial, idle bool) error {
	fields := []field{
		{Name: "Trial", Value: strconv.Itoa(t.Trial)},
		{Name: "State", Value: string(t.State)},
		{Name: "Parameters", Value: point(t.Parameters)},
	}
	switch {
	case len(t.Values) > 0:
		fields = append(fields, field{Name: "Values", Value: view.Numbers(t.Values)})
	case t.Value != nil:
		fields = append(fields, field{Name: "Value", Value: number(*t.Value)})
	}
	fields = append(fields, field{Name: "Outside of", Value: strings.Join(t.Exceeded, ", ")})
	if t.Rung > 0 {
		fields = append(fields, field{Name: "Rung", Value: rung(t)})
	} else if t.Predecessor > 0 {
		fields = append(fields, field{Name: "Continues", Value: fmt.Sprintf("trial %d, which was stopped early", t.Predecessor)})
	}
	if s := t.Stopped; s != nil {
		fields = append(fields, field{Name: "Stopped", Value: s.Reason}, field{Name: "Expected", Value: expected(s.Expected)})
	}
	fields = append(fields,
		field{Name: "Cancelled", Value: t.Cancelled},
		field{Name: "Labels", Value: labelText(t.Labels)},
		field{Name: "Note", Value: t.Note},
		field{Name: "Metrics", Value: metrics(t.Metrics)},
		field{Name: "Cost", Value: t.CostText()},
		field{Name: "Source", Value: source(t)},
		field{Name: "Why", Value: reasons(m.GetReasons())},
		field{Name: "Takes", Value: takes(&t, time.Now())},
		field{Name: "Checkpoint", Value: m.GetCheckpoint()},
		field{Name: "Trace", Value: t.TraceID},
	)
	for _, a := range m.GetAttempts() {
		fields = append(fields, field{Name: fmt.Sprintf("Attempt %d", a.GetNumber()), Value: attempt(a, idle)})
	}
	return w.block(fields)
}

// expected says what a model expected of a trial that was stopped early; "" if there was none.
func expected(e *record.Expected) string {
	if e == nil || len(e.Steps) == 0 {
		return ""
	}
	last := len(e.Steps) - 1
	return fmt.Sprintf("%s at step %d, from %s to %s with a probability of 90%%; the level to beat was %s", number(e.Values[last]),
		e.Steps[last], number(e.Low[last]), number(e.High[last]), number(e.Level))
}

// takes says how long a trial that runs has run, and how long it is expected to take in all; "" if that is not known.
func takes(t *view.Trial, now time.Time) string {
	if t.Takes == nil {
		return ""
	}
	in := func(s float64) string { return figure.Duration(time.Duration(min(s, 1e9) * float64(time.Second))) }
	return fmt.Sprintf("about %s in all, likely %s to %s; it has run for %s", in(t.Takes.Median), in(t.Takes.Low), in(t.Takes.High),
		figure.Duration(now.Sub(t.Times.Started)))
}

// source says what suggested a trial, and how many results it had not seen.
func source(t view.Trial) string {
	switch t.Staleness {
	case 0:
		return string(t.Source)
	case 1:
		return fmt.Sprintf("%s, without the latest result", t.Source)
	default:
		return fmt.Sprintf("%s, without the latest %d results", t.Source, t.Staleness)
	}
}

// metrics formats values by name.
func metrics(values map[string]float64) string {
	return each.Join(slices.Sorted(maps.Keys(values)), " ", func(name string) string { return name + "=" + number(values[name]) })
}

// reasons describes why a point was suggested.
func reasons(r *fantasiav1.Reasons) string {
	var parts []string
	if r.GetNote() != "" {
		parts = append(parts, r.GetNote())
	}
	if r != nil && r.Mean != nil {
		parts = append(parts, fmt.Sprintf("mean %s", view.Expected(r.GetMean(), r.GetSd())))
	}
	if text := metrics(r.GetAcquisition()); text != "" {
		parts = append(parts, text)
	}
	if r.GetPending() > 0 {
		parts = append(parts, fmt.Sprintf("%d pending", r.GetPending()))
	}
	return strings.Join(parts, "; ")
}

// attempt describes the state of an attempt.
func attempt(a *fantasiav1.Attempt, idle bool) string {
	text := strings.ReplaceAll(strings.ToLower(view.EnumName(a.GetState())), "_", " ")
	if idle && a.GetState() == fantasiav1.AttemptState_ATTEMPT_STATE_OPEN {
		text = "interrupted"
	}
	if a.GetWorker() != "" {
		text += " on " + a.GetWorker()
	}
	if took := between(view.Time(a.GetStartTime()), view.Time(a.GetEndTime())); took != "-" {
		text += " in " + took
	}
	if where := view.SiteLine(messaging.Site{Job: a.GetJob(), Node: a.GetNode(), Devices: a.GetDevices()}); where != "" {
		text += "\n" + where
	}
	if parts := phases(a); parts != "" {
		text += "\n" + parts
	}
	if a.GetWaiting() != "" {
		text += "\nwaiting: " + a.GetWaiting()
	}
	if f := a.GetFailure(); f != nil {
		text += "\n" + view.FailureText(view.FromFailure(f))
	}
	if a.GetLogs() != "" {
		text += "\nlog: " + a.GetLogs()
	}
	return text
}

// phases says how long each part of an attempt in a Job took, such as "admit 90ms, …, run 2s, finish 1s".
func phases(a *fantasiav1.Attempt) string {
	return each.Join(view.FromPhases(a.GetPhases()), ", ", func(p messaging.Phase) string { return p.Name + " " + human(p.End.Sub(p.Start)) })
}

// maxCurves is how many metrics are drawn.
const maxCurves = 6

// curves draws what a trial's program reported, one metric below the other.
func curves(w io.Writer, all []view.Curve, width int) error {
	for i := range all {
		c := &all[i]
		n := len(c.Steps)
		title := fmt.Sprintf("%s: %s at step %d", c.Metric, number(c.Values[n-1]), c.Steps[n-1])
		drawn := ""
		if i < maxCurves {
			drawn = figure.Sketch(c, title, width)
		}
		if drawn == "" { // a single point, or no room for a curve
			drawn = title
		}
		if err := say(w, "\n%s", drawn); err != nil {
			return err
		}
	}
	return nil
}
