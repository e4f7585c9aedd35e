// Package replay makes the requests of a study to its optimiser again, from the study's
// records, and compares the answers with the suggestions that were recorded.
//
// An optimiser is a pure function of the observations in order, the pending points, its own
// state and a seed. A trial's record has the ledger position of its request, and each trial
// has the positions at which it was created and ended. So the records give every request's
// problem back. The states follow from the answers: a request gets the state of the last
// answer of which a trial had been made.
//
// Of a study with a fidelity, it also decides again which trials were promoted: that follows
// from the positions and the results of the trials alone.
package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// Optimizers are those of a study.
type Optimizers struct {
	Suggest optimizer.Optimizer
	// Fallback makes suggestions when Suggest is too slow.
	Fallback optimizer.Optimizer
}

// Findings say what a replay found.
type Findings struct {
	// Same is how many suggestions are the recorded ones, bit for bit: the points, where
	// they come from, and the reasons. Fallbacks of them are fallbacks.
	Same, Fallbacks int
	// Promoted is how many promotions of trials are those that the rule makes again: of the
	// same trials, for the same reasons, with the same points.
	Promoted int
	// Others is how many trials no optimiser suggested: people asked for them or added them.
	Others int
	// Cut are trials whose optimiser ran out of time, so that its answer depended on the
	// machine. They are not compared.
	Cut []int
	// Earlier is how many trials are of an earlier version of the space, which the records do
	// not have any more.
	Earlier int
	// Until is the first trial from which on suggestions could not be made again, and Why says
	// why; 0 if all could.
	Until int
	Why   string
	// First is the first suggestion or promotion that differs; nil if none does.
	First *Difference
}

// Run replays a study until the first difference. The trials are all of the study's. The
// error is the context's, or says which record is inconsistent. progress, if not nil, is
// called after each request with the number of trials that were made by then.
func Run(ctx context.Context, spec record.Study, trials []record.Trial, o Optimizers, progress func(trial int)) (*Findings, error) {
	p, err := newPlayer(spec, trials, o)
	if err != nil {
		return nil, err
	}
	for _, a := range p.answers {
		if p.unruly(a.trials[0]) {
			break
		}
		if err := p.play(ctx, a); err != nil {
			return nil, err
		}
		if progress != nil {
			progress(a.trials[len(a.trials)-1].Number)
		}
		if p.findings.First != nil || p.findings.Until != 0 {
			break
		}
	}
	p.countPromotions()
	return &p.findings, nil
}

// request identifies a request of a study: at most one is in flight, and one that becomes a
// trial moves the position.
type request struct {
	from     int64
	number   int
	n        int
	fallback bool
}

// answer is what a request was answered, as far as it became trials.
type answer struct {
	request
	ask    *record.Ask
	trials []*record.Trial
	state  optimizer.State // after it
}

// created is the position from which on requests get the answer's state.
func (a *answer) created() int64 { return a.trials[0].Created }

// player replays one study. trials, told and ladder follow from the records alone and are complete
// before the first request is made again; played, lost and stateful follow from the answers.
type player struct {
	spec     *study.Spec
	space    *space.Space
	version  int // of the space
	earlier  []optimizer.Earlier
	trials   []*record.Trial // by number
	outside  map[int]bool    // the numbers of those whose points are outside of the space
	told     told
	ladder   ladder
	answers  []*answer
	o        Optimizers
	findings Findings
	// played are the answers of the optimiser so far, oldest first.
	played []*answer
	// lost is the first answer of the optimiser that was cut: its state is not known.
	lost *answer
	// stateful says that the optimiser has returned a state.
	stateful bool
}

func newPlayer(spec record.Study, trials []record.Trial, o Optimizers) (*player, error) {
	p := &player{
		spec: &spec.Definition.Spec, version: spec.SpaceVersion(), earlier: optimizer.EarlierOf(&spec.Definition.Spec),
		outside: map[int]bool{}, o: o,
	}
	var err error
	if p.space, err = celspace.Of(&spec.Definition); err != nil {
		return nil, err
	}
	p.told = newTold(p.space)
	for i := range trials {
		t := trials[i]
		point, err := p.space.Place(t.Point)
		switch {
		case err == nil:
			t.Point = point
		case p.version == 1:
			return nil, fmt.Errorf("trial %d: %w", t.Number, err)
		default:
			p.outside[t.Number] = true
		}
		p.trials = append(p.trials, &t)
	}
	slices.SortFunc(p.trials, func(a, b *record.Trial) int { return cmp.Compare(a.Number, b.Number) })
	var ended []*record.Trial
	for i, t := range p.trials {
		if t.Number != i+1 {
			return nil, fmt.Errorf("the records hold trial %d in the place of trial %d", t.Number, i+1)
		}
		if t.Ended > 0 && !p.outside[t.Number] {
			ended = append(ended, t)
		}
	}
	slices.SortFunc(ended, func(a, b *record.Trial) int { return cmp.Compare(a.Ended, b.Ended) })
	for _, t := range ended {
		if observation, told := engine.Observation(p.spec, t); told {
			p.told.add(observation, t.Ended)
		}
	}
	if err := p.group(); err != nil {
		return nil, err
	}
	p.rule()
	return p, nil
}

