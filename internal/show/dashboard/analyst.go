package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// fitTimeout bounds one analysis.
	fitTimeout = time.Minute
	// maxWaiting bounds the jobs that wait, and maxAnswers those whose answers are kept.
	maxWaiting = 8
	maxAnswers = 96
	// maxFitted bounds the completed trials of an analysis, since its cost grows with the
	// third power of their number.
	maxFitted = 300
	// endEvery is the least time between two forecasts of a study's end.
	endEvery = 30 * time.Second
	// again is the share by which a study's trials must have grown for another analysis.
	again = 0.1
)

// analyst fits models to studies whose pages ask for it: one at a time, in the background,
// and again only when a study has grown. Nothing waits for it.
type analyst struct {
	waiting chan job

	mu      sync.Mutex
	answers map[string]finding // by the key of the job
	asked   map[string]bool    // by the key of the job
	made    int
}

// finding is what a job has found: an insight, a motive or an end. version grows with each finding.
type finding struct {
	version int
	found   any
}

// job is a model to fit. Its key names it among those that wait.
type job interface {
	key() string
	// do fits the model and returns what it tells.
	do(ctx context.Context) any
}

// ask puts a job into the queue unless it is full, as many others wait; a later request may
// have more luck. The analyst MUST be locked.
func (a *analyst) ask(j job) {
	select {
	case a.waiting <- j:
		a.asked[j.key()] = true
	default:
	}
}

// analysis is a study to analyse.
type analysis struct {
	id     string // of the study and, if a page chooses one, the objective
	study  *study.Study
	trials []*figure.Trial
	// curves has what the trials reported, and best is the best trial; 0 for none.
	curves *curves
	best   int
	// origin is the point through which the planes of two parameters go, and name says
	// which one it is; nil if no trial has completed.
	origin study.Point
	name   string
}

// insight is what the models tell of a study. It is never changed.
type insight struct {
	took time.Duration
	// completed is how many trials had completed, fitted how many of them the model was
	// fitted to.
	completed, fitted int
	model             *figure.Model
	problem           string
	// judged is what a model of curves says, which was told those of read trials, of so many.
	judged   *diagnosis.Judged
	read, of int
}

// version changes with each insight of a study.
func (a *analyst) version(id string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answers[id].version
}

// of returns the last insight of a study, nil if there is none yet, and whether another is
// being made. It asks for one if the study has grown.
func (a *analyst) of(q *request) (last *insight, coming bool) {
	completed := 0
	for _, r := range q.rows.rows {
		if r.Completed() {
			completed++
		}
	}
	id := q.modelKey()
	a.mu.Lock()
	defer a.mu.Unlock()
	last, _ = a.answers[id].found.(*insight)
	if a.asked[id] {
		return last, true
	}
	grown := 1 + int(again*float64(completed))
	if last != nil && q.study.Status.State.Terminal() {
		grown = 1
	}
	if !q.rows.complete || last != nil && completed < last.completed+grown {
		return last, false
	}
	next := &analysis{id: id, study: q.definition, trials: q.rows.rows, curves: q.follow.curves, best: q.study.Status.Best}
	switch {
	case q.study.Recommended != nil:
		next.origin, next.name = q.study.Recommended.Point, "the recommended trial"
	case q.study.Best != nil:
		next.origin, next.name = q.study.Best.Point, "the best trial"
	default:
		if front, knee := q.Front(); len(front) > 0 {
			at := cmp.Or(knee, front[0])
			next.origin, next.name = study.Point(at.View(q.Axes).Parameters), fmt.Sprintf("trial %d of the front", at.Number)
		}
	}
	a.ask(next)
	return last, true
}

// run makes one insight or motive after another until ctx ends.
func (a *analyst) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-a.waiting:
			found := next.do(ctx)
			a.mu.Lock()
			a.made++
			a.answers[next.key()] = finding{a.made, found}
			if len(a.answers) > maxAnswers {
				delete(a.answers, slices.MinFunc(slices.Collect(maps.Keys(a.answers)), func(x, y string) int {
					return cmp.Compare(a.answers[x].version, a.answers[y].version)
				}))
			}
			delete(a.asked, next.key())
			a.mu.Unlock()
		}
	}
}

