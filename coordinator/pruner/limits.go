package pruner

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// limits are the values of the settings that all pruners have.
type limits struct {
	minSteps, maxSteps       int64
	minCompleted, protect    int
	minProgress, maxProgress float64
	patience                 int
}

// careful are the limits of the pruners that compare trials. They are those of Ax
// (ax/early_stopping), which stops a trial only if at least a few curves are complete,
// within a part of its progress, and not if it is one of the best.
var careful = limits{minCompleted: 3, minProgress: 0.2, maxProgress: 0.9, protect: 3, patience: impatient}

// impatient is the patience of a rule that does not wait until a trial has stopped improving.
const impatient = -1

// steps is an upper bound of settings that count steps.
const steps = 1 << 40

// settings returns the settings that all pruners have, with these defaults.
func (l limits) settings() setting.Set {
	return setting.Set{
		{Name: "minSteps", Doc: "Stop no trial before this step.", Default: int(l.minSteps), Max: steps},
		{Name: "maxSteps", Doc: "The last step of a trial; 0 learns it from the completed trials.", Default: int(l.maxSteps), Max: steps},
		{Name: "minCompleted", Doc: "Stop no trial before this many have completed with a curve.", Default: l.minCompleted, Max: 1e6},
		{Name: "minProgress", Doc: "Stop no trial before this part of its steps.", Default: l.minProgress, Max: 1},
		{Name: "maxProgress", Doc: "Stop no trial after this part of its steps.", Default: l.maxProgress, Max: 1},
		{
			Name: "interval", Doc: "Stop a trial only at its first report in each span of so many steps from minSteps on.",
			Default: 1, Min: 1, Max: steps,
		},
		{Name: "patience", Doc: "How many reports to wait for an improvement; -1 does not wait.", Default: l.patience, Min: impatient, Max: 1000},
		{
			Name: "minDelta", Doc: "By how much the reports of patience must be worse than the best before them.",
			Default: 0.0, Max: math.MaxFloat64,
		},
		{Name: "protect", Doc: "Stop no trial that is among this many best ones at its step.", Default: l.protect, Max: 1e6},
	}
}

// limited is a rule with limits. It keeps the curves, since some limits compare trials too, and
// tells the rule of each point before it asks whether the trial may be stopped: a rule MUST know
// the points of trials that no limit lets it stop.
type limited struct {
	limits
	rule   rule
	trials map[int]*history
	// completed counts the completed trials with a curve, and longest is the last step
	// of the longest of their curves.
	completed int
	longest   int64
	interval  int64
	waits     *patient // no trial is stopped before this would; nil if the rule does not wait
}

func limit(r rule, v setting.Values) (*limited, error) {
	g := &limited{rule: r, trials: map[int]*history{}, limits: limits{
		minSteps: int64(v.Int("minSteps")), maxSteps: int64(v.Int("maxSteps")),
		minCompleted: v.Int("minCompleted"), protect: v.Int("protect"),
		minProgress: v.Float("minProgress"), maxProgress: v.Float("maxProgress"), patience: v.Int("patience"),
	}, interval: int64(v.Int("interval"))}
	if _, alone := r.(*patient); !alone && g.patience != impatient {
		g.waits = &patient{patience: g.patience, delta: v.Float("minDelta")}
	}
	if g.maxProgress < g.minProgress {
		return nil, &setting.Error{Name: "maxProgress", Value: g.maxProgress, Reason: "a number from minProgress to 1"}
	}
	if delta := v.Float("minDelta"); delta > 0 && g.patience == impatient {
		return nil, &setting.Error{Name: "minDelta", Value: delta, Reason: "0, or a patience of at least 0 beside it"}
	}
	if g.maxSteps > 0 && g.maxSteps < g.minSteps {
		return nil, &setting.Error{Name: "maxSteps", Value: g.maxSteps, Reason: "0, or an integer from minSteps"}
	}
	return g, nil
}

func (g *limited) history(number int) *history {
	h := g.trials[number]
	if h == nil {
		h = &history{number: number}
		g.trials[number] = h
	}
	return h
}

