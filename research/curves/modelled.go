package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/curves"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

const (
	// fewest losses make a model; before that trials begin at places of a Sobol sequence.
	fewest = 8
	// spread and near are how many places for a new trial are compared: over the whole cube, or
	// of the pool, and around the best trials.
	spread, near = 256, 128
)

// around is the standard deviation of the steps away from the best trials. A place that is closer to
// one of them is worth as much as that one to the model, so that it would begin the same trial
// again and again in place of going on with it.
const around = 0.2

// modelled is the policy of a model of curves.
type modelled struct {
	*world
	thaws  bool // a trial that was left can go on later
	rows   bool // new trials are chosen among the pool's rows, and not anywhere
	grid   []int64
	rng    *rand.Rand
	design func(x []float64)
	warm   *gp.Hyperparameters
	fitted int // losses of the last fit
}

func newModelled(w *world, thaws, rows bool) *modelled {
	rng := rand.New(rand.NewPCG(w.seed, 1))
	return &modelled{
		world: w, thaws: thaws, rows: rows, grid: curves.Grid(int64(w.epochs)), rng: rng, design: loop.SpreadOut(w.encoding.Dim(), rng),
	}
}

// until returns the step up to which a trial is trained next.
func (m *modelled) until(t *trial) int {
	for _, step := range m.grid {
		if int(step) > t.step {
			return int(step)
		}
	}
	return t.step
}

// next implements policy. The worth of a trial is its expected improvement at its last step.
func (m *modelled) next(ctx context.Context, done *trial) (*trial, int, error) {
	if done != nil && done.step == len(done.losses) {
		done.ended = true
	}
	all, known := m.known()
	if known < fewest {
		if done != nil && !done.ended {
			return done, m.until(done), nil
		}
		x := make([]float64, m.encoding.Dim())
		m.design(x)
		return m.fresh(x)
	}
	model, err := m.model(ctx, all, known)
	if err != nil {
		return nil, 0, err
	}
	outlook, places := model.Outlook(), m.candidates()
	begin := outlook.Fresh(places)
	best, place := math.Inf(-1), -1
	for i, e := range begin {
		if v := model.LogEI(e); v > best {
			best, place = v, i
		}
	}
	var goes *trial
	if m.thaws {
		goes = m.worthMore(model, outlook, best)
	} else {
		goes = m.goesOn(outlook, done, begin)
	}
	switch {
	case goes != nil:
		return goes, m.until(goes), nil
	case place >= 0:
		return m.fresh(places[place])
	}
	return nil, 0, nil
}

// worthMore returns the trial that waits and is worth most, nil if none is worth more than a new one.
func (m *modelled) worthMore(model *curves.Model, outlook *curves.Outlook, fresh float64) (best *trial) {
	var waiting []int
	for i, t := range m.trials {
		if !t.running && !t.ended {
			waiting = append(waiting, i)
		}
	}
	for i, e := range outlook.Curves(waiting) {
		if v := model.LogEI(e); v >= fresh {
			fresh, best = v, m.trials[waiting[i]]
		}
	}
	return best
}

// goesOn returns the trial that is done with a job if it goes on, and nil if it ends, for good: it
// goes on as long as it may well end below what the best new one is likely to.
func (m *modelled) goesOn(outlook *curves.Outlook, done *trial, begin []curves.Expected) *trial {
	if done == nil || done.ended {
		return nil
	}
	bound := math.Inf(1)
	for _, e := range begin {
		bound = min(bound, e.Mean-0.75*e.SD)
	}
	if e := outlook.Curves([]int{done.number - 1})[0]; e.Mean-1.5*e.SD <= bound {
		return done
	}
	done.ended = true
	return nil
}

// fresh begins a trial at a place.
func (m *modelled) fresh(x []float64) (*trial, int, error) {
	t := m.begin(x)
	if t == nil {
		return nil, 0, nil
	}
	return t, m.until(t), nil
}

// known returns what all trials have reported, and how many finite losses that are.
func (m *modelled) known() (list []curves.Curve, finite int) {
	for _, t := range m.trials {
		c := curves.Curve{X: t.x, Runs: t.running}
		for step, loss := range t.losses[:t.step] {
			c.Reports = append(c.Reports, curves.Report{Step: int64(step + 1), Cost: loss})
			if !math.IsNaN(loss) {
				finite++
			}
		}
		list = append(list, c)
	}
	return list, finite
}

// model returns the model of all curves. Its hyperparameters are fitted again when known, how many losses
// there are, has grown.
func (m *modelled) model(ctx context.Context, all []curves.Curve, known int) (*curves.Model, error) {
	fit := curves.Due(known, m.fitted)
	model, err := curves.New(ctx, surrogate.Columns(m.encoding), all, int64(m.epochs), m.warm, fit, m.rng)
	if err != nil {
		return nil, err
	}
	if fit {
		h := model.Hyperparameters()
		m.warm, m.fitted = &h, known
	}
	return model, nil
}

// candidates returns the places for a new trial that are compared.
func (m *modelled) candidates() [][]float64 {
	if m.rows {
		return m.unused()
	}
	d := m.encoding.Dim()
	list := make([][]float64, 0, spread+near)
	even := loop.SpreadOut(d, m.rng)
	for range spread {
		x := make([]float64, d)
		even(x)
		list = append(list, x)
	}
	good := loop.Lowest(each.Of(m.trials, (*trial).least), 5)
	for range near {
		x := slices.Clone(m.trials[good[m.rng.IntN(len(good))]].x)
		for c := range x {
			x[c] = min(1, max(0, x[c]+around*m.rng.NormFloat64()))
		}
		list = append(list, x)
	}
	return list
}

// unused returns the places of some trainings that have not begun.
func (m *modelled) unused() (list [][]float64) {
	for _, i := range m.rng.Perm(len(m.places)) {
		if !m.used[i] && len(list) < spread {
			list = append(list, m.places[i])
		}
	}
	return list
}
