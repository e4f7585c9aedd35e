package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/study"
)

// ErrBroken means that an objective's first three evaluations all failed, so its
// program is probably broken.
var ErrBroken = errors.New("the first three evaluations all failed")

// brokenAfter is the number of initial failures that count as ErrBroken.
const brokenAfter = 3

// Play plays a run of the optimiser that the spec names on an objective. A failed
// evaluation is an observation. An error ends the run: the context's, the optimiser's,
// or ErrBroken.
func Play(ctx context.Context, spec Spec, o optimizer.Optimizer, objective *Objective) (_ *Run, err error) {
	var law Law
	if spec.Durations != Measured {
		if law, err = ParseLaw(spec.Law); err != nil {
			return nil, err
		}
	}
	opened, err := objective.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.close(ctx)) }()
	began := time.Now()
	p := &player{
		spec: &spec, law: law, objective: objective, evaluator: opened,
		encoding: optimizer.NewEncoding(objective.Space), outcomes: map[int]outcome{},
		session: session.Session{Optimizer: o, Problem: optimizer.Problem{
			Space: objective.Space, Direction: objective.Direction, MaxTrials: spec.Trials, Parallelism: spec.Workers, Seed: spec.Seed,
		}},
	}
	if spec.Mode == Sequential {
		p.session.Problem.Parallelism = 1
	}
	done, err := simulate(ctx, plan{mode: spec.Mode, workers: spec.Workers, trials: spec.Trials, horizon: spec.Horizon}, p)
	if err != nil {
		return nil, err
	}
	run := &Run{Spec: spec, Result: p.result(done), Suggest: p.took}
	if objective.Noisy {
		if run.Result.Recommended, err = p.recommend(ctx); err != nil {
			return nil, err
		}
	}
	run.Seconds = seconds(time.Since(began))
	return run, nil
}

// player is a run in progress: the source that the clock drives.
type player struct {
	spec      *Spec
	law       Law
	session   session.Session
	objective *Objective
	evaluator evaluator
	encoding  *optimizer.Encoding

	points   []study.Point // of trial 1, 2, …
	outcomes map[int]outcome
	took     []float64
}

func (p *player) suggest(ctx context.Context, n int) (count int, cost float64, err error) {
	first, began := p.session.Asked()+1, time.Now()
	batch, err := p.session.Ask(ctx, n)
	took := time.Since(began)
	if errors.Is(err, optimizer.ErrExhausted) {
		return 0, 0, nil
	}
	if err == nil {
		err = ctx.Err() // an interrupted answer is no result
	}
	if err != nil {
		return 0, 0, fmt.Errorf("suggest trial %d: %w", first, err)
	}
	p.took = append(p.took, seconds(took))
	for _, s := range batch {
		p.points = append(p.points, s.Point)
	}
	return len(batch), p.spec.Charge.cost(took), nil
}

func (p *player) evaluate(ctx context.Context, trial int) (float64, error) {
	point := p.points[trial-1]
	o, err := p.evaluator.evaluate(ctx, p.spec.Seed, trial, point)
	if err != nil {
		return 0, fmt.Errorf("evaluate trial %d: %w", trial, err)
	}
	p.outcomes[trial] = o
	switch p.spec.Durations {
	case Measured:
		return o.seconds, nil
	case ByPoint:
		return p.law.Draw(p.spec.Seed, trial) * pointFactor(p.encoding, point), nil
	default:
		return p.law.Draw(p.spec.Seed, trial), nil
	}
}

func (p *player) tellTrials(trials []int) error {
	for _, trial := range trials {
		o := p.outcomes[trial]
		observation := optimizer.Observation{Trial: trial, Point: p.points[trial-1], Outcome: o.kind}
		if o.kind == optimizer.OutcomeCompleted {
			observation.Values = []float64{o.value}
		}
		p.session.Tell(observation)
		if len(p.session.Problem.Observations) == brokenAfter && p.objective.Failing == 0 && p.broken() {
			return fmt.Errorf("%w; the last one: %s", ErrBroken, o.message)
		}
	}
	return nil
}

func (p *player) broken() bool {
	return !slices.ContainsFunc(p.session.Problem.Observations,
		func(o optimizer.Observation) bool { return o.Outcome != optimizer.OutcomeFailed })
}

// result returns the result of the run.
func (p *player) result(s *schedule) Result {
	r := Result{Makespan: s.makespan(p.spec.Trials), End: s.end, Idle: s.idle(p.session.Problem.Parallelism)}
	for _, t := range s.told {
		o := p.outcomes[t.trial]
		e := Evaluation{Trial: t.trial, Made: t.made, Start: t.start, End: t.end, Told: t.told, Pending: t.pending, Outcome: o.kind}
		e.Stale, e.Arrived = s.counts(t)
		if o.kind == optimizer.OutcomeCompleted {
			e.Value, e.Loss = o.value, p.objective.loss(o.truth)
		}
		r.Evaluations = append(r.Evaluations, e)
	}
	return r
}

// recommend returns the loss at the point recommended after the first observations, or
// nil if there is none.
func (p *player) recommend(ctx context.Context) (*float64, error) {
	problem := p.session.Snapshot()
	problem.Observations = problem.Observations[:min(p.spec.Trials, len(problem.Observations))]
	problem.Pending = nil
	// The last state may depend on later observations.
	r, err := optimizer.Recommend(ctx, p.session.Optimizer, problem, nil)
	if err != nil {
		return nil, fmt.Errorf("recommend a point: %w", err)
	}
	if r == nil {
		return nil, nil
	}
	return new(p.objective.loss(p.outcomes[r.Trial].truth)), nil
}

// seconds converts a duration, rounded to microseconds.
func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }
