package fantasia

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry/lean"
)

const (
	// recommendationWait is how long Recommended waits for a point that is based on all trials.
	recommendationWait = 10 * time.Second
	// recommendationEvery is how often it looks.
	recommendationEvery = 100 * time.Millisecond
)

// recommends reports whether an optimiser has a model. One that is not linked is taken to have one.
func recommends(a Algorithm) bool {
	o, err := lean.Entries().New(a.Name, a.Settings)
	if err != nil {
		return true
	}
	_, is := o.(optimizer.Recommender)
	return is
}

// get returns the study as it is now.
func (s *onServer) get(ctx context.Context) (*studyMessage, error) {
	var answer studyAnswer
	err := s.call(ctx, "GetStudy", map[string]any{"name": s.id}, &answer)
	return &answer.Study, err
}

// trial returns a trial.
func (s *onServer) trial(ctx context.Context, number int) (Result, error) {
	var answer trialAnswer
	if err := s.call(ctx, "GetTrial", map[string]any{"name": s.nameOf(number)}, &answer); err != nil {
		return Result{}, err
	}
	return s.result(&answer.Trial), nil
}

// best implements leader.
func (s *onServer) best() (Result, error) {
	m, err := s.get(s.life)
	if err == nil && m.Best == nil {
		err = ErrNothing
	}
	if err != nil {
		return Result{Value: math.NaN()}, err
	}
	return s.trial(s.life, m.Best.Trial)
}

// standing returns how the study is doing.
func (s *onServer) standing() (Progress, error) {
	m, err := s.get(s.life)
	if err != nil {
		return Progress{}, err
	}
	p := Progress{Trials: m.MaxTrials, Ended: m.Trials["completed"] + m.Trials["failed"] + m.Trials["infeasible"] + m.Trials["pruned"]}
	if m.Best != nil {
		p.Best, err = s.trial(s.life, m.Best.Trial)
	}
	return p, err
}

// trials implements leader.
func (s *onServer) trials() iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for token, first := "", true; first || token != ""; first = false {
			var answer trialsAnswer
			if err := s.call(s.life, "ListTrials", map[string]any{"parent": s.id, "pageSize": 1000, "pageToken": token}, &answer); err != nil {
				yield(Result{Value: math.NaN()}, err)
				return
			}
			for i := range answer.Trials {
				if !yield(s.result(&answer.Trials[i]), nil) {
					return
				}
			}
			token = answer.NextPageToken
		}
	}
}

// curve implements leader.
func (s *onServer) curve(trial int) (list []Measurement, err error) {
	for token, first := "", true; first || token != ""; first = false {
		var answer measurementsAnswer
		request := map[string]any{"parent": s.nameOf(trial), "metric": metric, "pageSize": 10_000, "pageToken": token}
		switch err := s.call(s.life, "ListMeasurements", request, &answer); {
		case refused(err, codeNotFound) || refused(err, codeInvalid):
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		case err != nil:
			return nil, err
		}
		for _, m := range answer.Measurements {
			list = append(list, Measurement{int(m.Step), float64(m.Value)})
		}
		token = answer.NextPageToken
	}
	return list, nil
}

// recommended implements leader. The server makes a recommendation from time to time, so this waits
// for one that is based on all trials that have ended.
func (s *onServer) recommended(ctx context.Context) (Recommendation, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(ErrClosed) })() //nolint:contextcheck // the study may end first
	ticks := time.NewTicker(recommendationEvery)
	defer ticks.Stop()
	for end := time.Now().Add(recommendationWait); ; {
		m, err := s.get(ctx)
		switch {
		case ctx.Err() != nil:
			return Recommendation{}, context.Cause(ctx)
		case err != nil:
			return Recommendation{}, err
		case m.Best == nil:
			return Recommendation{}, ErrNothing
		case !s.models || m.Recommended == nil && time.Now().After(end):
			best, err := s.trial(ctx, m.Best.Trial)
			return Recommendation{Trial: best, Mean: best.Value}, err
		case m.Recommended != nil && (m.Recommended.Current || time.Now().After(end)):
			t, err := s.trial(ctx, m.Recommended.Trial)
			return Recommendation{Trial: t, Mean: float64(m.Recommended.Mean), SD: float64(m.Recommended.SD)}, err
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}
