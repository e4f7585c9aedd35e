package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/judge"
	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
	"github.com/fantasia-hpo/fantasia/study"
)

// Judged is what the model of curves, which the rule model of early stopping asks, says of a study's trials.
type Judged struct {
	// Checked is how many completed trials the model had to predict when they had run a third of their steps, by
	// what was known then, and Inside how many of them ended in its band of 90%.
	Checked int `json:"checked"`
	Inside  int `json:"inside"`
	// Best is the best completed trial. Margin is by how many standard deviations it was at most expected to end worse
	// than a new trial is likely to, at Step: the rule model stops a trial of more than Patience. Margin is nil if the
	// trial has no curve to be judged by.
	Best     int      `json:"best"`
	Step     int64    `json:"step"`
	Margin   *float64 `json:"margin"`
	Patience float64  `json:"patience"`
	// Order is the rank correlation of the completed trials' best reports and their results: the rule stops no trial while it is less
	// than pruner.LeastOrder. It is nil with fewer than pruner.FewestEnds of them.
	Order *float64 `json:"order"`
	// Unfinished are the trials that were stopped early and, by all that is known now, are expected to end better than
	// any trial has, by more than a standard deviation; the most promising one first.
	Unfinished []Unfinished `json:"unfinished"`
}

// Unfinished is a trial that was stopped early at a step, and is expected to end with Value; Low and High are the
// bounds of that with a probability of 90%. Reached is the best value that a completed trial has reported.
type Unfinished struct {
	Trial   int     `json:"trial"`
	Step    int64   `json:"step"`
	Value   float64 `json:"value"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Reached float64 `json:"reached"`
}

const (
	// leastJudged is how many completed trials with curves are needed, and mostChecked bounds the predictions that are
	// checked: each takes up to a tenth of a second.
	leastJudged, mostChecked = 3, 24
	// checkedAt is the part of its steps after which a trial is predicted.
	checkedAt = 1. / 3
)

// Judge asks the model of curves about a study's trials, with the curves in their measurements. It takes each trial's
// reports to be evenly spaced between its start and its end, as Replays does. It returns nil if fewer than three trials
// with a curve have completed, and for several objectives and studies with a fidelity, which no model judges.
func Judge(ctx context.Context, s *study.Study, trials view.Trials) (*Judged, error) {
	j, err := newJudging(s, trials)
	if err != nil || j == nil {
		return nil, err
	}
	result := &Judged{Best: j.best.trial, Patience: judge.Patience, Order: j.order()}
	if err := j.check(ctx, result); err != nil {
		return nil, err
	}
	if err := j.nearest(ctx, result); err != nil {
		return nil, err
	}
	return result, j.unfinished(ctx, result, trials)
}

// Promising returns what Judge finds unfinished, without the rest that Judge finds.
func Promising(ctx context.Context, s *study.Study, trials view.Trials) ([]Unfinished, error) {
	j, err := newJudging(s, trials)
	if err != nil || j == nil {
		return nil, err
	}
	result := &Judged{}
	err = j.unfinished(ctx, result, trials)
	return result.Unfinished, err
}

// judging has the curves of the trials that have ended, by number, and where they are.
type judging struct {
	problem   *optimizer.Problem
	at        map[int]optimizer.Observation
	tracks    []track
	best      *track // of the completed ones
	last      int64
	direction study.Direction // of the metric
}

func newJudging(s *study.Study, trials view.Trials) (*judging, error) {
	all, completed := tracks(s, trials)
	if completed < leastJudged || len(s.Spec.Several) > 0 {
		return nil, nil
	}
	problem, _, err := Problem(s, trials)
	if err != nil {
		return nil, err
	}
	if _, leveled := problem.Space.Fidelity(); leveled {
		return nil, nil
	}
	j := &judging{problem: problem, at: map[int]optimizer.Observation{}, direction: s.Spec.FirstObjective().Direction}
	for _, o := range problem.Observations {
		j.at[o.Trial] = o
	}
	for _, t := range all {
		if _, inside := j.at[t.trial]; inside {
			j.tracks = append(j.tracks, t)
		}
	}
	slices.SortFunc(j.tracks, func(a, b track) int { return cmp.Compare(a.trial, b.trial) })
	var longest int64
	for i := range j.tracks {
		t := &j.tracks[i]
		if t.value == nil {
			continue
		}
		longest = max(longest, t.curve.Steps[len(t.curve.Steps)-1])
		if j.best == nil || s.Spec.FirstObjective().Direction.Better(*t.value, *j.best.value) {
			j.best = t
		}
	}
	if j.last = longest; s.Spec.EarlyStopping != nil {
		p, err := pruner.NewFor(*s.Spec.EarlyStopping, j.direction)
		if err != nil {
			return nil, fmt.Errorf("early stopping of study %q: %w", s.Metadata.Name, err)
		}
		j.last = cmp.Or(p.Length(), longest)
	}
	if j.best == nil || j.last < 2 {
		return nil, nil
	}
	return j, nil
}

// when returns when a report was made, by its index.
func (t *track) when(report int) time.Time {
	n := len(t.curve.Steps)
	return t.started.Add(time.Duration(float64(t.ended.Sub(t.started)) * float64(report+1) / float64(n)))
}

// reports returns the trial's first n reports.
func (j *judging) reports(t *track, n int) []curves.Report {
	list := make([]curves.Report, n)
	for i := range list {
		list[i] = curves.Report{Step: t.curve.Steps[i], Cost: j.direction.Cost(t.curve.Values[i])}
	}
	return list
}

// asked returns the question of a trial when it had just made a report, by what the others had reported then.
func (j *judging) asked(trial *track, report int, memory judge.Memory) *judge.Question {
	p := *j.problem
	p.Observations, p.Pending = nil, nil
	q := &judge.Question{Trial: trial.trial, Problem: &p, Last: j.last, Direction: j.direction, Memory: memory}
	now := trial.when(report)
	for i := range j.tracks {
		t := &j.tracks[i]
		n, o := 0, j.at[t.trial]
		for n < len(t.curve.Steps) && !t.when(n).After(now) {
			n++
		}
		switch {
		case t.trial == trial.trial:
			n = report + 1
			p.Pending = append(p.Pending, optimizer.Pending{Trial: t.trial, Point: o.At()})
		case t.started.After(now):
			continue
		case t.ended.After(now):
			p.Pending = append(p.Pending, optimizer.Pending{Trial: t.trial, Point: o.At()})
		default:
			p.Observations = append(p.Observations, o)
		}
		if n > 0 {
			q.Curves = append(q.Curves, pruner.Curve{Trial: t.trial, Reports: j.reports(t, n)})
		}
	}
	return q
}

// end returns where the question's trial is expected to end; false if the model knows too little.
func end(ctx context.Context, q *judge.Question, memory *judge.Memory) (judge.End, bool, error) {
	finite := 0
	for _, c := range q.Curves {
		for _, r := range c.Reports {
			if study.Finite(r.Cost) {
				finite++
			}
		}
	}
	if finite < pruner.FewestReports {
		return judge.End{}, false, nil
	}
	ends, now, err := judge.Ends(ctx, q)
	if err != nil {
		return judge.End{}, false, err
	}
	*memory = now
	i := slices.IndexFunc(ends, func(e judge.End) bool { return e.Trial == q.Trial })
	if i < 0 {
		return judge.End{}, false, nil
	}
	return ends[i], true, nil
}

// check predicts completed trials, an even share of them, and counts those that ended in the band.
func (j *judging) check(ctx context.Context, result *Judged) error {
	var completed []*track
	for i := range j.tracks {
		if t := &j.tracks[i]; t.value != nil && t.curve.Steps[len(t.curve.Steps)-1] >= j.last {
			completed = append(completed, t)
		}
	}
	slices.SortStableFunc(completed, func(a, b *track) int { return a.started.Compare(b.started) })
	memory := judge.Memory{}
	for k, n := 0, min(len(completed), mostChecked); k < n; k++ {
		t := completed[(k+1)*len(completed)/n-1]
		report := slices.IndexFunc(t.curve.Steps, func(step int64) bool { return float64(step) >= checkedAt*float64(j.last) })
		e, known, err := end(ctx, j.asked(t, report, memory), &memory)
		if err != nil {
			return err
		}
		if !known || report == len(t.curve.Steps)-1 {
			continue
		}
		best := curves.Least(j.reports(t, len(t.curve.Steps)))
		if result.Checked++; e.Low <= best && best <= e.High {
			result.Inside++
		}
	}
	return nil
}

// nearest finds when the best trial was nearest to being stopped.
func (j *judging) nearest(ctx context.Context, result *Judged) error {
	memory, next := judge.Memory{}, int64(0)
	grid := curves.Grid(j.last)
	for i, step := range j.best.curve.Steps {
		if step < next || step < grid[0] || step >= j.last {
			continue
		}
		e, known, err := end(ctx, j.asked(j.best, i, memory), &memory)
		if err != nil {
			return err
		}
		if known && study.Finite(e.Margin) && (result.Margin == nil || e.Margin > *result.Margin) {
			result.Step, result.Margin = step, &e.Margin
		}
		if at := slices.IndexFunc(grid, func(g int64) bool { return g > step }); at >= 0 {
			next = grid[at]
		}
	}
	return nil
}

// unfinished finds the stopped trials that are expected to end better than any has, by all that is known.
func (j *judging) unfinished(ctx context.Context, result *Judged, trials view.Trials) error {
	stopped, continued := map[int]*view.Stopped{}, map[int]bool{}
	for _, t := range view.Each(trials) {
		if t.State == study.TrialPruned && t.Stopped != nil {
			stopped[t.Trial] = t.Stopped
		}
		if t.Predecessor > 0 && t.State != study.TrialCancelled && t.State != study.TrialFailed {
			continued[t.Predecessor] = true
		}
	}
	q := &judge.Question{Trial: j.best.trial, Problem: j.problem, Last: j.last, Direction: j.direction}
	reached := math.Inf(1)
	for i := range j.tracks {
		t := &j.tracks[i]
		reports := j.reports(t, len(t.curve.Steps))
		q.Curves = append(q.Curves, pruner.Curve{Trial: t.trial, Reports: reports})
		if t.value != nil {
			reached = min(reached, curves.Least(reports))
		}
	}
	ends, _, err := judge.Ends(ctx, q)
	if err != nil {
		return err
	}
	slices.SortStableFunc(ends, func(a, b judge.End) int { return cmp.Compare(a.Cost, b.Cost) })
	for _, e := range ends {
		if s := stopped[e.Trial]; s != nil && !continued[e.Trial] && e.Unlucky < reached {
			value := j.direction.Cost
			result.Unfinished = append(result.Unfinished, Unfinished{
				Trial: e.Trial, Step: s.Step, Value: value(e.Cost), Low: min(value(e.Low), value(e.High)),
				High: max(value(e.Low), value(e.High)), Reached: value(reached),
			})
		}
	}
	return nil
}

// order returns Judged.Order.
func (j *judging) order() *float64 {
	var best, results []float64
	for i := range j.tracks {
		t := &j.tracks[i]
		if t.value == nil || !study.Finite(*t.value) {
			continue
		}
		if least := curves.Least(j.reports(t, len(t.curve.Steps))); study.Finite(least) {
			best, results = append(best, least), append(results, j.direction.Cost(*t.value))
		}
	}
	if len(best) < pruner.FewestEnds {
		return nil
	}
	return new(pruner.Order(best, results))
}

// Statement says one thing that was found, under a name of a few words.
type Statement struct{ Name, Text string }

// Statements says in words what was found in a study of a name: how good the model is, how near it came to stopping the best trial,
// and which trials it would finish. Those about unfinished trials come last, and each has the command that finishes it.
func (j *Judged) Statements(name string) (list []Statement) {
	if j == nil {
		return nil
	}
	if j.Checked > 0 {
		list = append(list, Statement{"calibration", fmt.Sprintf("%d of %d completed trials ended in the band of 90%% that was expected after a "+
			"third of their steps", j.Inside, j.Checked)})
	}
	if j.Margin != nil {
		list = append(list, Statement{"the best trial", fmt.Sprintf("trial %d, at step %d, was expected to end worse than a new one by at most "+
			"%.2g standard deviations; the rule stops above %g", j.Best, j.Step, *j.Margin, j.Patience)})
	}
	if j.Order != nil && *j.Order < pruner.LeastOrder {
		text := "have little to do with results"
		if *j.Order < -pruner.LeastOrder {
			text = "improve where results get worse, so check which metric is reported, and its sign"
		}
		list = append(list, Statement{"reports", fmt.Sprintf("reports %s (rank correlation %.2f); the rule stops no trial below %g", text,
			*j.Order, pruner.LeastOrder)})
	}
	for _, u := range j.Unfinished {
		list = append(list, Statement{"unfinished", fmt.Sprintf("trial %d was stopped at step %d and is expected to end at %s (%s to %s), "+
			"better than %s, the best so far: %s", u.Trial, u.Step, figure(u.Value), figure(u.Low), figure(u.High), figure(u.Reached),
			u.Command(name))})
	}
	return list
}

// Command is the command that runs the trial of a study to its end.
func (u *Unfinished) Command(name string) string {
	return fmt.Sprintf("fantasia trial continue %s %d", name, u.Trial)
}
