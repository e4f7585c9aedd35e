// Package figure makes every picture of a study, with the words that say how to read it.
// Reports, the dashboard, notebooks and terminals show the same figures and add only their
// layout. Package picture draws them; it knows nothing of studies.
package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/study"
)

// Figure is one or two pictures with what people need to read them.
type Figure struct {
	// ID names it in addresses and links.
	ID, Title, Help string
	// Pictures are shown one below the other. Broad ones take the whole width of a page,
	// others share it.
	Pictures []picture.Picture
	Broad    bool
	// Lines are sentences below the pictures.
	Lines []string
}

func one(id, title, help string, p picture.Picture) Figure {
	return Figure{ID: id, Title: title, Help: help, Pictures: []picture.Picture{p}}
}

func broad(id, title, help string, p picture.Picture) Figure {
	f := one(id, title, help, p)
	f.Broad = true
	return f
}

// Study is what figures are made from.
type Study struct {
	Spec *study.Spec
	Axes Axes
	// All are the study's trials by number, and Trials those that figures show.
	All, Trials []*Trial
	// Best and Recommended are numbers of trials; 0 for none.
	Best, Recommended int
	// Started is when the study began. Now is when its trials were read; 0 if nobody
	// evaluates any.
	Started, Now Moment
	// ByTime means that History has the time along its axis.
	ByTime bool
	// Model is nil if there is none.
	Model *Model
	ended []*Trial
	drawn []picture.Evaluation
	// reported are the steps of the trials whose reports were read.
	reported map[int]steps
}

const (
	// MaxSlices bounds the parameters with a figure of their own.
	MaxSlices = 12
	// MaxPlanes bounds the pairs of parameters with a figure of their own.
	MaxPlanes = 3
	// sliceDots bounds the dots of all slices together.
	sliceDots = 1200
)

// Progress returns the history of a ledger's trials, which also has a form for terminals.
func Progress(spec *study.Spec, trials []record.Trial) *picture.History {
	s := &Study{Spec: spec}
	for i := range trials {
		s.Trials = append(s.Trials, Of(spec, nil, &trials[i]))
	}
	return s.history()
}

// Direction is that of the objective, or of the first of several.
func (s *Study) Direction() study.Direction { return s.Spec.FirstObjective().Direction }

func (s *Study) objective() picture.Objective {
	return drawn(s.Spec.FirstObjective())
}

// Seconds returns a moment in seconds since the study's start; NaN for none.
func (s *Study) Seconds(m Moment) float64 {
	if m == 0 {
		return math.NaN()
	}
	return max(0, m.Minus(s.Started).Seconds())
}

// Ended returns the shown evaluations in the order in which they ended. Each figure asks
// for them.
func (s *Study) Ended() []*Trial {
	if s.ended == nil {
		s.ended = Ended(s.Trials)
	}
	return s.ended
}

// History shows the evaluations in the order in which they ended or, by time, by when their results
// counted.
func (s *Study) History() Figure {
	h := s.history()
	if s.ByTime {
		h.X, h.Evaluations = "seconds since the start", slices.Clone(h.Evaluations)
		for i, t := range s.Ended() {
			h.Evaluations[i].X = s.Seconds(cmp.Or(t.Folded, t.Ended))
		}
		slices.SortStableFunc(h.Evaluations, func(a, b picture.Evaluation) int { return cmp.Compare(a.X, b.X) })
	}
	return broad("history", "History", "Each dot is an evaluation, from left to right in the order in which they ended; the line is the "+
		"best value so far. A line that has been flat for long says that more evaluations bring little. Triangles at the edge are values "+
		"outside the range shown; evaluations without a value are marked below.", h)
}

func (s *Study) history() *picture.History {
	return &picture.History{Objective: s.objective(), Evaluations: s.evaluations(), Recommended: s.Recommended,
		Goal: s.Spec.FirstObjective().Goal}
}

// evaluations returns the shown evaluations as pictures take them, in the order in which
// they ended.
func (s *Study) evaluations() []picture.Evaluation {
	if s.drawn == nil {
		s.drawn = evaluations(s.Ended())
	}
	return s.drawn
}

func evaluations(trials []*Trial) []picture.Evaluation {
	list := make([]picture.Evaluation, len(trials))
	for i, t := range trials {
		list[i] = picture.Evaluation{Trial: t.Number, State: t.state(), Value: t.Value, At: t.At, X: float64(i + 1), Reason: t.Reason}
	}
	return list
}

// Curve returns the curve of a trial in the metric that tells early; ok is false if it
// reported that at most once.
func (t *Trial) Curve(s *study.Spec, reported []view.Curve) (c picture.Curve, ok bool) {
	metric := diagnosis.StoppingMetric(s)
	for _, r := range reported {
		if r.Metric == metric && len(r.Steps) > 1 {
			return picture.Curve{Trial: t.Number, State: t.state(), Steps: r.Steps, Values: r.Values}, true
		}
	}
	return c, false
}

