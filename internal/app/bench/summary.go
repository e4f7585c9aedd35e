package bench

import (
	"math"
	"slices"
)

// Floor is the smallest regret that is distinguished: log10 of a smaller one is that of
// Floor.
const Floor = 1e-9

// All is the objective of rows that cover all objectives with a known minimum.
const All = "all"

// The measures of rows.
const (
	MeasureRegret = "log10 regret"
	MeasureValue  = "best value"
)

// Summary holds the results of a plan's runs.
type Summary struct {
	Version    string    `json:"version"`
	Workers    int       `json:"workers"`
	Trials     int       `json:"trials"`
	Checkpoint int       `json:"checkpoint"`
	Seeds      []uint64  `json:"seeds"`
	Durations  Durations `json:"durations"`
	Charge     Charge    `json:"charge"`
	Noise      float64   `json:"noise"`
	// Rows are ordered by law, objective (All first), mode and variant.
	Rows []Row `json:"rows"`
	// Files are the paths of the written files.
	Files []string `json:"files"`
}

// Row is a variant in a mode under a law, on one objective or on All.
type Row struct {
	Law       string `json:"law"`
	Objective string `json:"objective"`
	Mode      Mode   `json:"mode"`
	Variant   string `json:"variant"`
	// Measure is MeasureRegret if the minimum is known, else MeasureValue.
	Measure string `json:"measure"`
	// Runs is the number of runs; estimates cover those with a value.
	Runs int `json:"runs"`
	// Final is the measure after the plan's trials, EqualTime after everything that the
	// run observed until the synchronous run's end, Recommended at the recommended
	// point. Each is nil if there is none.
	Final       *Estimate `json:"final"`
	EqualTime   *Estimate `json:"equalTime"`
	Recommended *Estimate `json:"recommended"`
	// Difference is Final minus that of the first variant for the same objective, mode
	// and seed, in losses: below 0 is better than the first.
	Difference *Estimate `json:"difference"`
	// LessSync is the difference from the variant's own synchronous runs.
	LessSync *Estimate `json:"lessSync"`
	// Speedup compares an asynchronous run with its synchronous one: see speedup.
	Speedup *Speedup `json:"speedup"`
	// Makespan and Idle are means over runs; Pending, Stale and Arrived are means over
	// their evaluations.
	Makespan float64 `json:"makespan"`
	Idle     float64 `json:"idle"`
	Pending  float64 `json:"pending"`
	Stale    float64 `json:"stale"`
	Arrived  float64 `json:"arrived"`
	// Suggest has the median and the 95% quantile of a request's seconds.
	Suggest SuggestSeconds `json:"suggestSeconds"`
}

// Speedup is how many times faster the asynchronous runs reached the regret that the
// synchronous runs had at the checkpoint.
type Speedup struct {
	// Reached divides the time when the synchronous run first had that regret by the
	// time when the asynchronous one first had it. Passed uses the time when the
	// synchronous run was at the checkpoint instead.
	Reached *Estimate `json:"reached"`
	Passed  *Estimate `json:"passed"`
	// Never is how many runs did not reach that regret by the synchronous run's end;
	// they count as 0.
	Never int `json:"never"`
}

// SuggestSeconds are quantiles of the measured time of a request.
type SuggestSeconds struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
}

// Summarize summarises the runs played so far.
func Summarize(p *Plan, groups []*Group, checkpoint int) *Summary {
	s := &Summary{
		Version: p.Version, Workers: p.Workers, Trials: p.Trials, Checkpoint: checkpoint, Seeds: p.Seeds,
		Durations: p.Durations, Charge: p.Charge, Rows: []Row{}, Files: []string{},
	}
	objectives := p.Objectives
	known := 0
	for _, o := range objectives {
		s.Noise = max(s.Noise, o.Noise)
		if o.Minimum != nil {
			known++
		}
	}
	for _, law := range p.Laws {
		if known > 1 {
			s.add(p, groups, law, nil)
		}
		for _, o := range objectives {
			s.add(p, groups, law, o)
		}
	}
	return s
}

