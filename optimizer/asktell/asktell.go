// Package asktell serves an optimiser over JSON lines: a program asks for points,
// evaluates them as it likes, and tells the outcomes.
package asktell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// The limits of a request.
const (
	// MaxLine is the longest line that is read, in bytes, without its newline.
	MaxLine = 1 << 20
	// MaxAsk is the largest number of points that one line may ask for.
	MaxAsk = 1000
)

// Serve answers each line of in with one line on out, until in ends (nil), ctx
// ends (its error), or reading or writing fails. A line that is no valid request
// is answered by an error and changes nothing; so is a tell of which one element
// is wrong. What is asked and not told is pending. Neither the study's budget
// nor its program is used.
//
// The same study and the same lines give the same answers. If ctx ends while
// in.Read blocks, Serve returns at once, and its reader ends with that Read: the
// owner of in closes it.
func Serve(ctx context.Context, s *study.Study, in io.Reader, out io.Writer) error {
	talk, err := newConversation(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan line)
	go readLines(ctx, in, lines)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case l := <-lines:
			if l.err != nil && !errors.Is(l.err, errLong) {
				return end(l.err)
			}
			reply := talk.answer(ctx, l)
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := encoder.Encode(reply); err != nil {
				return fmt.Errorf("write an answer: %w", err)
			}
		}
	}
}

// end returns Serve's error for the error that ended the input.
func end(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("read a request: %w", err)
}

// conversation is the state of one conversation.
type conversation struct {
	session.Session
	study *study.Study
}

func newConversation(s *study.Study) (*conversation, error) {
	space, err := celspace.Of(s)
	if err != nil {
		return nil, err
	}
	if f, ok := space.Fidelity(); ok {
		return nil, fmt.Errorf(
			"parameter %s is a fidelity: ask-tell serves an optimiser alone, and a coordinator promotes trials; "+
				"use 'fantasia serve', or leave the parameter out",
			f.Name,
		)
	}
	for i, e := range s.Spec.LearnFrom {
		if e.Trials == nil {
			return nil, fmt.Errorf("spec.learnFrom[%d]: ask-tell knows no study %s: list its trials there, as parameters and value", i, e.Study)
		}
	}
	if err := s.Spec.CheckEarlier(); err != nil {
		return nil, err
	}
	algorithm, err := registry.New(s.Spec.Algorithm.Name, s.Spec.Algorithm.Settings)
	if err != nil {
		return nil, err
	}
	spec := &s.Spec
	var cost *optimizer.Cost
	if spec.Cost != nil {
		cost = &optimizer.Cost{Metric: spec.Cost.Metric}
	}
	return &conversation{study: s, Session: session.Session{Optimizer: algorithm, Problem: optimizer.Problem{
		Space: space, Direction: spec.FirstObjective().Direction, Objectives: spec.Several, Limits: spec.Limits,
		MaxTrials: spec.Budget.Planned(), Parallelism: max(1, spec.Parallelism), Seed: spec.Algorithm.Seed,
		Earlier: optimizer.EarlierOf(spec), Cost: cost,
	}}}, nil
}

// answer handles one line.
func (s *conversation) answer(ctx context.Context, l line) answer {
	reply, err := s.serve(ctx, l)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return reply
}

func (s *conversation) serve(ctx context.Context, l line) (answer, error) {
	if l.err != nil {
		return answer{}, l.err
	}
	r, err := parse(l.text)
	switch {
	case err != nil:
		return answer{}, err
	case r.Ask != nil:
		return s.ask(ctx, *r.Ask, r.Running)
	case r.Tell != nil:
		return s.addOutcomes(*r.Tell)
	case !*r.Recommend:
		return answer{}, errors.New(`"recommend" must be true`)
	default:
		return s.recommend(ctx)
	}
}