// Curves shows curves of some of the trials, of which there are so many.
func (s *Study) Curves(curves []picture.Curve, of int) Figure {
	p := &picture.Curves{Objective: s.objective(), Curves: curves, Best: s.Best, Of: of}
	p.Objective.Name = diagnosis.StoppingMetric(s.Spec)
	return broad("curves", "Curves", "Each line is what one trial reported while it ran. Lines that cross late say that early values "+
		"predict final ones badly, so that early stopping is risky. Dots end the lines of trials that were stopped early.", p)
}

// Sketch draws what a trial reported of a metric for a terminal; "" if there is no room, or a
// single point.
func Sketch(c *view.Curve, title string, width int) string {
	return picture.Text{Width: min(width, 72), Height: 9, Title: title, X: "step", Line: true}.Draw(points(c, 0))
}

// Reported shows all that a trial reported of a metric.
func Reported(id string, c *view.Curve, trial int, help string) Figure {
	line := picture.Series{Name: c.Metric, Kind: picture.Lines, Points: points(c, trial)}
	return broad(id, c.Metric, help, &picture.Chart{X: "step", Y: c.Metric, Unlisted: true, Series: []picture.Series{line}})
}

// ReportedUntilStopped is Reported of a trial that was stopped early, with what a model expected of it: how it would
// have gone on, with the band that it is within with a probability of 90%, and the level that it had to beat.
func ReportedUntilStopped(id string, c *view.Curve, trial int, e *record.Expected, help string) Figure {
	line := picture.Series{Name: c.Metric, Kind: picture.Lines, Points: points(c, trial)}
	last := line.Points[len(line.Points)-1]
	expected := picture.Series{Name: "expected, with a probability of 90% in the band", Kind: picture.Lines, Color: 1, Dash: 1}
	level := picture.Series{Name: "level to beat at the last step", Kind: picture.Lines, Color: 2, Dash: 2}
	for i, step := range e.Steps {
		x := float64(step)
		if i == 0 {
			expected.Points, expected.Low, expected.High = []picture.Point{last}, []float64{last.Y}, []float64{last.Y}
			level.Points = []picture.Point{{X: line.Points[0].X, Y: e.Level}}
		}
		expected.Points = append(expected.Points, picture.Point{X: x, Y: e.Values[i], Trial: trial})
		expected.Low, expected.High = append(expected.Low, e.Low[i]), append(expected.High, e.High[i])
		if i == len(e.Steps)-1 {
			level.Points = append(level.Points, picture.Point{X: x, Y: e.Level})
		}
	}
	return broad(id, c.Metric, help+" The dashed line is what was expected when it was stopped, the level what it had to beat.",
		&picture.Chart{X: "step", Y: c.Metric, Series: []picture.Series{line, expected, level}})
}

func points(c *view.Curve, trial int) []picture.Point {
	list := make([]picture.Point, len(c.Steps))
	for k := range list {
		list[k] = picture.Point{X: float64(c.Steps[k]), Y: c.Values[k], Trial: trial}
	}
	return list
}

// Parallel shows all parameters of all evaluations.
func (s *Study) Parallel() Figure {
	p := &picture.Parallel{Objective: s.objective(), Evaluations: s.evaluations(), Key: "value"}
	for i := range s.Axes {
		p.Parameters = append(p.Parameters, axis(&s.Axes[i]))
	}
	s.addObjectives(p)
	return broad("parallel", "Parallel coordinates", "Each line is an evaluation, from its parameters down to its value. Where the darkest "+
		"lines (in dark mode, the brightest) run together, the parameter has to be right; where they spread, it matters little.", p)
}

// Order returns the places of the axes, the most important parameter first where the model
// tells that.
func (s *Study) Order() []int { return s.Axes.ranked(s.Model) }

func (a Axes) ranked(m *Model) []int {
	if m == nil {
		return a.by(nil)
	}
	return a.by(m.Importance)
}

// by returns the places of the axes in the order of a ranking.
func (a Axes) by(ranking []diagnosis.Importance) []int {
	rank := map[string]int{}
	for i, p := range ranking {
		rank[p.Parameter] = i - len(ranking)
	}
	return indices.Sorted(len(a), func(x, y int) int { return cmp.Compare(rank[a[x].Name], rank[a[y].Name]) })
}

// Slices shows the value of each evaluation against one parameter, with what the model
// expects along it, for the most important parameters.
func (s *Study) Slices() (figures []Figure) {
	order := s.Order()
	order = order[:min(len(order), MaxSlices)]
	for k, i := range order {
		f := one(fmt.Sprintf("slice-%d", i), s.Axes[i].Name, "As before.", s.Slice(i, len(order)))
		if k == 0 {
			f.Help = "The value of each evaluation against this parameter. A slope or a valley shows its effect; good values at an edge say that " +
				"the range should be widened."
		}
		if d := s.Dependence(i); d != nil {
			f.Pictures = append(f.Pictures, d)
			if k == 0 {
				f.Help += " Below: what the model expects on average over all other parameters, with the band that holds 95% of what it thinks " +
					"possible. Where the band is wide, there are few evaluations."
			}
		}
		figures = append(figures, f)
	}
	return figures
}