// add adds the rows of a law and an objective; nil means all objectives.
func (s *Summary) add(p *Plan, groups []*Group, law string, objective *Objective) {
	for _, mode := range Modes() {
		if !p.has(mode) {
			continue
		}
		var first map[place]float64
		for i := range p.Variants {
			t := tally{row: Row{Law: law, Objective: All, Mode: mode, Variant: p.Variants[i].Label, Measure: MeasureRegret},
				finals: map[place]float64{}}
			if objective != nil {
				t.row.Objective = objective.Name
				if objective.Minimum == nil {
					t.row.Measure = MeasureValue
				}
			}
			for _, g := range groups {
				mine := g.Objective == objective || objective == nil && g.Objective.Minimum != nil
				if mine && g.Variant == &p.Variants[i] && g.Law == law && g.Runs[mode] != nil {
					t.add(g, mode, p.Trials, s.Checkpoint)
				}
			}
			if first == nil {
				first = t.finals
			} else {
				t.compare(first)
			}
			if t.row.Runs > 0 {
				s.Rows = append(s.Rows, t.done())
			}
		}
	}
}

// place identifies the runs of different variants that are compared.
type place struct {
	objective *Objective
	seed      uint64
}

// tally collects the runs of a row.
type tally struct {
	row                                 Row
	finals                              map[place]float64
	final, equal, recommended           []float64
	reached, passed                     []float64
	never                               int
	makespan, idle                      []float64
	pending, stale, arrived, difference []float64
	lessSync                            []float64
	suggest                             []float64
}

func (t *tally) add(g *Group, mode Mode, trials, checkpoint int) {
	run, o := g.Runs[mode], g.Objective
	path := newTrace(&run.Result, o)
	t.row.Runs++
	final := o.measure(path.after(trials))
	t.finals[place{o, g.Seed}] = final
	t.final = append(t.final, final)
	if r := run.Result.Recommended; r != nil {
		t.recommended = append(t.recommended, o.measure(*r))
	}
	if synchronous := g.Runs[Synchronous]; synchronous != nil && mode != Synchronous {
		batches := newTrace(&synchronous.Result, o)
		t.lessSync = append(t.lessSync, o.less(final, o.measure(batches.after(trials))))
		if mode == Asynchronous {
			t.equal = append(t.equal, o.measure(path.by(synchronous.Result.End)))
			t.race(batches, path, checkpoint)
		}
	}
	t.makespan, t.idle = append(t.makespan, run.Result.Makespan), append(t.idle, run.Result.Idle)
	for _, e := range run.Result.Evaluations {
		t.pending = append(t.pending, float64(e.Pending))
		t.stale = append(t.stale, float64(e.Stale))
		t.arrived = append(t.arrived, float64(e.Arrived))
	}
	t.suggest = append(t.suggest, run.Suggest...)
}

// race adds the speed-up of an asynchronous run over its synchronous one.
func (t *tally) race(synchronous, asynchronous trace, checkpoint int) {
	reached, passed, ok := speedup(synchronous, asynchronous, checkpoint)
	if !ok {
		return
	}
	t.reached, t.passed = append(t.reached, reached), append(t.passed, passed)
	if reached == 0 {
		t.never++
	}
}

// compare adds the differences from the first variant's runs.
func (t *tally) compare(first map[place]float64) {
	for where, mine := range t.finals {
		if other, ok := first[where]; ok {
			t.difference = append(t.difference, where.objective.less(mine, other))
		}
	}
}

func (t *tally) done() Row {
	r := t.row
	r.Final, r.EqualTime, r.Recommended = estimate(t.final), estimate(t.equal), estimate(t.recommended)
	r.Difference, r.LessSync = estimate(t.difference), estimate(t.lessSync)
	if reached := estimate(t.reached); reached != nil {
		r.Speedup = &Speedup{Reached: reached, Passed: estimate(t.passed), Never: t.never}
	}
	mean := func(values []float64) float64 {
		if e := estimate(values); e != nil {
			return e.Mean
		}
		return 0
	}
	r.Makespan, r.Idle = mean(t.makespan), mean(t.idle)
	r.Pending, r.Stale, r.Arrived = mean(t.pending), mean(t.stale), mean(t.arrived)
	if e := sorted(t.suggest); len(e) > 0 {
		r.Suggest = SuggestSeconds{P50: quantile(e, 0.5), P95: quantile(e, 0.95)}
	}
	return r
}

// measure converts a loss to the measure shown in rows.
func (o *Objective) measure(loss float64) float64 {
	if o.Minimum != nil {
		return math.Log10(max(loss, Floor)) // NaN stays NaN
	}
	return o.Direction.Cost(loss)
}

// less returns the difference of two measures, below 0 if the first is better.
func (o *Objective) less(a, b float64) float64 {
	if o.Minimum != nil {
		return a - b
	}
	return o.Direction.Cost(a) - o.Direction.Cost(b)
}

// Empty reports whether no run has a value.
func (s *Summary) Empty() bool {
	return !slices.ContainsFunc(s.Rows, func(r Row) bool { return r.Final != nil })
}
