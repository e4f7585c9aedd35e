package dashboard

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	waiting chan *analysis

	mu      sync.Mutex
	byStudy map[string]*insight // by id
	asked   map[string]bool
	made    int
}

// analysis is a study to analyse.
type analysis struct {
	id     string
	study  *study.Study
	trials []*row
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
}

func newAnalyst(now func() time.Time) *analyst {
	return &analyst{now: now, waiting: make(chan *analysis, maxWaiting), byStudy: map[string]*insight{}, asked: map[string]bool{}}
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
	select {
	case a.waiting <- &analysis{id: id, study: &q.study.Spec.Definition, trials: q.rows.rows}:
		a.asked[id] = true
		return last, true
	default: // many others wait; a later request may have more luck
		return last, true
	}
}

// run makes one insight after another until ctx ends.
func (a *analyst) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-a.waiting:
			i := a.analyse(ctx, next)
			a.mu.Lock()
			a.made++
			i.version = a.made
			a.byStudy[next.id] = i
			delete(a.asked, next.id)
			if len(a.byStudy) > maxInsights {
				oldest := next.id
				for id, other := range a.byStudy {
					if other.version < a.byStudy[oldest].version {
						oldest = id
					}
				}
				delete(a.byStudy, oldest)
			}
			a.mu.Unlock()
		}
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
	i.report, err = diagnosis.Of(ctx, n.study, problem)
	return err
}

// viewOf returns a row as an analysis takes it. place is its place among the ended trials.
func viewOf(s *study.Study, r *row, place int) view.Trial {
	t := view.Trial{Trial: r.number, State: r.state, Parameters: view.Parameters{}, Times: view.Times{Folded: time.Unix(int64(place), 0)}}
	if r.completed() {
		value := r.value
		t.Value = &value
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