func (s *conversation) ask(ctx context.Context, n int, list []running) (answer, error) {
	if n < 1 || n > MaxAsk {
		return answer{}, fmt.Errorf("ask %d: want 1 to %d points", n, MaxAsk)
	}
	if err := s.run(list); err != nil {
		return answer{}, err
	}
	first := s.Asked() + 1
	batch, err := s.Ask(ctx, n)
	if err != nil && !errors.Is(err, optimizer.ErrExhausted) {
		return answer{}, fmt.Errorf("ask %d: %w", n, err)
	}
	suggestions := make([]suggestion, len(batch))
	for i, b := range batch {
		suggestions[i] = suggestion{Trial: first + i, Parameters: b.Point, Why: why{Source: b.Source, Reasons: b.Reasons}}
	}
	return answer{Suggestions: &suggestions}, nil
}

// run notes how long pending trials have run. That of others stays as it was said last. It applies the whole list, or nothing if an
// element is wrong.
func (s *conversation) run(list []running) error {
	seconds := make(map[int]float64, len(list))
	for i, r := range list {
		if err := s.checkRunning(r, seconds); err != nil {
			return fmt.Errorf("running[%d]: %w", i, err)
		}
		seconds[*r.Trial] = *r.Seconds
	}
	for i := range s.Problem.Pending {
		if ran, ok := seconds[s.Problem.Pending[i].Trial]; ok {
			s.Problem.Pending[i].Seconds = ran
		}
	}
	return nil
}

// checkRunning checks how long a trial has run; earlier has those that were said before in the same list.
func (s *conversation) checkRunning(r running, earlier map[int]float64) error {
	if r.Trial == nil || r.Seconds == nil {
		return errors.New(`want "trial" and "seconds"`)
	}
	if !(*r.Seconds >= 0) || !study.Finite(*r.Seconds) {
		return fmt.Errorf("seconds %v: want a number from 0 on", *r.Seconds)
	}
	if _, twice := earlier[*r.Trial]; twice {
		return fmt.Errorf("trial %d is listed twice", *r.Trial)
	}
	if !slices.ContainsFunc(s.Problem.Pending, func(p optimizer.Pending) bool { return p.Trial == *r.Trial }) {
		return s.notOpen(*r.Trial)
	}
	return nil
}

// notOpen says why a trial is not pending.
func (s *conversation) notOpen(trial int) error {
	if trial >= 1 && trial <= s.Asked() {
		return fmt.Errorf("trial %d has already been told", trial)
	}
	return fmt.Errorf("trial %d was never asked for: the last one is %d", trial, s.Asked())
}

// addOutcomes applies the whole list, or nothing if an element is wrong.
func (s *conversation) addOutcomes(list []tell) (answer, error) {
	open := make(map[int]study.Point, len(s.Problem.Pending))
	for _, p := range s.Problem.Pending {
		open[p.Trial] = p.Point
	}
	told := make([]optimizer.Observation, 0, len(list))
	for i, t := range list {
		o, err := s.check(t, open)
		if err != nil {
			return answer{}, fmt.Errorf("tell[%d]: %w", i, err)
		}
		delete(open, o.Trial)
		told = append(told, o)
	}
	for _, o := range told {
		s.Tell(o)
	}
	n := len(told)
	return answer{Told: &n}, nil
}

// check converts t to an observation; open holds the trials that can be told.
func (s *conversation) check(t tell, open map[int]study.Point) (optimizer.Observation, error) {
	o, err := t.observation(&s.study.Spec)
	if err != nil {
		return o, err
	}
	if (t.Trial == nil) == (t.Parameters == nil) {
		return o, errors.New(`want either "trial" or "parameters"`)
	}
	if t.Trial == nil {
		if o.Point, err = s.Problem.Space.Normalize(t.Parameters); err != nil {
			return o, fmt.Errorf("parameters: %w", err)
		}
		if err := s.Problem.Space.Check(o.Point); err != nil {
			return o, fmt.Errorf("parameters: %w", err)
		}
		return o, nil
	}
	o.Trial = *t.Trial
	var ok bool
	if o.Point, ok = open[o.Trial]; !ok {
		return o, s.notOpen(o.Trial)
	}
	return o, nil
}

func (s *conversation) recommend(ctx context.Context) (answer, error) {
	best, err := s.Recommend(ctx)
	if err != nil {
		return answer{}, fmt.Errorf("recommend: %w", err)
	}
	return answer{Recommended: &best}, nil
}
