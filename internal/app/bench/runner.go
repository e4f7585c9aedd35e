package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"golang.org/x/sync/errgroup"
)

// Plan describes runs: every variant on every objective, in every mode, under every
// law, with every seed.
type Plan struct {
	Variants   []Variant
	Objectives []*Objective
	Modes      []Mode
	Laws       []string
	Seeds      []uint64
	Durations  Durations
	Charge     Charge
	Workers    int
	Trials     int
	// Version is the version of the program.
	Version string
}

// Size returns the number of runs.
func (p *Plan) Size() int {
	return len(p.Variants) * len(p.Objectives) * len(p.Modes) * len(p.Laws) * len(p.Seeds)
}

// has reports whether the plan has a mode.
func (p *Plan) has(m Mode) bool { return slices.Contains(p.Modes, m) }

// Group contains the runs that differ only in their mode: the asynchronous one
// continues until the end of the synchronous one.
type Group struct {
	Variant   *Variant
	Objective *Objective
	Law       string
	Seed      uint64
	// Runs are the runs played so far, by mode.
	Runs map[Mode]*Run
}

// groups returns the plan's groups in the order in which they are played: everything
// else before the next seed, so that an early end leaves something to compare.
func (p *Plan) groups() []*Group {
	var all []*Group
	for _, seed := range p.Seeds {
		for _, law := range p.Laws {
			for _, objective := range p.Objectives {
				for i := range p.Variants {
					all = append(all, &Group{
						Variant: &p.Variants[i], Objective: objective, Law: law, Seed: seed, Runs: map[Mode]*Run{},
					})
				}
			}
		}
	}
	return all
}

// spec returns the spec of a group's run in a mode, which may need the synchronous run.
func (p *Plan) spec(g *Group, mode Mode) Spec {
	s := Spec{
		Optimizer: g.Variant.Optimizer, Settings: g.Variant.Settings, Objective: g.Objective.Name,
		Content: g.Objective.Content, Noise: g.Objective.Noise, Failing: g.Objective.Failing, Mode: mode, Law: g.Law, Durations: p.Durations,
		Charge: p.Charge, Workers: p.Workers, Trials: p.Trials, Seed: g.Seed, Version: p.Version,
	}
	if mode == Sequential {
		s.Workers = 1
	}
	if synchronous := g.Runs[Synchronous]; mode == Asynchronous && synchronous != nil {
		s.Horizon = synchronous.Result.End
	}
	return s
}

// Progress is the progress of a Runner.
type Progress struct {
	// Done of All runs have been played; Kept of them were already in the store.
	Done, Kept, All int
	// Last is the run that ended last.
	Last *Run
}

// Runner plays a plan.
type Runner struct {
	Plan  *Plan
	Store *Store
	// Jobs is the number of groups that are played at once, at least 1.
	Jobs int
	// NewOptimizer returns an optimiser for a run.
	NewOptimizer func(name string, settings map[string]any) (optimizer.Optimizer, error)
	// Progress, if not nil, is called for each ended run, by one goroutine at a time.
	Progress func(Progress)

	mu   sync.Mutex
	told Progress
}

// Play plays the runs that the store does not contain, and stores each when it ends. It
// returns all groups with the runs so far, also together with an error, which is the
// context's or that of the first run that failed.
func (r *Runner) Play(ctx context.Context) ([]*Group, error) {
	groups := r.Plan.groups()
	r.told.All = r.Plan.Size()
	pool, ctx := errgroup.WithContext(ctx)
	pool.SetLimit(max(1, r.Jobs))
	for _, g := range groups {
		pool.Go(func() error { return r.playGroup(ctx, g) })
	}
	return groups, pool.Wait()
}

func (r *Runner) playGroup(ctx context.Context, g *Group) error {
	for _, mode := range Modes() {
		if !r.Plan.has(mode) {
			continue
		}
		spec := r.Plan.spec(g, mode)
		run, err := r.Store.Get(&spec)
		if err != nil {
			return err
		}
		kept := run != nil
		if !kept {
			if run, err = r.play(ctx, spec, g); err != nil {
				return err
			}
		}
		g.Runs[mode] = run
		r.tellRun(run, kept)
	}
	return nil
}

func (r *Runner) play(ctx context.Context, spec Spec, g *Group) (*Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o, err := r.NewOptimizer(spec.Optimizer, spec.Settings)
	if err != nil {
		return nil, err
	}
	run, err := Play(ctx, spec, o, g.Objective)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", &spec, err)
	}
	return run, r.Store.Add(run)
}

// tellRun counts a run and reports the progress.
func (r *Runner) tellRun(run *Run, kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told.Done++
	if kept {
		r.told.Kept++
	}
	r.told.Last = run
	if r.Progress != nil {
		r.Progress(r.told)
	}
}
