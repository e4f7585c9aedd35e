package fantasia

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

const (
	// recommendationWait is how long Recommended waits for a point that is based on all trials.
	recommendationWait = 10 * time.Second
	// recommendationEvery is how often it looks.
	recommendationEvery = 100 * time.Millisecond
)

// recommends reports whether an optimiser has a model. One that is not linked is taken to have one.
func recommends(o *Options) bool {
	made, err := o.optimizer()
	if err != nil {
		return true
	}
	_, is := made.(optimizer.Recommender)
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
		err = s.aims.nothing()
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
func (s *onServer) curve(trial int, metric string) (list []Measurement, err error) {
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

// front implements leader.
func (s *onServer) front() ([]Optimal, error) { return s.seen(s.life) }

// seen returns the front of the values that were measured.
func (s *onServer) seen(ctx context.Context) ([]Optimal, error) {
	var list []Result
	for token, first := "", true; first || token != ""; first = false {
		var answer trialsAnswer
		if err := s.call(ctx, "ListOptimalTrials", map[string]any{"parent": s.id, "pageSize": 1000, "pageToken": token}, &answer); err != nil {
			return nil, err
		}
		for i := range answer.Trials {
			list = append(list, s.result(&answer.Trials[i]))
		}
		token = answer.NextPageToken
	}
	if len(list) == 0 {
		return nil, s.aims.nothing()
	}
	return s.aims.front(list), nil
}

// recommended implements leader. The server makes a recommendation from time to time, so this waits
// for one that is based on all trials that have ended.
func (s *onServer) recommended(ctx context.Context) ([]Optimal, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(ErrClosed) })() //nolint:contextcheck // the study may end first
	ticks := time.NewTicker(recommendationEvery)
	defer ticks.Stop()
	for end := time.Now().Add(recommendationWait); ; {
		m, err := s.get(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		case m.Best == nil && m.Front.Size == 0:
			return nil, s.aims.nothing()
		case !s.models || m.Recommended == nil && time.Now().After(end):
			if s.aims.several() {
				return s.seen(ctx)
			}
			best, err := s.trial(ctx, m.Best.Trial)
			return []Optimal{{Trial: best}}, err
		case m.Recommended != nil && (m.Recommended.Current || time.Now().After(end)):
			return s.expected(ctx, m.Recommended)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

// expected returns the trials of a recommendation.
func (s *onServer) expected(ctx context.Context, m *pointedMessage) ([]Optimal, error) {
	list := m.Front
	if len(list) == 0 {
		list = []expectedMessage{{Trial: m.Trial, Means: []number{m.Mean}, SDs: []number{m.SD}}}
	}
	var all []Optimal
	for _, e := range list {
		t, err := s.trial(ctx, e.Trial)
		if err != nil {
			return nil, err
		}
		all = append(all, Optimal{Trial: t, Knee: e.Knee, expected: s.aims.expect(floats(e.Means), floats(e.SDs))})
	}
	return all, nil
}
