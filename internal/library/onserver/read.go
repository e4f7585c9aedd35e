package onserver

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// recommendationWait is how long Recommended waits for a point that is based on all trials.
	recommendationWait = 10 * time.Second
	// recommendationEvery is how often it looks.
	recommendationEvery = 100 * time.Millisecond
)

// get returns the study as it is now.
func (s *Study) get(ctx context.Context) (*studyMessage, error) {
	var answer studyAnswer
	err := s.call(ctx, "GetStudy", nameRequest{Name: s.id}, &answer)
	return &answer.Study, err
}

// trial returns a trial.
func (s *Study) trial(ctx context.Context, number int) (library.Result, error) {
	var answer trialAnswer
	if err := s.call(ctx, "GetTrial", nameRequest{Name: s.nameOf(number)}, &answer); err != nil {
		return library.Result{}, err
	}
	return s.result(&answer.Trial), nil
}

// Best implements library.Binding.
func (s *Study) Best() (library.Result, error) {
	m, err := s.get(s.life)
	if err == nil && m.Best == nil {
		err = library.Nothing(s.spec)
	}
	if err != nil {
		return library.Result{Value: math.NaN()}, err
	}
	return s.trial(s.life, m.Best.Trial)
}

// standing returns how the study is doing.
func (s *Study) standing() (library.Progress, error) {
	m, err := s.get(s.life)
	if err != nil {
		return library.Progress{}, err
	}
	p := library.Progress{Trials: m.MaxTrials, Ended: m.Trials.Completed + m.Trials.Failed + m.Trials.Infeasible + m.Trials.Pruned}
	if m.Best != nil {
		p.Best, err = s.trial(s.life, m.Best.Trial)
	}
	return p, err
}

// Trials implements library.Binding.
func (s *Study) Trials() iter.Seq2[library.Result, error] { return s.pages(s.life, "ListTrials") }

// pages returns the trials of a list, page by page. An error ends it.
func (s *Study) pages(ctx context.Context, method string) iter.Seq2[library.Result, error] {
	return func(yield func(library.Result, error) bool) {
		for token, first := "", true; first || token != ""; first = false {
			var answer trialsAnswer
			if err := s.call(ctx, method, listRequest{Parent: s.id, PageSize: 1000, PageToken: token}, &answer); err != nil {
				yield(library.Result{Value: math.NaN()}, err)
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

// Curve implements library.Binding.
func (s *Study) Curve(trial int, metric string) (list []library.Measurement, err error) {
	for token, first := "", true; first || token != ""; first = false {
		var answer curveAnswer
		request := curveRequest{listRequest{Parent: s.nameOf(trial), PageSize: 10_000, PageToken: token}, metric}
		switch err := s.call(s.life, "ListMeasurements", request, &answer); {
		case s.refused(err, codeNotFound) || s.refused(err, codeInvalid):
			return nil, fmt.Errorf("%w: %w", study.ErrInvalid, err)
		case err != nil:
			return nil, err
		}
		for _, m := range answer.Measurements {
			list = append(list, library.Measurement{Step: int(m.Step), Value: float64(m.Value)})
		}
		token = answer.NextPageToken
	}
	return list, nil
}

// Front implements library.Binding.
func (s *Study) Front() ([]library.Optimal, error) { return s.seen(s.life) }

// seen returns the front of the values that were measured.
func (s *Study) seen(ctx context.Context) ([]library.Optimal, error) {
	var list []library.Result
	for r, err := range s.pages(ctx, "ListOptimalTrials") {
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return library.Front(s.spec, list)
}

// Recommended implements library.Binding. The server makes a recommendation from time to time, so this waits
// for one that is based on all trials that have ended.
func (s *Study) Recommended(ctx context.Context) ([]library.Optimal, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(library.ErrClosed) })() //nolint:contextcheck // the study may end first
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
			return nil, library.Nothing(s.spec)
		case !s.Models || m.Recommended == nil && time.Now().After(end):
			if len(s.spec.Several) > 0 {
				return s.seen(ctx)
			}
			best, err := s.trial(ctx, m.Best.Trial)
			return []library.Optimal{{Trial: best}}, err
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
func (s *Study) expected(ctx context.Context, m *recommendedMessage) ([]library.Optimal, error) {
	list := m.Front
	if len(list) == 0 {
		list = []expectedMessage{{Trial: m.Trial, Means: []number{m.Mean}, SDs: []number{m.SD}}}
	}
	var all []library.Optimal
	for _, e := range list {
		t, err := s.trial(ctx, e.Trial)
		if err != nil {
			return nil, err
		}
		all = append(all, library.Optimal{Trial: t, Knee: e.Knee, Expected: library.Expect(s.spec, floats(e.Means), floats(e.SDs))})
	}
	return all, nil
}

// point returns the values with the types that parameters of a space have.
func (s *Study) point(raw map[string]any) study.Point {
	values := make(study.Point, len(raw))
	for name, v := range raw {
		p, known := s.space.Parameter(name)
		f, isNumber := v.(float64)
		if known && isNumber && (p.Type == study.Int || p.Type == study.Fidelity || whole(p.Values)) {
			v = int64(math.Round(f))
		}
		values[name] = v
	}
	return values
}

// whole reports whether there are listed values, of which the numbers are whole ones.
func whole(values []any) bool {
	for _, v := range values {
		if _, is := v.(float64); is {
			return false
		}
	}
	return len(values) > 0
}

// result returns what a message says of a trial.
func (s *Study) result(m *trialMessage) library.Result {
	r := library.Result{
		Number: m.Number, State: m.state(), Source: strings.ToLower(strings.TrimPrefix(string(m.Source), "SOURCE_")),
		Started: m.Times.Started, Ended: m.Times.Ended, Point: s.point(m.Parameters), Cost: math.NaN(),
	}
	if m.Cost != nil {
		r.Cost = float64(*m.Cost)
	}
	others := make(map[string]float64, len(m.Metrics))
	for name, v := range m.Metrics {
		others[name] = float64(v)
	}
	r.Measure(s.spec, floats(m.Values), others)
	if n := len(m.Attempts); n > 0 {
		f := m.Attempts[n-1].Failure
		r.Failure = cmp.Or(f.Message, f.Reason)
	}
	if r.State == study.TrialPruned {
		r.Failure = m.Stopped.Reason
	}
	return r
}
