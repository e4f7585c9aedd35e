package loop

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
)

// Pick makes a suggestion of the spot and adds it to the models as pending. The posterior that
// people are shown MUST be read before that: afterwards the variance is that of a known point.
func (l *Loop) Pick(best Spot) optimizer.Suggestion {
	x := Rows([]Place{best.Place})
	all := l.posteriors(x)
	of := all[:1+len(l.Others)]
	suggestion := optimizer.Suggestion{Point: best.Point, Source: optimizer.SourceModel}
	suggestion.Reasons = optimizer.Reasons{Acquisition: l.worth(best, all), Pending: l.Pending}
	within := l.Limits == nil || l.Limits.expected(all[len(of):], 0)
	if l.Front != nil {
		suggestion.Reasons.Note = l.Front.pick(of, within)
	} else {
		mean, variance := moments(of, 0)
		moments := l.Moments
		if moments == nil {
			moments = l.Data.Moments
		}
		expected, sd := moments(mean, variance)
		suggestion.Reasons.Mean, suggestion.Reasons.SD = Finite(expected), Finite(sd)
		suggestion.Reasons.Note = l.note(best.Why, mean) + l.Earlier.Note(best.X, mean)
	}
	if l.searching() {
		suggestion.Reasons.Note = "could be within all limits, as no point so far is"
	}
	l.Pending++
	l.Request.Sampler.MarkTaken(best.Point)
	l.Picked++
	l.believe(x)
	if within {
		for i, m := range l.members() {
			m.floor = min(m.floor, of[i].mean[0])
		}
	}
	return suggestion
}

// worth lists the values of the acquisition functions at a picked point, without the
// parameters' priors.
func (l *Loop) worth(p Spot, of []posterior) map[string]float64 {
	logP := l.Chance.Log(Rows([]Place{p.Place}))[0]
	values := p.Acquisition
	if values == nil {
		values = map[string]float64{}
		if !l.searching() {
			values[l.criterion()] = l.value(of, 0, logP)
		}
	}
	if l.Limits != nil {
		values["within"] = math.Exp(l.Limits.log(of[1+len(l.Others):], 0))
	}
	if l.Chance.model != nil {
		values["feasible"] = math.Exp(logP)
	}
	return values
}

// criterion returns the name of the acquisition function.
func (l *Loop) criterion() string {
	if l.Front != nil {
		return l.Front.by.Name()
	}
	return l.Criterion.Name()
}

// note says whether the point is expected to beat the incumbent by its mean or because
// of its uncertainty, and why else it was picked.
func (l *Loop) note(why string, mean float64) string {
	note := "could beat the best point so far: the model is unsure there"
	var incumbents []float64
	for _, m := range l.members() {
		incumbents = append(incumbents, m.Known.Incumbent)
	}
	if mean < bayes.Average(incumbents) {
		note = "expected to beat the best point so far"
	}
	if why != "" {
		note += "; " + why
	}
	return note
}

// Finite returns v, or nil if it is NaN or too large for a float64: JSON has neither.
func Finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
