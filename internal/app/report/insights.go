package report

import (
	"context"
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/internal/app/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/base/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// mostPlanes is the number of pairs of parameters with contours.
	mostPlanes = 3
	// mostAxes is the number of parameters with a picture of their own.
	mostAxes = 12
)

// insights are what the trials say about the parameters.
func (s *sheet) insights(ctx context.Context) group {
	g := group{ID: "insights", Name: "Insights", Intro: s.trust()}
	order := s.order()
	g.Figures = append(g.Figures, small("importances", "Importances",
		"How much of the change of the objective comes from each parameter, as the model sees it. The dark part is what the parameter does by itself; the rest comes from its interactions with others. Search unimportant ones no further.",
		s.importances()))
	g.Figures = append(g.Figures, broad("parallel", "Parallel coordinates",
		"Each line is an evaluation, from its parameters down to its value. Where the darkest lines (in dark mode, the brightest) run together, the parameter has to be right; where they spread, it matters little.",
		s.parallel()))
	for k, i := range order {
		if k == mostAxes {
			break
		}
		f := small(fmt.Sprintf("slice-%d", i), s.parameters[i].Name, "As before.", s.slice(i))
		if k == 0 {
			f.Read = "The value of each evaluation against this parameter. A slope or a valley shows its effect; good values at an edge say that the range should be widened."
		}
		if s.model != nil {
			if at, expected := s.model.Along(s.parameters[i].Name); len(at) > 0 {
				f.Pictures = append(f.Pictures, drawn{Large: draw(s.dependence(i, at, expected), narrowWidth)})
				if k == 0 {
					f.Read += " Below: what the model expects on average over all other parameters, with the band that holds 95% of what it thinks possible. Where the band is wide, there are few evaluations."
				}
			}
		}
		g.Figures = append(g.Figures, f)
	}
	g.Figures = append(g.Figures, s.planes(ctx, order)...)
	return g
}

// trust says how far the model can be trusted.
func (s *sheet) trust() string {
	if s.diagnosis == nil {
		return s.why
	}
	used := ""
	if s.diagnosis.Used < s.diagnosis.Completed {
		used = fmt.Sprintf(" It was fitted to %d of the %d completed trials.", s.diagnosis.Used, s.diagnosis.Completed)
	}
	return fmt.Sprintf("The model explains %.0f%% of the variance of evaluations that it was not shown. The closer this is to 100%%, the more its pictures below can be trusted.%s", 100*max(0, s.diagnosis.Explained), used)
}

// order returns the parameters' indices, the most important first where that is known.
func (s *sheet) order() []int {
	var order []int
	seen := map[int]bool{}
	add := func(i int) {
		if !seen[i] {
			seen[i] = true
			order = append(order, i)
		}
	}
	if s.diagnosis != nil {
		for _, p := range s.diagnosis.Importance {
			for i := range s.parameters {
				if s.parameters[i].Name == p.Parameter {
					add(i)
				}
			}
		}
	}
	for i := range s.parameters {
		add(i)
	}
	return order
}

func (s *sheet) importances() *picture.Bars {
	b := &picture.Bars{Title: "Importances", Caption: "share of the model's variance", Whole: "with its interactions", Part: "by itself", Percent: true, None: "There is no ranking yet."}
	if s.diagnosis == nil {
		return b
	}
	for _, p := range s.diagnosis.Importance {
		b.Bars = append(b.Bars, picture.Bar{
			Name: p.Parameter, Value: p.Total, Part: min(p.First, p.Total),
			Note: fmt.Sprintf("%s: %.0f%%, by itself %.0f%%", p.Parameter, 100*p.Total, 100*p.First),
		})
	}
	for _, f := range s.diagnosis.Findings {
		if f.Topic == diagnosis.TopicParameters && !f.Judged {
			b.None = f.Statement
		}
	}
	return b
}

// at returns where a trial lies on the axis of a parameter.
func (s *sheet) at(parameters map[string]any, i int) float64 {
	return PlaceOf(s.parameters[i], parameters[s.parameters[i].Name])
}

func valueOf(v *float64, state study.TrialState) float64 {
	if v == nil || state != study.TrialCompleted {
		return math.NaN()
	}
	return *v
}

func (s *sheet) parallel() *picture.Parallel {
	p := &picture.Parallel{Title: "Parallel coordinates", Objective: s.objective, Parameters: s.axes}
	for _, t := range s.ended {
		l := picture.Line{Trial: t.Trial, State: StateOf(t.State), Value: valueOf(t.Value, t.State)}
		for i := range s.parameters {
			l.At = append(l.At, s.at(t.Parameters, i))
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}

func (s *sheet) slice(i int) *picture.Slice {
	p := &picture.Slice{Objective: s.objective, Parameter: s.axes[i], Best: s.best}
	for _, t := range s.ended {
		p.Samples = append(p.Samples, picture.Sample{Trial: t.Trial, At: s.at(t.Parameters, i), State: StateOf(t.State), Value: valueOf(t.Value, t.State)})
	}
	return p
}

func (s *sheet) dependence(i int, at []float64, expected []diagnosis.Expected) *picture.Dependence {
	p := &picture.Dependence{Objective: s.objective, Parameter: s.axes[i], At: at}
	for _, e := range expected {
		p.Mean, p.Low, p.High = append(p.Mean, e.Median), append(p.Low, e.Low), append(p.High, e.High)
	}
	return p
}

// planes are contours for pairs of the most important parameters.
func (s *sheet) planes(ctx context.Context, order []int) (figures []figure) {
	if s.model == nil || s.best == 0 {
		return nil
	}
	origin := s.best
	name := "the best trial"
	if s.recommended != 0 {
		origin, name = s.recommended, "the recommended trial"
	}
	at, ok := s.model.PointOf(origin)
	if !ok {
		return nil
	}
	read := fmt.Sprintf("The two most telling parameters against each other, with all others as in %s. Above: what the model expects; dots are evaluations, the large one is the best. Below: how uncertain the model is. A good region that is also uncertain is worth more evaluations.", name)
	names := make([]string, len(order))
	index := map[string]int{}
	for k, i := range order {
		names[k] = s.parameters[i].Name
		index[names[k]] = i
	}
	for _, p := range s.model.Planes(ctx, names, at, mostPlanes) {
		x, y := index[p.X], index[p.Y]
		figures = append(figures, small(fmt.Sprintf("contour-%d-%d", x, y), p.X+" and "+p.Y, read, s.contour(x, y, p)))
		read = fmt.Sprintf("As above, with all other parameters as in %s.", name)
	}
	return figures
}

func (s *sheet) contour(x, y int, plane *diagnosis.Plane) *picture.Contour {
	p := &picture.Contour{Objective: s.objective, X: s.axes[x], Y: s.axes[y], Xs: plane.Xs, Ys: plane.Ys, Mean: plane.Mean, SD: plane.SD, Best: s.best}
	for _, t := range s.ended {
		p.Places = append(p.Places, picture.Place{Trial: t.Trial, X: s.at(t.Parameters, x), Y: s.at(t.Parameters, y), State: StateOf(t.State), Value: valueOf(t.Value, t.State)})
	}
	return p
}
