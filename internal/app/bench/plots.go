package bench

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

// quartiles describes the curves and the bands around them.
const quartiles = " (median, with the quartiles around it)"

// timeSteps is the number of points of a curve against time.
const timeSteps = 200

// WritePlots writes two plots for each law and objective into dir, against evaluations
// and against virtual time, and returns their paths. They show the median over the
// seeds for each variant and mode, with a band between the quartiles.
func WritePlots(dir string, p *Plan, groups []*Group) (files []string, err error) {
	for _, law := range p.Laws {
		for _, o := range p.Objectives {
			lines := p.lines(groups, law, o)
			if len(lines) == 0 {
				continue // interrupted before any run
			}
			title := fmt.Sprintf("%s, %s, %d workers", o.Name, lawText(law), p.Workers)
			chart := picture.Chart{Log: o.Minimum != nil, FromZero: true}
			chart.Y = "best value" + quartiles
			if chart.Log {
				chart.Y = "regret, lower is better" + quartiles
			}
			for _, x := range []struct {
				name, label string
				curve       func([]trace, *Objective) picture.Series
			}{
				{"evaluations", "evaluations", againstEvaluations},
				{"time", timeLabel(p.Durations), againstTime},
			} {
				chart.X, chart.Series = x.label, nil
				for _, line := range lines {
					curve := x.curve(line.traces, o)
					curve.Name, curve.Kind, curve.Color, curve.Dash = line.name, picture.Lines, line.color, line.dash
					chart.Series = append(chart.Series, curve)
				}
				name := filepath.Join(dir, fileName(o.Name, law, x.name)+".svg")
				if err := renameio.WriteFile(name, chart.SVG(picture.Frame{Title: title}), 0o644); err != nil {
					return files, fmt.Errorf("write a plot: %w", err)
				}
				files = append(files, name)
			}
		}
	}
	return files, nil
}

func timeLabel(d Durations) string {
	if d == Measured {
		return "time (s)"
	}
	return "virtual time (mean durations of an evaluation)"
}

// fileName joins parts to a name that any file system accepts.
func fileName(parts ...string) string {
	safe := strings.NewReplacer(":", "-", "/", "-", string(os.PathSeparator), "-")
	return safe.Replace(strings.Join(parts, "-"))
}

// plotLine holds the runs of a line: those of a variant in a mode.
type plotLine struct {
	name        string
	color, dash int
	traces      []trace
}

// lines returns the lines of a plot: one colour for each variant, one line pattern for
// each mode.
func (p *Plan) lines(groups []*Group, law string, o *Objective) []plotLine {
	dashes := map[Mode]int{Asynchronous: 0, Synchronous: 1, Sequential: 2}
	var lines []plotLine
	for i := range p.Variants {
		for _, mode := range Modes() {
			line := plotLine{name: fmt.Sprintf("%s, %s", p.Variants[i].Label, mode), color: i, dash: dashes[mode]}
			for _, g := range groups {
				if run := g.Runs[mode]; run != nil && g.Variant == &p.Variants[i] && g.Objective == o && g.Law == law {
					t := newTrace(&run.Result, o)
					if mode != Asynchronous || run.Spec.Horizon == 0 {
						t = t.first(p.Trials)
					}
					line.traces = append(line.traces, t)
				}
			}
			if len(line.traces) > 0 {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// first returns the trace of the first n observations.
func (t trace) first(n int) trace {
	n = min(n, len(t.loss))
	return trace{told: t.told[:n], loss: t.loss[:n]}
}

// againstEvaluations returns a curve over as many evaluations as all runs have.
func againstEvaluations(traces []trace, o *Objective) picture.Series {
	shortest := math.MaxInt
	for _, t := range traces {
		shortest = min(shortest, len(t.loss))
	}
	var c picture.Series
	for n := 1; n <= shortest; n++ {
		addQuartiles(&c, float64(n), traces, o, func(t trace) float64 { return t.after(n) })
	}
	return c
}

// againstTime returns a curve until the last run's end; a run that has ended stays at
// its last value.
func againstTime(traces []trace, o *Objective) picture.Series {
	end := 0.0
	for _, t := range traces {
		if len(t.told) > 0 {
			end = max(end, t.told[len(t.told)-1])
		}
	}
	var c picture.Series
	for i := range timeSteps + 1 {
		at := end * float64(i) / timeSteps
		addQuartiles(&c, at, traces, o, func(t trace) float64 { return t.by(at) })
	}
	return c
}

// addQuartiles adds a point of the curve where every run has a value.
func addQuartiles(c *picture.Series, x float64, traces []trace, o *Objective, of func(trace) float64) {
	values := make([]float64, len(traces))
	for i, t := range traces {
		if values[i] = o.shown(of(t)); math.IsNaN(values[i]) {
			return
		}
	}
	values = sorted(values)
	c.Low = append(c.Low, quantile(values, 0.25))
	c.Points = append(c.Points, picture.Point{X: x, Y: quantile(values, 0.5)})
	c.High = append(c.High, quantile(values, 0.75))
}

// shown returns the plotted value of a loss: the regret, at least Floor, or the value.
func (o *Objective) shown(loss float64) float64 {
	if o.Minimum != nil {
		return max(loss, Floor)
	}
	return o.measure(loss)
}
