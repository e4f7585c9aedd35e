package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/app/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/base/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

// maxDrawnCurves bounds the curves of a picture.
const maxDrawnCurves = 40

// leastForTwo is the width of a page on which two panels fit beside each other, and
// between what their borders and margins take of each.
const (
	leastForTwo = 860
	between     = 24
)

// panel returns a picture as a panel.
func (q *request) panel(id, title, help string, p picture.Picture) panel {
	return panel{ID: id, Title: title, Help: help, Picture: svg(p, q.width)}
}

// half returns pictures, one below the other, as a panel that leaves room for another one
// beside it if the page is wide enough.
func (q *request) half(id, title, help string, pictures ...picture.Picture) panel {
	width, two := q.width, q.width >= leastForTwo
	if two {
		width = width/2 - between
	}
	half := panel{ID: id, Title: title, Help: help, Half: two}
	for _, p := range pictures {
		half.Picture += svg(p, width)
	}
	return half
}

// svg draws a picture. Pictures escape every text themselves.
func svg(p picture.Picture, width int) template.HTML {
	return template.HTML(p.SVG(picture.Frame{Width: width, Inline: true})) //nolint:gosec // escaped by package picture
}

func (q *request) objective() picture.Objective {
	o := q.spec().Objective
	return picture.Objective{Name: o.Metric, Maximize: o.Direction == study.Maximize}
}

// seconds returns a moment in seconds since the study's start.
func (q *request) seconds(m moment) float64 {
	if m == 0 {
		return math.NaN()
	}
	return m.minus(at(q.study.Status.Started)).Seconds()
}