// problemOf says why a model could not be fitted; "" if it was.
func problemOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("fitting the model took longer than %v", fitTimeout)
	}
	return strings.TrimPrefix(err.Error(), diagnosis.ErrNoChoice.Error()+": ")
}

func (n *analysis) key() string { return n.id }

func (n *analysis) do(ctx context.Context) any {
	ctx, cancel := context.WithTimeout(ctx, fitTimeout)
	defer cancel()
	i := &insight{}
	began := time.Now()
	i.problem = problemOf(i.fit(ctx, n))
	i.took = time.Since(began)
	i.judge(ctx, n)
	return i
}

func (i *insight) fit(ctx context.Context, n *analysis) error {
	var used []*figure.Trial
	done := figure.Ended(n.trials)
	for _, t := range done {
		if t.Completed() {
			i.completed++
		}
	}
	every := (i.completed + maxFitted - 1) / maxFitted
	seen := 0
	for _, t := range done {
		if t.Completed() {
			if seen++; every > 1 && seen%every != 0 {
				continue
			}
			i.fitted++
		} else if every > 1 {
			continue
		}
		used = append(used, t)
	}
	problem, took, err := figure.Problem(n.study, used)
	if err == nil {
		i.model, err = figure.Fit(ctx, n.study, problem, took, n.origin, n.name)
	}
	return err
}

// judge asks a model of curves about the trials of a study that stops some early. Without an answer, the page says nothing of it.
func (i *insight) judge(ctx context.Context, n *analysis) {
	if s := (&figure.Study{Spec: &n.study.Spec, All: n.trials}); !s.Stops() {
		return
	}
	var ended []int
	best := -1
	for at, t := range n.trials {
		if t.Ended != 0 {
			ended = append(ended, at)
			if t.Number == n.best {
				best = at
			}
		}
	}
	reported := map[int][]view.Curve{}
	sample := figure.Sample(ended, best)
	for _, at := range sample {
		curves, err := n.curves.of(ctx, n.trials[at])
		if err != nil {
			return
		}
		reported[n.trials[at].Number] = curves
	}
	i.read, i.of = len(sample), len(ended)
	i.judged, _ = diagnosis.Judge(ctx, n.study, figure.WithCurves(figure.AxesOf(n.study), n.trials, reported)) // nil with an error
}

// end is when a study is expected to end; the zero time if that is not known. now is when that was asked.
type end struct{ now, at time.Time }

// ending is a study that runs, whose end is to be foreseen.
type ending struct {
	id     string
	study  *study.Study
	trials []*figure.Trial
	slots  int
	now    time.Time
}

func endKey(id string) string { return id + "/end" }

func (n *ending) key() string { return endKey(n.id) }

func (n *ending) do(ctx context.Context) any {
	ctx, cancel := context.WithTimeout(ctx, fitTimeout)
	defer cancel()
	return &end{n.now, figure.Ends(ctx, n.study, n.trials, n.slots, n.now)}
}

// left estimates how long a study that runs still takes; ok is false if that is not known. If the last forecast is old, it asks for
// another.
func (a *analyst) left(q *request, elapsed time.Duration) (left time.Duration, ok bool) {
	budget, counts := q.Spec.Budget, q.study.Status.Counts
	c := diagnosis.Course{
		Ended: counts.Ended(), MaxTrials: budget.MaxTrials, MaxDuration: time.Duration(budget.MaxDuration), Elapsed: elapsed, At: q.now,
		Cost: view.OfCost(q.Spec, &q.study.Status),
	}
	id := q.study.Spec.ID
	a.mu.Lock()
	defer a.mu.Unlock()
	last, known := a.answers[endKey(id)].found.(*end)
	if known {
		c.Ends = last.at
	}
	if !a.asked[endKey(id)] && q.rows.complete && c.Foreseeable() && (!known || q.now.Sub(last.now) >= endEvery) {
		a.ask(&ending{id, &q.study.Spec.Definition, q.rows.rows, counts.Running + counts.Queued, q.now})
	}
	return c.Left(q.now)
}
