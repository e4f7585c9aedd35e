package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// reduction: one trial in so many goes on to the next level, which has so many times the
	// epochs.
	reduction = 3
	// mostPromoted bounds the trials of all levels: as many configurations as the other
	// tuners may have, each of which is promoted 1/3 + 1/9 + … times.
	mostPromoted = most * 3 / 2
)

// promoted is a study with a fidelity in virtual time. The coordinator's own engine decides
// which trials are promoted; clients train the networks.
type promoted struct {
	*task
	engine    *engine.Engine
	algorithm optimizer.Optimizer
	seed      uint64
	ids       int
	points    map[int]study.Point      // by trial
	first     map[int]int              // the trial that began a trial's configuration
	training  session.Agenda[training] // by when their next epochs end
	reached   map[int]*running         // by first trial: how far its network is trained
	err       error
	result    result
}

// Nonce returns an identifier. With Trace and Span, it makes promoted an engine.IDs.
func (r *promoted) Nonce() string { r.ids++; return fmt.Sprint(r.ids) }

// Trace returns an identifier.
func (r *promoted) Trace() string { return r.Nonce() }

// Span returns an identifier.
func (r *promoted) Span() string { return r.Nonce() }

// playPromoted plays a study that promotes trials on a task, until one reports the target.
func playPromoted(ctx context.Context, u tuner, k *task, seed int) (*result, error) {
	r := &promoted{
		task: k, seed: uint64(seed), points: map[int]study.Point{}, first: map[int]int{},
		reached: map[int]*running{}, result: result{Tuner: u.name, Data: k.Data[k.data], Seed: seed},
	}
	var err error
	if r.algorithm, err = registry.New(u.algorithm, u.settings); err != nil {
		return nil, err
	}
	low, high, by := float64(u.promotes), float64(k.Epochs), reduction
	_, blind := r.algorithm.(optimizer.Blind)
	definition := study.Study{Spec: study.Spec{
		Objective:  study.Objective{Metric: "loss", Direction: study.Minimize, Take: study.TakeLast},
		Parameters: append(k.parameters(), study.Parameter{Name: "epochs", Type: study.Fidelity, Min: &low, Max: &high, Reduction: &by}),
		Algorithm:  study.Algorithm{Name: u.algorithm, Seed: r.seed},
		Budget:     study.Budget{MaxTrials: mostPromoted}, Parallelism: workers, Pool: "default",
	}}
	e, out, err := engine.New(record.Study{ID: "stopping", Definition: definition}, r, engine.Settings{Blind: blind}, time.Time{})
	if err != nil {
		return nil, fmt.Errorf("make the study: %w", err)
	}
	r.engine = e
	r.take(ctx, out)
	r.step(ctx, engine.Tick{At: r.now()})
	for i := range workers {
		r.seek(ctx, fmt.Sprint("client-", i))
	}
	for r.err == nil && !r.result.Reached && r.training.Len() > 0 {
		r.epoch(ctx)
	}
	r.result.Stopped = len(r.reached)
	for _, t := range r.reached {
		if t.step == k.Epochs {
			r.result.Stopped--
		}
	}
	return &r.result, r.err
}

// training is the network that a client trains.
type training struct {
	client string
	*running
}

// now is the virtual time.
func (r *promoted) now() time.Time {
	return time.Time{}.Add(time.Duration(r.result.Seconds * float64(time.Second)))
}

// step gives the engine an event, and answers its requests at once.
func (r *promoted) step(ctx context.Context, event engine.Event) {
	r.take(ctx, r.engine.Step(event))
}

func (r *promoted) take(ctx context.Context, out engine.Output) {
	for _, t := range out.Trials {
		if r.points[t.Number] != nil {
			continue
		}
		r.points[t.Number], r.first[t.Number] = t.Point, t.Number
		if t.Predecessor > 0 {
			r.first[t.Number] = r.first[t.Predecessor]
		}
		r.result.Trials++
	}
	if ask := out.Ask; ask != nil && r.err == nil {
		list, state, err := r.algorithm.Suggest(ctx, ask.Problem, ask.State, ask.N, optimizer.NewRand(r.seed, ask.Request))
		if err != nil && !errors.Is(err, optimizer.ErrExhausted) {
			r.err = fmt.Errorf("ask %s: %w", r.result.Tuner, err)
			return
		}
		r.step(ctx, engine.Suggested{At: r.now(), Ask: ask, Suggestions: list, State: state, Err: err})
	}
}

// seek lets a client ask for a trial, and begins to train its network where the trial's
// configuration was left. A client waits for longer only when the study has no more trials.
func (r *promoted) seek(ctx context.Context, client string) {
	r.step(ctx, engine.Seek{At: r.now(), Client: client, Want: 1})
	for _, open := range r.engine.Open() {
		if open.Worker != client {
			continue
		}
		trial := open.Attempt.Trial
		first := r.first[trial]
		t := r.reached[first]
		if t == nil {
			t = r.begin(r.points[trial])
			r.reached[first] = t
		}
		t.trial, t.point, t.next = trial, r.points[trial], r.result.Seconds+t.pace
		r.training.Add(t.next, trial, training{client, t})
	}
}

// epoch ends the epoch that ends first, and its trial if that was the last one of its level.
func (r *promoted) epoch(ctx context.Context) {
	var t training
	t, r.result.Seconds = r.training.Next()
	t.advance(&r.result, r.target)
	if level, _ := t.point["epochs"].(int64); t.step < int(level) {
		r.training.Add(t.next, t.trial, t)
		return
	}
	r.step(ctx, engine.Told{
		At: r.now(), Client: t.client, Trial: t.trial, Outcome: messaging.OutcomeCompleted, Values: study.Values{t.least},
	})
	r.seek(ctx, t.client)
}
