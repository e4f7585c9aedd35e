package engine

import (
	"maps"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// # What a trial has reached
//
// Attempts of a trial continue one another by their checkpoints, and the trial's value comes from the
// reports of all of them. A worker is told what the earlier attempts have reached. If its own attempt
// ends without an answer, its result says what the trial has reached by then. A lost attempt sends no
// result, so the leader takes that attempt's part from the curve.

// reachedBy returns what a trial has reached by its curve and by the ends of its attempts; nil for
// nothing.
func (l *pruning) reachedBy(t *trial) *messaging.Reached {
	old, c := t.rec.Reached, t.curve
	if c == nil || c.Empty() || old != nil && old.Attempt >= c.Attempt {
		return old
	}
	spec := &l.spec.Definition.Spec
	return join(spec.Objectives(), append(study.MetricNames(spec.Objectives()), spec.LimitMetrics()...), old, c, t.rec.Checkpoint != "")
}

// keepReached takes what an attempt without an answer says that its trial has reached. Metrics that
// do not count are left out, since the record has no room for them.
func (l *pruning) keepReached(t *trial, r *messaging.Result) {
	if r.Reached == nil {
		return
	}
	spec := &l.spec.Definition.Spec
	counts := append(study.MetricNames(spec.Objectives()), spec.LimitMetrics()...)
	t.rec.Reached = &messaging.Reached{
		Attempt: r.Attempt, Best: only(counts, r.Reached.Best), Step: r.Reached.Step,
		Last: only(counts, r.Reached.Last), Steps: only(counts, r.Reached.Steps),
	}
}

// only returns a copy with the entries of the names.
func only[V any](names []string, all map[string]V) map[string]V {
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(name string, _ V) bool { return !slices.Contains(names, name) })
	return kept
}

// join returns what the attempt of a curve has reached, together with what the attempts before it
// had, if it continues them: it has a checkpoint, or its steps go on where theirs have ended. Without
// either it began anew.
func join(objectives []study.Objective, metrics []string, old *messaging.Reached, c *recent, checkpoint bool) *messaging.Reached {
	points, continues := map[string][]curve.Point{}, checkpoint
	for _, s := range c.Series() {
		if !slices.Contains(metrics, s.Metric) {
			continue
		}
		points[s.Metric] = s.Points
		if last, known := old.StepOf(s.Metric); known && s.Points[0].Step > last {
			continues = true
		}
	}
	now := &messaging.Reached{Best: map[string]messaging.Number{}, Last: map[string]messaging.Number{}, Steps: map[string]int64{}}
	if old != nil && continues {
		maps.Copy(now.Best, old.Best)
		now.Step = old.Step
		maps.Copy(now.Last, old.Last)
		maps.Copy(now.Steps, old.Steps)
	}
	now.Attempt = c.Attempt
	if by := slices.IndexFunc(objectives, func(o study.Objective) bool { return o.Take == study.TakeBest }); by >= 0 {
		joinBest(&objectives[by], metrics, points, now)
	}
	for metric, p := range points {
		last := p[len(p)-1]
		now.Last[metric], now.Steps[metric] = messaging.Number(last.Value), max(last.Step, now.Steps[metric])
	}
	return now
}

// joinBest looks for the report that counts: the best one of the objective that takes its best. If the
// curve has a better one than the attempts before, that one counts from now on. A metric that is not in
// the report has its newest value by then, or else its first one after it, as in worker/report.
func joinBest(o *study.Objective, metrics []string, points map[string][]curve.Point, now *messaging.Reached) {
	was, had := now.Best[o.Metric]
	better := false
	var top curve.Point
	for _, p := range points[o.Metric] {
		if !had || math.IsNaN(float64(was)) || o.Direction.Better(p.Value, float64(was)) {
			was, had, better, top = messaging.Number(p.Value), true, true, p
		}
	}
	if better {
		now.Best, now.Step = map[string]messaging.Number{o.Metric: was}, top.Step
	}
	for _, metric := range metrics {
		value, known := now.Last[metric]
		for _, p := range points[metric] {
			if better && p.Step <= top.Step || !known {
				value, known = messaging.Number(p.Value), true
			}
		}
		if _, counts := now.Best[metric]; known && !counts {
			now.Best[metric] = value
		}
	}
}

// reachedAll returns the values that a trial has reached by a report that is in its curve; nil if
// an objective has not been reported or has diverged.
func (l *pruning) reachedAll(t *trial, m *messaging.Measurement) study.Values {
	if t.curve == nil || t.curve.Attempt != m.Attempt {
		return nil
	}
	objectives, reached := l.spec.Definition.Spec.Objectives(), l.reachedBy(t)
	best := slices.ContainsFunc(objectives, func(o study.Objective) bool { return o.Take == study.TakeBest })
	var values study.Values
	for _, o := range objectives {
		from := reached.Last
		if best {
			from = reached.Best
		}
		value, known := from[o.Metric]
		last, reported := m.Metrics[o.Metric]
		diverged := slices.Contains(m.Diverged, o.Metric) || reported && !study.Finite(last)
		if !known || !study.Finite(float64(value)) || diverged && !best {
			return nil
		}
		values = append(values, float64(value))
	}
	return values
}
