package diagnosis

import (
	"context"
	"fmt"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
)

// more says what more trials are expected to gain; nil if the study's algorithm does not tell, or if trials differ in their fidelity.
func more(ctx context.Context, spec *study.Spec, p *optimizer.Problem) (*optimizer.Gain, error) {
	if slices.ContainsFunc(spec.Parameters, func(p study.Parameter) bool { return p.Type == study.Fidelity }) {
		return nil, nil
	}
	a := &spec.Algorithm
	o, err := registry.New(a.Name, a.Settings)
	if err != nil {
		return nil, err
	}
	f, ok := o.(optimizer.Forecaster)
	if !ok {
		return nil, nil
	}
	return f.Forecast(ctx, p, nil)
}

// judgeMore says whether more trials are worth it, as far as anything is known of that.
func judgeMore(d *Diagnosis) (statement, evidence string) {
	g := d.More
	statement = fmt.Sprintf("%d more trials are expected to gain %s and, in nine of ten cases, at most %s.", g.Trials, figure(g.Expected),
		figure(g.Most))
	if most, ok := g.MostPer(study.PerHour); ok && g.Seconds >= float64(g.Trials) {
		statement += fmt.Sprintf(" They take about %s together: at most %s an hour.", inSeconds(g.Seconds), figure(most))
	}
	if most, ok := g.MostPer(study.PerCost); ok {
		statement += fmt.Sprintf(" They cost about %s together: at most %s for a unit of cost.", figure(g.Cost), figure(most))
	}
	return statement, "the model, and what the last third of the trials gained; " + trials(d)
}
