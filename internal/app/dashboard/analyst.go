package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/diagnosis"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// fitTimeout bounds one analysis.
	fitTimeout = time.Minute
	// maxWaiting bounds the studies that wait for an analysis, and maxInsights those whose
	// analysis is kept.
	maxWaiting  = 8
	maxInsights = 32
	// maxFitted bounds the completed trials of an analysis, since its cost grows with the
	// third power of their number.
	maxFitted = 300
	// again is the share by which a study's trials must have grown for another analysis.
	again = 0.1
)

// analyst fits models to studies whose pages ask for it: one at a time, in the background,
// and again only when a study has grown. Nothing waits for it.
type analyst struct {
	now     func() time.Time
	waiting chan job

	mu      sync.Mutex
	byStudy map[string]*insight // by id
	motives map[string]*motive  // by the key of their jobs
	asked   map[string]bool     // by the key of the job
	made    int
}

// job is a model to fit. Its key names it among those that wait.
type job interface {
	key() string
	// do fits the model and returns how to keep what it tells. keep is called with the
	// analyst locked.
	do(ctx context.Context, a *analyst) (keep func())
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
	id     string
	study  *study.Study
	trials []*row
	// origin is the point through which the planes of two parameters go, and name says
	// which one it is; nil if no trial has completed.
	origin study.Point
	name   string
}

// insight is what the models tell of a study. It is never changed.
type insight struct {
	version int
	at      time.Time
	took    time.Duration
	// completed is how many trials had completed, fitted how many of them the models were
	// fitted to.
	completed, fitted int
	report            *diagnosis.Report
	problem           string
	// along has what the model expects along each parameter, by its name.
	along map[string]dependence
	// planes are those of the most important parameters, through the point called origin.
	planes  []*diagnosis.Plane
	origin  string
	leftOut []diagnosis.LeftOut
}

// dependence is what a model expects along a parameter.
type dependence struct {
	at       []float64
	expected []diagnosis.Expected
}

func newAnalyst(now func() time.Time) *analyst {
	return &analyst{now: now, waiting: make(chan job, maxWaiting), byStudy: map[string]*insight{}, motives: map[string]*motive{}, asked: map[string]bool{}}
}

// version changes with each insight of a study.
func (a *analyst) version(id string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.byStudy[id]; i != nil {
		return i.version
	}
	return 0
}

// of returns the last insight of a study, nil if there is none yet, and whether another is
// being made. It asks for one if the study has grown.
func (a *analyst) of(q *request) (last *insight, coming bool) {
	completed := 0
	for _, r := range q.rows.rows {
		if r.completed() {
			completed++
		}
	}
	id := q.study.Spec.ID
	a.mu.Lock()
	defer a.mu.Unlock()
	last = a.byStudy[id]
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
	next := &analysis{id: id, study: &q.study.Spec.Definition, trials: q.rows.rows}
	switch {
	case q.study.Recommended != nil:
		next.origin, next.name = q.study.Recommended.Point, "the recommended trial"
	case q.study.Best != nil:
		next.origin, next.name = q.study.Best.Point, "the best trial"
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
			keep := next.do(ctx, a)
			a.mu.Lock()
			keep()
			delete(a.asked, next.key())
			a.mu.Unlock()
		}
	}
}

func (n *analysis) key() string { return n.id }

func (n *analysis) do(ctx context.Context, a *analyst) (keep func()) {
	i := a.analyse(ctx, n)
	return func() {
		a.made++
		i.version = a.made
		a.byStudy[n.id] = i
		if len(a.byStudy) <= maxInsights {
			return
		}
		oldest := n.id
		for id, other := range a.byStudy {
			if other.version < a.byStudy[oldest].version {
				oldest = id
			}
		}
		delete(a.byStudy, oldest)
	}
}

// analyse fits the models.
func (a *analyst) analyse(ctx context.Context, n *analysis) *insight {
	ctx, cancel := context.WithTimeout(ctx, fitTimeout)
	defer cancel()
	i := &insight{at: a.now()}
	began := time.Now()
	err := i.fit(ctx, n)
	i.took = time.Since(began)
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded):
		i.problem = fmt.Sprintf("Fitting the model took longer than %v.", fitTimeout)
	default:
		i.problem = err.Error()
	}
	return i
}

func (i *insight) fit(ctx context.Context, n *analysis) error {
	var used []view.Trial
	done := ended(n.trials)
	for _, r := range done {
		if r.completed() {
			i.completed++
		}
	}
	every := (i.completed + maxFitted - 1) / maxFitted
	seen := 0
	for k, r := range done {
		if r.completed() {
			if seen++; every > 1 && seen%every != 0 {
				continue
			}
			i.fitted++
		} else if every > 1 {
			continue
		}
		used = append(used, viewOf(n.study, r, k))
	}
	problem, err := diagnosis.Problem(n.study, used)
	if err != nil {
		return err
	}
	report, model, err := diagnosis.Examine(ctx, n.study, problem)
	if err != nil {
		return err
	}
	i.look(ctx, n, report, model)
	if err := ctx.Err(); err != nil {
		return err
	}
	i.report = report
	return nil
}

// look asks the model for all that the pages show of it, so that they never wait for it. It
// stops when ctx ends.
func (i *insight) look(ctx context.Context, n *analysis, report *diagnosis.Report, model *diagnosis.Model) {
	axes := axesOf(n.study)
	i.along = map[string]dependence{}
	var names []string
	for _, k := range ranked(axes, report) {
		names = append(names, axes[k].Name)
	}
	for _, name := range names[:min(len(names), maxSlices)] {
		if ctx.Err() != nil {
			return
		}
		if at, expected := model.Along(name); len(at) > 0 {
			i.along[name] = dependence{at, expected}
		}
	}
	if n.origin != nil {
		i.planes, i.origin = model.Planes(ctx, names, n.origin, maxPlanes), n.name
	}
	i.leftOut = model.LeftOut()
}

// ranked returns the places of the axes, the most important parameter first where a report
// tells that.
func ranked(a axes, report *diagnosis.Report) []int {
	rank := map[string]int{}
	if report != nil {
		for i, p := range report.Importance {
			rank[p.Parameter] = i - len(report.Importance)
		}
	}
	order := make([]int, len(a))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(rank[a[x].Name], rank[a[y].Name]) })
	return order
}

// viewOf returns a row as an analysis takes it. place is its place among the ended trials.
func viewOf(s *study.Study, r *row, place int) view.Trial {
	t := view.Trial{Trial: r.number, State: r.state, Parameters: view.Parameters{}, Times: view.Times{Folded: time.Unix(int64(place), 0)}}
	if r.completed() {
		value := r.value
		t.Value = &value
	}
	if r.state == study.TrialPruned && !math.IsNaN(r.value) {
		value := r.value
		t.Stopped = &view.Stopped{Value: &value}
	}
	k := 0
	for _, p := range s.Spec.Parameters {
		if p.Type == study.Fixed {
			continue // filled in where it is active
		}
		if v := r.params[k]; !math.IsNaN(v) {
			t.Parameters[p.Name] = v
			if !numeric(&p) {
				t.Parameters[p.Name] = p.At(int(v))
			}
		}
		k++
	}
	return t
}