// Report implements Pruner. The reason is worked out before the protection, which is the dearest to
// ask: it looks at all trials.
func (g *limited) Report(number int, step int64, cost float64) Verdict {
	h := g.history(number)
	first, before := len(h.points) == 0, int64(-1)
	if !first {
		before = h.last().step
	}
	if cost == 0 {
		cost = 0 // -0 would be another text in a reason
	}
	if !h.add(step, cost) {
		return Verdict{}
	}
	if h.completed { // its last reports came after its end
		g.complete(h, first)
	}
	g.rule.seen(h)
	if g.waits != nil {
		g.waits.seen(h)
	}
	if h.ended || !g.open(step) || !g.due(step, before) || g.waits != nil && g.waits.judge(h) == "" {
		return Verdict{}
	}
	if m, ok := g.rule.(asks); ok && m.asks(h, g.Length()) {
		return Verdict{Ask: !g.protected(h)}
	}
	reason := g.rule.judge(h)
	if reason == "" || g.protected(h) {
		return Verdict{}
	}
	beside, better := g.beside(h)
	return Verdict{Stop: true, Reason: reason, Beside: beside, Better: better}
}

// due reports whether a step is a trial's first one in its interval; before is the trial's step before it.
func (g *limited) due(step, before int64) bool {
	return before < step-(step-g.minSteps)%g.interval
}

// beside returns the completed trials with a value at the step of a trial's last point, and how many of them had a
// better one.
func (g *limited) beside(h *history) (list []int, better int) {
	for _, number := range slices.Sorted(maps.Keys(g.trials)) {
		if other := g.trials[number]; other.completed {
			if p, ok := other.at(h.last().step); ok {
				list = append(list, number)
				if p.cost < h.last().cost {
					better++
				}
			}
		}
	}
	return list, better
}

// End implements Pruner.
func (g *limited) End(number int, completed bool, cost float64) {
	h := g.history(number)
	if h.ended {
		return
	}
	h.ended, h.completed, h.final = true, completed, cost
	if completed && len(h.points) > 0 {
		g.complete(h, true)
	}
	g.rule.ended(h)
	if g.waits != nil {
		g.waits.ended(h)
	}
}

// complete counts a completed trial's curve, which is new or longer than it was.
func (g *limited) complete(h *history, isNew bool) {
	if isNew {
		g.completed++
	}
	g.longest = max(g.longest, h.last().step)
}

// LastStep implements Pruner.
func (g *limited) LastStep() int64 {
	if g.maxSteps > 0 {
		return g.maxSteps
	}
	if g.completed < 2 {
		return 0
	}
	for _, h := range g.trials {
		if h.completed && len(h.points) > 0 && h.last().step != g.longest {
			return 0
		}
	}
	return g.longest
}

// open reports whether a trial at a step may be stopped at all. How many steps a whole trial has is
// the setting or, without one, the longest complete curve: until one is known, progress has no
// meaning, and only limits that do not ask for it let a trial be stopped.
func (g *limited) open(step int64) bool {
	if step < g.minSteps || g.completed < g.minCompleted {
		return false
	}
	total := g.Length()
	if total == 0 { // unknown
		return g.minProgress == 0 && g.maxProgress == 1
	}
	progress := float64(step) / float64(total)
	return progress >= g.minProgress && (progress <= g.maxProgress || g.maxProgress == 1)
}

// Length implements Pruner.
func (g *limited) Length() int64 { return cmp.Or(g.maxSteps, g.longest) }

// protected reports whether fewer than protect other trials were better at the step of
// a trial's last point.
func (g *limited) protected(h *history) bool {
	if g.protect == 0 {
		return false
	}
	mine, better := h.last(), 0
	for _, other := range g.trials {
		if other == h {
			continue
		}
		if p, ok := other.at(mine.step); ok && p.best < mine.best {
			better++
			if better == g.protect {
				return false
			}
		}
	}
	return true
}
