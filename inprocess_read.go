package fantasia

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// result returns what a record says.
func (s *inProcess) result(t *record.Trial) Result {
	r := Result{
		Number: t.Number, State: t.State, Value: math.NaN(), Source: string(t.Origin()),
		Started: t.Times.Started, Ended: t.Times.Ended, at: Point{s.space, t.Point},
	}
	switch {
	case t.State != study.TrialCompleted:
		r.metrics = s.aims.early(t.Metrics)
	case s.aims.several():
		r.metrics = s.aims.metrics(t.Values, t.Metrics)
	default:
		r.metrics, r.Value = s.aims.metrics(t.Values, t.Metrics), t.Values.First()
	}
	if a := t.Last(); a != nil && a.Failure != nil {
		r.Failure = cmp.Or(a.Failure.Message, a.Failure.Reason)
	}
	if t.State == study.TrialPruned && t.Stopped != nil {
		r.Failure = t.Stopped.Reason
	}
	return r
}

// look is do for what the user asks for. After a failure, what is in memory can still be read.
func (s *inProcess) look(read func()) { _ = s.do(read) }

// best implements leader.
func (s *inProcess) best() (r Result, err error) {
	s.look(func() {
		if t, ok := s.engine.Best(); ok {
			r = s.result(&t)
		} else {
			r, err = Result{Value: math.NaN()}, s.aims.nothing()
		}
	})
	return r, err
}

// trials implements leader.
func (s *inProcess) trials() iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for n := 1; ; n++ {
			var t record.Trial
			var ok bool
			s.look(func() { t, ok = s.engine.Trial(n) })
			if !ok || !yield(s.result(&t), nil) {
				return
			}
		}
	}
}

// curve implements leader.
func (s *inProcess) curve(trial int, metric string) (list []Measurement, err error) {
	s.look(func() { list, err = s.measurements(trial, metric) })
	return list, err
}

// measurements is curve with s.mu held.
func (s *inProcess) measurements(trial int, metric string) ([]Measurement, error) {
	if _, ok := s.engine.Trial(trial); !ok {
		return nil, fmt.Errorf("%w: there is no trial %d; the last one is %d", ErrInvalid, trial, s.engine.Status().Trials)
	}
	c, err := s.journal.Curve(trial)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if c == nil {
		return nil, nil
	}
	var list []Measurement
	for _, series := range c.Series() {
		if series.Metric != metric {
			continue
		}
		for _, p := range series.Points {
			list = append(list, Measurement{int(p.Step), p.Value})
		}
	}
	return list, nil
}

// front implements leader.
func (s *inProcess) front() ([]Optimal, error) {
	var all []record.Trial
	var spec record.Study
	s.look(func() { all, spec = s.latest().Trials, s.engine.Spec() })
	on, err := spec.Front(all)
	if err != nil {
		return nil, err
	}
	if len(on) == 0 {
		return nil, s.aims.nothing()
	}
	list := make([]Result, len(on))
	for i := range on {
		list[i] = s.result(&on[i])
	}
	return s.aims.front(list), nil
}

// recommended implements leader.
func (s *inProcess) recommended(ctx context.Context) ([]Optimal, error) {
	found, err := s.modelled(ctx)
	if err != nil {
		return nil, err
	}
	if found != nil {
		return s.expected(found)
	}
	if s.aims.several() {
		return s.front()
	}
	best, err := s.best()
	return []Optimal{{Trial: best}}, err
}

// modelled returns what the optimiser's model recommends; nil if it has none.
func (s *inProcess) modelled(ctx context.Context) (*optimizer.Recommendation, error) {
	model, ok := s.optimizer.(optimizer.Recommender)
	if !ok {
		return nil, nil
	}
	s.mu.Lock()
	problem, state, position := s.engine.FinalProblem(), s.engine.Model().State, s.engine.Status().Position
	s.mu.Unlock()
	found, err := drive.Recommend(ctx, model, problem, state)
	if found == nil || err != nil {
		return nil, err
	}
	s.look(func() {
		if s.stopped == nil { // so that other programs see it in the state
			s.step(engine.Recommended{At: time.Now(), Recommendation: record.Recommended(found, position)})
		}
	})
	return found, nil
}

// expected returns the trials of a recommendation.
func (s *inProcess) expected(found *optimizer.Recommendation) ([]Optimal, error) {
	list := found.Front
	if list == nil {
		list = []optimizer.Expected{{Trial: found.Trial, Means: []float64{found.Mean}, SDs: []float64{found.SD}}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Optimal
	for _, e := range list {
		t, ok := s.engine.Trial(e.Trial)
		if !ok {
			return nil, fmt.Errorf("the optimiser recommends trial %d, which does not exist", e.Trial)
		}
		all = append(all, Optimal{Trial: s.result(&t), Knee: e.Knee, expected: s.aims.expect(e.Means, e.SDs)})
	}
	return all, nil
}
