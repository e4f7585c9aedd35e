package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/study"
)

// MinCurves is how many completed trials with a curve of at least two points a replay
// needs.
const MinCurves = 8

// Replay is what a rule for early stopping would have done to the trials of a study.
type Replay struct {
	// Rule is the rule's name. Its settings are the defaults; those of the study's own
	// rule are the study's.
	Rule string `json:"rule"`
	// Trials is how many trials have a curve, and Stopped how many of them the rule
	// stops.
	Trials  int `json:"trials"`
	Stopped int `json:"stopped"`
	// Steps is the number of steps of all curves, and Saved how many of them come
	// after their trial was stopped.
	Steps int64 `json:"steps"`
	Saved int64 `json:"saved"`
	// Best is the trial with the best value. BestStoppedAt is the step at which the rule
	// stops it; nil if it goes on.
	Best          int    `json:"best"`
	BestStoppedAt *int64 `json:"bestStoppedAt"`
	// Kept is the best trial that the rule lets run to its end; 0 if there is none.
	Kept      int      `json:"kept"`
	BestValue float64  `json:"bestValue"`
	KeptValue *float64 `json:"keptValue"`
}

// StoppingMetric returns the metric whose curves a rule compares.
func StoppingMetric(s *study.Spec) string {
	if e := s.EarlyStopping; e != nil && e.Metric != "" {
		return e.Metric
	}
	return s.FirstObjective().Metric
}

// Replays tells the recorded curves of a study to the rules for early stopping, the
// study's own first. It takes each trial's reports to be evenly spaced between its start
// and its end. It returns nil if fewer than MinCurves trials have completed with a
// curve. The error is that of the study's own rule.
func Replays(s *study.Study, trials view.Trials) ([]Replay, error) {
	recorded, completed := tracks(s, trials)
	if completed < MinCurves {
		return nil, nil
	}
	var rules []study.EarlyStopping
	if own := s.Spec.EarlyStopping; own != nil && own.Name != pruner.Model { // whose decisions need more than curves
		rules = append(rules, *own)
	}
	for _, name := range []string{"asha", "median", "percentile", "patient"} {
		if len(rules) == 0 || rules[0].Name != name {
			rules = append(rules, study.EarlyStopping{Name: name})
		}
	}
	var replays []Replay
	for _, rule := range rules {
		p, err := pruner.NewFor(rule, s.Spec.FirstObjective().Direction)
		if err != nil {
			return nil, fmt.Errorf("early stopping of study %q: %w", s.Metadata.Name, err)
		}
		r := replay(p, s.Spec.FirstObjective().Direction, recorded)
		r.Rule = rule.Name
		replays = append(replays, r)
	}
	return replays, nil
}

// track is the recorded curve of a trial.
type track struct {
	trial          int
	started, ended time.Time
	curve          view.Curve
	value          *float64 // nil unless the trial completed
}

// tracks returns the trials with a curve of at least two points, and how many of them
// completed.
func tracks(s *study.Study, trials view.Trials) (all []track, completed int) {
	metric := StoppingMetric(&s.Spec)
	for _, t := range view.Each(trials) {
		i := slices.IndexFunc(t.Measurements, func(c view.Curve) bool { return c.Metric == metric })
		if i < 0 || len(t.Measurements[i].Steps) < 2 || t.Times.Ended.IsZero() {
			continue
		}
		k := track{trial: t.Trial, started: t.Times.Started, ended: t.Times.Ended, curve: t.Measurements[i]}
		if t.State != study.TrialPruned { // whose value is what it had reached
			k.value = t.Value
		}
		if all = append(all, k); k.value != nil {
			completed++
		}
	}
	return all, completed
}

// moment is a report of a trial, or its end.
type moment struct {
	at    time.Time
	track *track
	index int // of the report; their count for the end
}

func replay(p pruner.Pruner, direction study.Direction, recorded []track) Replay {
	var moments []moment
	r := Replay{Trials: len(recorded)}
	for i := range recorded {
		t := &recorded[i]
		n := len(t.curve.Steps)
		for k := range n {
			after := time.Duration(float64(t.ended.Sub(t.started)) * float64(k+1) / float64(n))
			moments = append(moments, moment{t.started.Add(after), t, k})
		}
		moments = append(moments, moment{t.ended, t, n})
		r.Steps += steps(&t.curve, 0)
	}
	// A rule sees the trials as they ran beside each other, and not one after another: what it knew when a
	// report came decides. Of one time, the number of the trial decides, so that a replay can be repeated.
	slices.SortFunc(moments, func(a, b moment) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.track.trial, b.track.trial), cmp.Compare(a.index, b.index))
	})
	stoppedAt := map[int]int64{}
	for _, m := range moments {
		t := m.track
		if _, stopped := stoppedAt[t.trial]; stopped {
			continue
		}
		switch {
		case m.index < len(t.curve.Steps):
			step := t.curve.Steps[m.index]
			if p.Report(t.trial, step, direction.Cost(t.curve.Values[m.index])).Stop && m.index < len(t.curve.Steps)-1 {
				stoppedAt[t.trial] = step
				r.Stopped++
				r.Saved += steps(&t.curve, m.index+1)
				p.End(t.trial, false, 0)
			}
		case t.value != nil:
			p.End(t.trial, true, direction.Cost(*t.value))
		default:
			p.End(t.trial, false, 0)
		}
	}
	r.judge(direction, recorded, stoppedAt)
	return r
}

// steps returns how many steps a curve has from the report with an index on.
func steps(c *view.Curve, from int) int64 {
	last := c.Steps[len(c.Steps)-1]
	if from > 0 {
		return last - c.Steps[from-1]
	}
	return last - min(c.Steps[0], 1) + 1
}

// judge finds the best trial, and the best one that was not stopped.
func (r *Replay) judge(direction study.Direction, recorded []track, stoppedAt map[int]int64) {
	for _, t := range recorded {
		if t.value == nil {
			continue
		}
		if r.Best == 0 || direction.Better(*t.value, r.BestValue) {
			r.Best, r.BestValue = t.trial, *t.value
		}
		if _, stopped := stoppedAt[t.trial]; !stopped && (r.Kept == 0 || direction.Better(*t.value, *r.KeptValue)) {
			r.Kept, r.KeptValue = t.trial, t.value
		}
	}
	if step, stopped := stoppedAt[r.Best]; stopped {
		r.BestStoppedAt = &step
	}
}
