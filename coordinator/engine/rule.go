package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// rule decides which trials are stopped early. It is the only place that knows the study's pruner:
// the rest of the engine tells it what trials report and how they end, and carries out what it says.
//
// What it says depends only on the curves and on how trials ended, and not on when it was told, so
// that the next leader's rule knows the same once it was told all curves again. A decision is not
// kept here: decisions are in the trials' records.
type rule struct {
	pruner    pruner.Pruner // nil if the study stops no trial early
	metric    string        // that the rule compares
	objective int           // index of the objective with that metric; -1 for none
	direction study.Direction
	// looks are those at the curves of trials, by number; nil unless what trials report may be what they end with.
	looks map[int]*looked
}

// looked are the looks at a curve. Once its trial has ended they stay as they are: its record has them.
type looked struct {
	looks []optimizer.Look
	least float64
	ended bool
}

// newRule returns the rule of a study, which no update changes: see study.Compatible.
func newRule(spec *record.Study, settings Settings) (rule, error) {
	d := &spec.Definition
	s := d.Spec.EarlyStopping
	if s == nil {
		return rule{}, nil
	}
	direction, objectives := d.Spec.FirstObjective().Direction, d.Spec.Objectives()
	objective := slices.IndexFunc(objectives, func(o study.Objective) bool { return o.Metric == s.Metric })
	if objective >= 0 {
		direction = objectives[objective].Direction
	}
	p, err := settings.Pruner(*s, direction)
	if err != nil {
		return rule{}, fmt.Errorf("study %s (%s): early stopping: %w", d.Metadata.Name, spec.ID, err)
	}
	r := rule{p, s.Metric, objective, direction, nil}
	levels := slices.ContainsFunc(d.Spec.Parameters, func(p study.Parameter) bool { return p.Type == study.Fidelity })
	if s.Name == pruner.Model && objective == 0 && len(objectives) == 1 && !levels {
		r.looks = map[int]*looked{}
	}
	return r, nil
}

// report tells the rule what a trial has reported, and returns whether the rule says to stop
// the trial. The rule ignores steps that it knows, as of an earlier attempt.
func (r *rule) report(m *messaging.Measurement) pruner.Verdict {
	if r.pruner == nil {
		return pruner.Verdict{}
	}
	v, ok := m.Metrics[r.metric]
	if slices.Contains(m.Diverged, r.metric) {
		v, ok = math.NaN(), true
	}
	if !ok {
		return pruner.Verdict{}
	}
	return r.add(m.Trial, m.Step, r.direction.Cost(v))
}

// add adds a report to the looks at its trial's curve and to what the pruner knows.
func (r *rule) add(trial int, step int64, cost float64) pruner.Verdict {
	r.addLook(trial, step, cost)
	return r.pruner.Report(trial, step, cost)
}

// addLook adds a report to the looks at its trial's curve, if one is due.
func (r *rule) addLook(trial int, step int64, cost float64) {
	if r.looks == nil {
		return
	}
	l := r.looks[trial]
	if l == nil {
		l = &looked{least: math.Inf(1)}
		r.looks[trial] = l
	}
	if l.ended {
		return
	}
	if study.Finite(cost) {
		l.least = min(l.least, cost)
	}
	l.looks = optimizer.Looked(l.looks, step, l.least)
}

// curves returns the looks at all curves, by number, and the step at which trials end. There are none, and it is 0, if completed trials
// did not end with what they reported.
func (r *rule) curves() ([]optimizer.Curve, int64) {
	if r.looks == nil || !r.tells() {
		return nil, 0
	}
	list := make([]optimizer.Curve, 0, len(r.looks))
	for _, number := range slices.Sorted(maps.Keys(r.looks)) {
		if looks := r.looks[number].looks; len(looks) > 0 {
			list = append(list, optimizer.Curve{Trial: number, Looks: looks})
		}
	}
	return list, r.pruner.Length()
}

// tells reports whether nothing says that what trials report is not what they end with.
func (r *rule) tells() bool {
	completed, _, same := r.pruner.Ends(0)
	return same || len(completed) == 0
}

// ended reports whether what a trial has reported goes as far as a trial that runs to its end. It is not
// known of a metric that is neither an objective's nor a limit's: results say no steps of those.
func (r *rule) ended(reached *messaging.Reached) bool {
	if r.pruner == nil {
		return false
	}
	step, ok := reached.StepOf(r.metric)
	last := r.pruner.LastStep()
	return ok && last > 0 && step >= last
}

// recount tells the rule a curve that was read from the ledger. What the rule says then
// is no decision: decisions are in the trials' records.
func (r *rule) recount(trial int, c *recent) {
	if r.pruner == nil || c == nil {
		return
	}
	for _, series := range c.Series() {
		if series.Metric != r.metric {
			continue
		}
		for _, p := range series.Points {
			r.add(trial, p.Step, r.direction.Cost(p.Value))
		}
	}
}

// end tells the rule how a trial has ended. One that completed outside of a limit is not one
// that others are compared with. The trial's record gets the looks at its curve, unless it has them.
func (r *rule) end(spec *study.Spec, t *record.Trial) {
	if r.pruner == nil {
		return
	}
	if r.looks != nil {
		l := r.looks[t.Number]
		if l == nil || t.Looks != nil {
			l = &looked{looks: t.Looks}
			r.looks[t.Number] = l
		}
		l.ended, t.Looks = true, l.looks
	}
	cost, completed := math.NaN(), t.State == study.TrialCompleted && spec.Within(t.Values, t.Metrics)
	if v, ok := t.Metrics[r.metric]; completed && r.objective >= 0 {
		cost = r.direction.Cost(t.Values[r.objective])
	} else if completed && ok {
		cost = r.direction.Cost(v)
	} else if completed && len(t.Values) == 1 { // the objective says which trials are best
		cost = spec.FirstObjective().Direction.Cost(t.Values.First())
	}
	r.pruner.End(t.Number, completed, cost)
}