// drawnState is a trial's state as pictures show it.
func drawnState(s study.TrialState) picture.State {
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

// evaluations returns the shown evaluations that have ended, in the order in which they
// did. Each picture of a page asks for them.
func (q *request) evaluations() []*row {
	if q.done == nil {
		q.done = ended(q.shown)
	}
	return q.done
}

// ended returns the evaluations that have ended, in the order in which they did.
func ended(rows []*row) []*row {
	var done []*row
	for _, r := range rows {
		if r.state.Terminal() && r.state != study.TrialCancelled {
			done = append(done, r)
		}
	}
	slices.SortStableFunc(done, func(a, b *row) int { return cmp.Compare(a.position, b.position) })
	return done
}

func (q *request) recommended() int {
	if q.study.Recommended == nil {
		return 0
	}
	return q.study.Recommended.Trial
}

func (q *request) history() *picture.History {
	h := &picture.History{Objective: q.objective(), Recommended: q.recommended(), Goal: q.spec().Objective.Goal}
	if q.filter.byTime {
		h.X = "seconds since the start"
	}
	for i, r := range q.evaluations() {
		e := picture.Evaluation{Trial: r.number, X: float64(i + 1), State: drawnState(r.state), Value: r.value, Reason: r.failure}
		if q.filter.byTime {
			e.X = q.seconds(r.ended)
		}
		h.Evaluations = append(h.Evaluations, e)
	}
	if q.filter.byTime { // by the clocks of workers
		slices.SortStableFunc(h.Evaluations, func(a, b picture.Evaluation) int { return cmp.Compare(a.X, b.X) })
	}
	return h
}

// curves reads the curves of some trials; nil if they have none.
func (q *request) curves(ctx context.Context) (*picture.Curves, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	objective := q.objective()
	if e := q.spec().EarlyStopping; e != nil && e.Metric != "" {
		objective.Name = e.Metric
	}
	c := &picture.Curves{Objective: objective, Best: q.study.Status.Best}
	for i, r := range chosen(q.shown, q.direction(), maxDrawnCurves) {
		series, err := q.follow.curves.of(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, s := range series {
			if s.Metric != objective.Name || len(s.Points) == 0 {
				continue
			}
			curve := picture.Curve{Trial: r.number, State: drawnState(r.state)}
			for _, p := range s.Points {
				curve.Steps, curve.Values = append(curve.Steps, float64(p.Step)), append(curve.Values, p.Value)
			}
			c.Curves = append(c.Curves, curve)
		}
		if i == 7 && len(c.Curves) == 0 { // the program seems to report none
			return nil, nil
		}
	}
	if len(c.Curves) == 0 {
		return nil, nil
	}
	c.Of = len(q.shown)
	return c, nil
}

// parameter returns an axis for a parameter.
func parameter(p *study.Parameter) picture.Parameter {
	out := picture.Parameter{Name: p.Name, Whole: p.Type == study.Int}
	if numeric(p) {
		out.Low, out.High = *p.Min, *p.Max
		switch p.Scale {
		case study.Log:
			out.Scale = picture.Log
		case study.Logit:
			if p.Type == study.Float {
				out.Scale = picture.Logit
			}
		}
		return out
	}
	n, _ := p.Cardinality()
	for k := range n {
		out.Levels = append(out.Levels, fmt.Sprint(p.At(k)))
	}
	return out
}

func (q *request) parallel() *picture.Parallel {
	p := &picture.Parallel{Objective: q.objective(), Key: "value"}
	for i := range q.filter.axes {
		axis := parameter(&q.filter.axes[i])
		axis.Key = "p." + axis.Name
		p.Parameters = append(p.Parameters, axis)
	}
	for _, r := range q.evaluations() {
		p.Lines = append(p.Lines, picture.Line{Trial: r.number, State: drawnState(r.state), Value: r.value, At: r.params})
	}
	return p
}

// slice returns the picture of a parameter, one of several on a page.
func (q *request) slice(i, of int) *picture.Slice {
	s := &picture.Slice{Objective: q.objective(), Parameter: parameter(&q.filter.axes[i]), Best: q.study.Status.Best, Most: max(100, sliceDots/of)}
	for _, r := range q.evaluations() {
		s.Samples = append(s.Samples, picture.Sample{Trial: r.number, At: r.params[i], State: drawnState(r.state), Value: r.value})
	}
	return s
}

// dependence returns what the model expects along a parameter; nil if that is not known.
func (q *request) dependence(i int, last *insight) picture.Picture {
	if last == nil {
		return nil
	}
	known, ok := last.along[q.filter.axes[i].Name]
	if !ok {
		return nil
	}
	d := &picture.Dependence{Objective: q.objective(), Parameter: parameter(&q.filter.axes[i]), At: known.at}
	for _, e := range known.expected {
		d.Mean, d.Low, d.High = append(d.Mean, e.Median), append(d.Low, e.Low), append(d.High, e.High)
	}
	return d
}

// importances returns how much each parameter matters, by the model.
func importances(last *insight) *picture.Bars {
	bars := &picture.Bars{Caption: "share of the variance of the model's mean", Whole: "with interactions", Part: "alone", Percent: true, None: "There is no ranking yet."}
	for _, p := range last.report.Importance {
		bars.Bars = append(bars.Bars, picture.Bar{Name: p.Parameter, Value: p.Total, Part: p.First})
	}
	return bars
}

// fit returns the predictions of trials by the model that has not seen them.
func (q *request) fit(last *insight) *picture.Fit {
	fit := &picture.Fit{Objective: q.objective(), Interval: "95% interval"}
	for _, l := range last.leftOut {
		fit.Predictions = append(fit.Predictions, picture.Prediction{Trial: l.Trial, Observed: l.Observed, Mean: l.Median, Low: l.Low, High: l.High})
	}
	return fit
}

// planes returns what the model expects of pairs of parameters.
func (q *request) planes(last *insight) (panels []panel) {
	if last == nil {
		return nil
	}
	for n, p := range last.planes {
		x, y := q.filter.axis(p.X), q.filter.axis(p.Y)
		if x < 0 || y < 0 {
			continue
		}
		help := "What the model expects of two parameters, with all others as in " + last.origin + ", and how uncertain it is there. A good region that is also uncertain is worth more trials."
		if n > 0 {
			help = "As above, with all other parameters as in " + last.origin + "."
		}
		panels = append(panels, q.panel(fmt.Sprintf("plane-%d-%d", x, y), p.X+" and "+p.Y, help, q.contour(x, y, p)))
	}
	return panels
}

// contour returns the picture of a plane of the parameters x and y.
func (q *request) contour(x, y int, p *diagnosis.Plane) *picture.Contour {
	c := &picture.Contour{
		Objective: q.objective(), X: parameter(&q.filter.axes[x]), Y: parameter(&q.filter.axes[y]),
		Xs: p.Xs, Ys: p.Ys, Mean: p.Mean, SD: p.SD, Best: q.study.Status.Best,
	}
	for _, r := range q.evaluations() {
		c.Places = append(c.Places, picture.Place{Trial: r.number, X: r.params[x], Y: r.params[y], State: drawnState(r.state), Value: r.value})
	}
	return c
}

func (q *request) gantt() *picture.Gantt {
	g := &picture.Gantt{}
	for _, r := range q.shown {
		for i, a := range r.attempts {
			b := picture.Attempt{Trial: r.number, Number: a.number, Worker: a.worker, Start: q.seconds(a.claimed), End: q.seconds(a.ended), State: drawnState(r.state)}
			switch a.state {
			case study.AttemptOpen:
				b.State = picture.Running
				g.End = q.seconds(at(q.now))
			case study.AttemptLost:
				b.State = picture.Lost
			case study.AttemptHandedBack, study.AttemptCancelled:
				b.State = picture.Cancelled
			case study.AttemptFailed:
				b.State = picture.Failed
			}
			if i == len(r.attempts)-1 {
				b.Reason = r.failure
			}
			g.Attempts = append(g.Attempts, b)
		}
	}
	return g
}

// pending returns how many evaluations were under way over time.
func (q *request) pending() *picture.Pending {
	p := &picture.Pending{Limit: q.spec().Parallelism}
	type change struct {
		at float64
		by int
	}
	var changes []change
	for _, r := range q.rows.rows {
		for _, a := range r.attempts {
			changes = append(changes, change{q.seconds(a.claimed), 1})
			if a.ended != 0 {
				changes = append(changes, change{q.seconds(a.ended), -1})
			}
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	n := 0
	for _, c := range changes {
		n += c.by
		if k := len(p.Steps); k > 0 && p.Steps[k-1].At == c.at {
			p.Steps[k-1].N = n
			continue
		}
		p.Steps = append(p.Steps, picture.Step{At: c.at, N: n})
	}
	return p
}

func (q *request) staleness() *picture.Staleness {
	s := &picture.Staleness{}
	for _, r := range q.shown {
		s.Points = append(s.Points, picture.Point{X: float64(r.number), Y: float64(r.staleness), Trial: r.number})
	}
	return s
}