// group finds the answers, in the order in which trials were made of them.
func (p *player) group() error {
	known := map[request]*answer{}
	for _, t := range p.trials {
		switch t.Source {
		case optimizer.SourceRequested, optimizer.SourceAdded:
			p.findings.Others++
			continue
		case optimizer.SourcePromoted:
			continue // see rule
		}
		if t.Ask == nil {
			return fmt.Errorf("trial %d is recorded without the request for its suggestion", t.Number)
		}
		if max(1, t.Ask.Space) != p.version {
			p.findings.Earlier++
			continue
		}
		r := request{from: t.From, number: t.Request, n: t.Ask.N, fallback: t.Ask.Fallback}
		a := known[r]
		if a == nil {
			a = &answer{request: r, ask: t.Ask}
			known[r] = a
			p.answers = append(p.answers, a)
		}
		a.trials = append(a.trials, t)
	}
	return nil
}

// problem returns what the optimiser knew at a request: what had ended by its position, and what
// was open then.
func (p *player) problem(a *answer) *optimizer.Problem {
	problem := &optimizer.Problem{
		Space: p.space.Searched(), Direction: p.spec.FirstObjective().Direction, Seed: p.spec.Algorithm.Seed,
		Objectives: objectives(p.spec, a.ask), Limits: a.ask.Limits,
		MaxTrials: a.ask.MaxTrials, Parallelism: a.ask.Parallelism, Time: a.ask.Time, Cost: a.ask.Cost,
		Pending: []optimizer.Pending{}, Earlier: p.earlier,
	}
	problem.Observations, problem.Taken = p.told.until(a.from)
	p.limit(problem)
	for _, t := range p.trials {
		if t.Created > a.from {
			break // positions grow with numbers
		}
		problem.First = t.Number
		if t.Ended == 0 || t.Ended > a.from {
			if point, err := p.space.Place(t.Asked()); err == nil {
				problem.Pending = append(problem.Pending, optimizer.Pending{
					Trial: t.Number, Point: p.space.Configuration(point), Seconds: a.ask.Ran[t.Number],
					Likely: a.ask.Likely[t.Number],
				})
			}
		}
	}
	problem.First++
	problem.Curves, problem.Last = p.curves(a), a.ask.Last
	return problem
}

// objectives returns the objectives that a request was made with; nil for a single one.
func objectives(spec *study.Spec, ask *record.Ask) []study.Objective {
	list := slices.Clone(spec.Several)
	for i, reference := range ask.References {
		if i < len(list) {
			list[i].Reference = reference
		}
	}
	return list
}

// limit gives the observations of a problem their excess over its limits, if these are not the
// study's now.
func (p *player) limit(problem *optimizer.Problem) {
	if reflect.DeepEqual(problem.Limits, p.spec.Limits) {
		return
	}
	then := *p.spec
	then.Limits = problem.Limits
	problem.Observations = slices.Clone(problem.Observations)
	for i := range problem.Observations {
		o := &problem.Observations[i]
		if again, told := engine.Observation(&then, p.trials[o.Trial-1]); told {
			o.Excess = again.Excess
		}
	}
}

// before returns the state that a request was made with: that of the last answer of which a trial
// had been made by then, since the engine commits the state with that trial.
func (p *player) before(a *answer) optimizer.State {
	for i := len(p.played) - 1; i >= 0; i-- {
		if p.played[i].created() <= a.from {
			return p.played[i].state
		}
	}
	return nil
}

// play makes a request again and compares the answer.
func (p *player) play(ctx context.Context, a *answer) error {
	problem := p.problem(a)
	if problem.First != a.number {
		return fmt.Errorf("trial %d: its request was the one before trial %d, but %d trials had been made at its position %d",
			a.trials[0].Number, a.number, problem.First-1, a.from)
	}
	if a.ask.Cut {
		p.cut(a)
		return nil
	}
	if running := p.unknown(a); running > 0 {
		p.findings.Until = a.trials[0].Number
		p.findings.Why = fmt.Sprintf(
			"trial %d still runs, and what it had reported when trial %d was suggested is not in its record yet", running,
			p.findings.Until)
		return nil
	}
	state := p.before(a)
	o := p.o.Suggest
	if a.fallback {
		o, state = p.o.Fallback, nil
	}
	list, next, err := duration.InTime(ctx, o, problem, state, a.ask.N, optimizer.NewRand(p.spec.Algorithm.Seed, a.number))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(next) > optimizer.MaxStateSize {
		next = state
	}
	p.stateful = p.stateful || len(next) > 0 && !a.fallback
	if l := p.lost; l != nil && p.stateful && !a.fallback && a.from >= l.created() {
		p.findings.Until = a.trials[0].Number
		p.findings.Why = fmt.Sprintf("the optimiser's time was over when it suggested trial %d, "+
			"so its answer and what it remembered depended on the machine", l.trials[0].Number)
		return nil
	}
	if err != nil && !errors.Is(err, optimizer.ErrExhausted) {
		p.differ(a.trials[0], &Difference{What: "the answer", Recorded: "a suggestion", Replayed: fmt.Sprintf("the error %q", err)})
		return nil
	}
	for _, t := range a.trials {
		if p.unruly(t) {
			return nil
		}
		if d := p.compare(t, list, a.fallback); d != nil {
			p.differ(t, d)
			return nil
		}
	}
	for _, t := range a.trials {
		p.findings.Same++
		if t.Source == optimizer.SourceFallback {
			p.findings.Fallbacks++
		}
	}
	if !a.fallback {
		a.state = next
		p.played = append(p.played, a)
	}
	return nil
}

func (p *player) differ(t *record.Trial, d *Difference) {
	d.Trial = t.Number
	p.findings.First = d
}

// cut passes over an answer that depended on the machine. Without its state, later answers
// of an optimiser that has one cannot be made.
func (p *player) cut(a *answer) {
	for _, t := range a.trials {
		p.findings.Cut = append(p.findings.Cut, t.Number)
	}
	if !a.fallback && p.lost == nil {
		p.lost = a
	}
}
