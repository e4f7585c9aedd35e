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
	if t.State == study.TrialCompleted {
		r.Value = t.Values.First()
	}
	if a := t.Last(); a != nil && a.Failure != nil {
		r.Failure = cmp.Or(a.Failure.Message, a.Failure.Reason)
	}
	if t.State == study.TrialPruned && t.Stopped != nil {
		r.Failure = t.Stopped.Reason
	}
	return r
}

// best implements leader.
func (s *inProcess) best() (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.engine.Best()
	if !ok {
		return Result{Value: math.NaN()}, ErrNothing
	}
	return s.result(&t), nil
}

// trials implements leader.
func (s *inProcess) trials() iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for n := 1; ; n++ {
			s.mu.Lock()
			t, ok := s.engine.Trial(n)
			s.mu.Unlock()
			if !ok || !yield(s.result(&t), nil) {
				return
			}
		}
	}
}

// curve implements leader.
func (s *inProcess) curve(trial int) ([]Measurement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
		for _, p := range series.Points {
			list = append(list, Measurement{int(p.Step), p.Value})
		}
	}
	return list, nil
}

// recommended implements leader.
func (s *inProcess) recommended(ctx context.Context) (Recommendation, error) {
	s.mu.Lock()
	best, ok := s.engine.Best()
	problem, state, position := s.engine.FinalProblem(), s.engine.Model().State, s.engine.Status().Position
	s.mu.Unlock()
	if !ok {
		return Recommendation{}, ErrNothing
	}
	r := s.result(&best)
	model, ok := s.optimizer.(optimizer.Recommender)
	if !ok {
		return Recommendation{Trial: r, Mean: r.Value}, nil
	}
	found, err := drive.Recommend(ctx, model, problem, state)
	if err != nil {
		return Recommendation{}, err
	}
	if found == nil {
		return Recommendation{Trial: r, Mean: r.Value}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == nil { // so that other programs see it in the state
		s.step(engine.Recommended{At: time.Now(), Recommendation: record.Recommendation{Trial: found.Trial, Mean: found.Mean, SD: found.SD, Position: position}})
	}
	t, ok := s.engine.Trial(found.Trial)
	if !ok {
		return Recommendation{}, fmt.Errorf("the optimiser recommends trial %d, which does not exist", found.Trial)
	}
	return Recommendation{Trial: s.result(&t), Mean: found.Mean, SD: found.SD}, nil
}
