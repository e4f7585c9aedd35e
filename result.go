package fantasia

import (
	"context"
	"errors"
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

// State is the state of a trial.
type State = study.TrialState

// The states of a trial. In all but Pending and Running it has ended.
const (
	Pending    State = study.TrialPending
	Running    State = study.TrialRunning
	Completed  State = study.TrialCompleted
	Failed     State = study.TrialFailed
	Infeasible State = study.TrialInfeasible
	Stopped    State = study.TrialPruned    // early
	Cancelled  State = study.TrialCancelled // the study ended first
)

// Result is what is known of a trial. Read its values with [Param.Of].
type Result struct {
	// Number is the trial's number, counted from 1.
	Number int
	State  State
	// Value is the objective's value; NaN unless the trial has completed.
	Value float64
	// Source says where the point comes from: "model", "design", "random", "initial",
	// "requested", "added", "promoted" or "fallback".
	Source string
	// Failure is why the trial's last evaluation has failed, or why it was stopped early; empty if
	// neither happened.
	Failure string
	// Started and Ended are when its last evaluation did; zero if it has not.
	Started, Ended time.Time
	at             Point
}

func (r Result) point() Point { return r.at }

// Values returns the trial's values by name: float64, int64, string or bool. Do not change the
// map.
func (r Result) Values() map[string]any { return r.at.Values() }

// result returns what a record says.
func (s *Study) result(t *record.Trial) Result {
	r := Result{
		Number: t.Number, State: t.State, Value: math.NaN(), Source: string(t.Origin()),
		Started: t.Times.Started, Ended: t.Times.Ended, at: Point{s.space, t.Point},
	}
	if t.State == study.TrialCompleted {
		r.Value = t.Values.First()
	}
	if a := t.Last(); a != nil && a.Failure != nil {
		if r.Failure = a.Failure.Message; r.Failure == "" {
			r.Failure = a.Failure.Reason
		}
	}
	if t.State == study.TrialPruned && t.Stopped != nil {
		r.Failure = t.Stopped.Reason
	}
	return r
}

// Best returns the completed trial with the best value, the earliest of equal ones; false if none
// has completed. If evaluations are noisy, see [Study.Recommended].
func (s *Study) Best() (Result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.engine.Best()
	if !ok {
		return Result{Value: math.NaN()}, false
	}
	return s.result(&t), true
}

// Trials returns all trials in the order in which they were made, as they are when the loop
// reaches them.
func (s *Study) Trials() iter.Seq[Result] {
	return func(yield func(Result) bool) {
		for n := 1; ; n++ {
			s.mu.Lock()
			t, ok := s.engine.Trial(n)
			s.mu.Unlock()
			if !ok || !yield(s.result(&t)) {
				return
			}
		}
	}
}

// Measurement is a value that a trial has reported.
type Measurement struct {
	Step  int
	Value float64
}

// Curve returns what a trial has reported, by step; nil if it has reported nothing. Of long curves
// at most about 1,000 points are kept, evenly. The error wraps ErrInvalid if there is no such
// trial.
func (s *Study) Curve(trial int) ([]Measurement, error) {
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

// Recommendation is the trial that is best by the optimiser's model, which takes noise into
// account, with the model's mean and standard deviation at its point. If the optimiser has no
// model, these are the trial's value and 0.
type Recommendation struct {
	Trial    Result
	Mean, SD float64
}

// ErrNothing means that no trial has completed.
var ErrNothing = errors.New("no trial has completed")

// Recommended returns the completed trial to use if evaluations are noisy, of which the best value
// may be luck. It may have to fit the optimiser's model. The error wraps ErrNothing, or is the
// cause of ctx's end.
func (s *Study) Recommended(ctx context.Context) (Recommendation, error) {
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