// Slice is the picture of the i-th axis, one of several that are shown together.
func (s *Study) Slice(i, of int) picture.Picture {
	return &picture.Slice{Objective: s.objective(), Parameter: axis(&s.Axes[i]), Axis: i, Evaluations: s.evaluations(), Best: s.Best,
		Most: max(100, sliceDots/of)}
}

// Failures counts the attempts that failed, by their reasons.
func (s *Study) Failures() Figure {
	b := &picture.Bars{Caption: "failed attempts", Color: 1, None: "No attempt failed."}
	counts := map[string]float64{}
	for _, t := range s.Trials {
		for _, a := range t.Attempts {
			if a.Reason != "" || a.State == study.AttemptFailed || a.State == study.AttemptLost {
				counts[cmp.Or(a.Reason, string(a.State))]++
			}
		}
	}
	for reason, n := range counts {
		b.Bars = append(b.Bars, picture.Bar{Name: reason, Value: n})
	}
	slices.SortFunc(b.Bars, func(x, y picture.Bar) int {
		return cmp.Or(cmp.Compare(y.Value, x.Value), strings.Compare(x.Name, y.Name))
	})
	return one("failures", "Failures by reason", "How often an attempt failed, by reason. Reasons that come back are bugs of the program "+
		"or limits of the machine; fantasia trial logs shows what it wrote.", b)
}

// Workers shows which worker had which attempt when.
func (s *Study) Workers() Figure {
	g := &picture.Gantt{}
	for _, t := range s.Trials {
		for i := range t.Attempts {
			a := &t.Attempts[i]
			b := picture.Attempt{Trial: t.Number, Number: a.Number, Worker: a.Worker, Start: s.Seconds(a.Claimed), End: s.Seconds(a.Ended),
				State: a.state(t), Reason: a.Reason}
			if a.State == study.AttemptOpen && s.Now != 0 {
				g.End = s.Seconds(s.Now)
			}
			g.Attempts = append(g.Attempts, b)
		}
	}
	return broad("workers", "Workers", "A row for each evaluation that a worker had at once, a bar for each attempt. White space is time "+
		"in which nothing ran. Many short bars of failures in a row point to a broken machine.", g)
}

// Pending shows how many trials workers evaluated at once.
func (s *Study) Pending() Figure {
	p := &picture.Pending{Limit: s.Spec.Parallelism}
	n := 0
	for _, c := range s.changes() {
		n += c.by
		if k := len(p.Steps); k > 0 && p.Steps[k-1].At == s.Seconds(c.at) {
			p.Steps[k-1].N = n
			continue
		}
		p.Steps = append(p.Steps, picture.Step{At: s.Seconds(c.at), N: n})
	}
	f := one("pending", "Trials under way", "How many trials were evaluated at once. The dashed line is the study's parallelism. Gaps "+
		"below it are workers that were missing or waited.", p)
	f.Lines = s.asynchrony()
	return f
}

// change is a change of the number of attempts that workers have.
type change struct {
	at Moment
	by int
}

// changes returns the starts and the ends of all attempts in order of time; at the same
// time, ends come first.
func (s *Study) changes() (list []change) {
	for _, t := range s.All {
		for _, a := range t.Attempts {
			if list = append(list, change{a.Claimed, 1}); a.Ended != 0 {
				list = append(list, change{max(a.Claimed, a.Ended), -1})
			}
		}
	}
	slices.SortFunc(list, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	return list
}

// Staleness shows how many results each suggestion did not know.
func (s *Study) Staleness() Figure {
	p := &picture.Staleness{}
	for _, t := range s.Trials {
		p.Points = append(p.Points, picture.Point{X: float64(t.Number), Y: float64(t.Staleness), Trial: t.Number})
	}
	return one("staleness", "Staleness", "How many results arrived while a trial was being suggested, so that its suggestion could not use "+
		"them. Values of 0 or 1 are fine; values near the number of workers say that suggestions take long compared with evaluations.", p)
}

// EDF shows the empirical distribution function of the values.
func (s *Study) EDF() Figure {
	return one("edf", "Distribution of values", "The share of evaluations with at most each value. Where the line is steep, many "+
		"evaluations are alike; a long flat end on the good side says that few settings are good.",
		&picture.EDF{Objective: s.objective(), Evaluations: s.evaluations()})
}

// Insights are the figures about the parameters.
func (s *Study) Insights() []Figure {
	return slices.Concat([]Figure{s.Parallel(), s.Importances()}, s.Deciding(), s.Slices(), s.Contours(), s.Times())
}

// Diagnostics are the figures that say whether the search itself works.
func (s *Study) Diagnostics() (figures []Figure) {
	if s.Model != nil {
		figures = append(figures, s.Fit())
	}
	return append(figures, s.Staleness())
}

// Health are the figures that say whether the programs and the workers do well.
func (s *Study) Health() []Figure { return []Figure{s.Workers(), s.Pending(), s.Failures()} }
