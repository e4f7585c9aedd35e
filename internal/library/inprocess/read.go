package inprocess

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// result returns what a record says.
func (s *Study) result(t *record.Trial) library.Result {
	r := library.Result{
		Number: t.Number, State: t.State, Source: string(t.Origin()), Started: t.Times.Started, Ended: t.Times.Ended, Point: t.Point,
		Cost: math.NaN(),
	}
	if cost, reported := t.Cost(); reported {
		r.Cost = cost
	}
	r.Measure(s.spec, t.Values, t.Metrics)
	if a := t.Last(); a != nil && a.Failure != nil {
		r.Failure = cmp.Or(a.Failure.Message, a.Failure.Reason)
	}
	if t.State == study.TrialPruned && t.Stopped != nil {
		r.Failure = t.Stopped.Reason
	}
	return r
}

// read is do for what the user asks for. After a failure, what is in memory can still be read.
func (s *Study) read(f func()) { _ = s.do(f) }

// Best implements library.Binding.
func (s *Study) Best() (r library.Result, err error) {
	s.read(func() {
		if t, ok := s.engine.Best(); ok {
			r = s.result(&t)
		} else {
			r, err = library.Result{Value: math.NaN()}, library.Nothing(s.spec)
		}
	})
	return r, err
}

// Trials implements library.Binding.
func (s *Study) Trials() iter.Seq2[library.Result, error] {
	return func(yield func(library.Result, error) bool) {
		for n := 1; ; n++ {
			var t record.Trial
			var ok bool
			s.read(func() { t, ok = s.engine.Trial(n) })
			if !ok || !yield(s.result(&t), nil) {
				return
			}
		}
	}
}

// Curve implements library.Binding.
func (s *Study) Curve(trial int, metric string) (list []library.Measurement, err error) {
	s.read(func() { list, err = s.measurements(trial, metric) })
	return list, err
}

// measurements is Curve with s.mu held.
func (s *Study) measurements(trial int, metric string) ([]library.Measurement, error) {
	if _, ok := s.engine.Trial(trial); !ok {
		return nil, fmt.Errorf("%w: there is no trial %d; the last one is %d", study.ErrInvalid, trial, s.engine.Status().Trials)
	}
	c, err := s.journal.Curve(trial)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", journal.ErrDamaged, err)
	}
	if c == nil {
		return nil, nil
	}
	var list []library.Measurement
	for _, series := range c.Series() {
		if series.Metric != metric {
			continue
		}
		for _, p := range series.Points {
			list = append(list, library.Measurement{Step: int(p.Step), Value: p.Value})
		}
	}
	return list, nil
}

// Front implements library.Binding.
func (s *Study) Front() ([]library.Optimal, error) {
	var all []record.Trial
	var spec record.Study
	s.read(func() { all, spec = s.latest().Trials, s.engine.Spec() })
	on, err := spec.Front(all)
	if err != nil {
		return nil, err
	}
	list := make([]library.Result, len(on))
	for i := range on {
		list[i] = s.result(&on[i])
	}
	return library.Front(s.spec, list)
}

// Recommended implements library.Binding.
func (s *Study) Recommended(ctx context.Context) ([]library.Optimal, error) {
	found, err := s.modelled(ctx)
	if err != nil {
		return nil, err
	}
	if found != nil {
		return s.expected(found)
	}
	if len(s.spec.Several) > 0 {
		return s.Front()
	}
	best, err := s.Best()
	return []library.Optimal{{Trial: best}}, err
}

// modelled returns what the optimiser's model recommends; nil if it has none.
func (s *Study) modelled(ctx context.Context) (*optimizer.Recommendation, error) {
	model, ok := s.optimizer.(optimizer.Recommender)
	if !ok {
		return nil, nil
	}
	var problem *optimizer.Problem
	var state []byte
	var position int64
	s.locked(func() {
		problem, state, position = s.engine.FinalProblem(), s.engine.Model().State, s.engine.Status().Position
	})
	found, err := drive.Recommend(ctx, model, problem, state)
	if found == nil || err != nil {
		return nil, err
	}
	s.read(func() {
		if s.stopped == nil { // so that other programs see it in the state
			s.step(engine.Recommended{At: time.Now(), Recommendation: record.Recommended(found, position)})
		}
	})
	return found, nil
}

// expected returns the trials of a recommendation.
func (s *Study) expected(found *optimizer.Recommendation) ([]library.Optimal, error) {
	list := found.Front
	if list == nil {
		list = []optimizer.Expected{{Trial: found.Trial, Means: []float64{found.Mean}, SDs: []float64{found.SD}}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []library.Optimal
	for _, e := range list {
		t, ok := s.engine.Trial(e.Trial)
		if !ok {
			return nil, fmt.Errorf("the optimiser recommends trial %d, which does not exist", e.Trial)
		}
		all = append(all, library.Optimal{Trial: s.result(&t), Knee: e.Knee, Expected: library.Expect(s.spec, e.Means, e.SDs)})
	}
	return all, nil
}
