package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/research/peer"
	"github.com/fantasia-hpo/fantasia/study"
)

// earlierPoints is how many trainings of each other task an earlier study has, finals how many trainings a run has.
const earlierPoints, finals = 128, 128

// final is a run on the losses with which trainings end, in the form of research/benchmarks/transfer.py.
type final struct {
	Task  string `json:"task"`
	Tuner string `json:"tuner"`
	Mode  string `json:"mode"`
	Seed  int    `json:"seed"`
	// Regret, after each training, is how much worse the best one so far is than the best of all, in percent of how much worse a guess is.
	Regret []float64 `json:"regret"`
}

func (f *final) key() string { return fmt.Sprint(f.Task, " ", f.Tuner, " ", f.Mode, " ", f.Seed) }

// playFinals plays tuners on the final losses of all tasks, each with the others as earlier studies. A tuner is fantasia:NAME of
// transfer.py, or one that peer.py plays, with :true if it knows the earlier studies.
// Mode is batch (of eight), async (with eight workers) or sequential.
func playFinals(ctx context.Context, files []string, mode, tuners, python string, first, seeds int, out string) error {
	done, err := lines.Played(out, (*final).key)
	if err != nil {
		return err
	}
	var pools []*pool
	for _, file := range files {
		p, err := readTask(file)
		if err != nil {
			return err
		}
		p.best = math.Inf(1)
		for _, t := range p.trainings {
			if end := t.losses[len(t.losses)-1]; end < p.best {
				p.best = end
			}
		}
		pools = append(pools, p)
	}
	for seed := first; seed < first+seeds; seed++ {
		for _, p := range pools {
			for tuner := range strings.SplitSeq(tuners, ",") {
				f := &final{Task: "TaskSet:" + p.name, Tuner: tuner, Mode: mode, Seed: seed}
				if done[f.key()] {
					continue
				}
				if f.Regret, err = playFinal(ctx, p, pools, mode, tuner, python, seed); err == nil {
					err = lines.Append(out, f)
				}
				if err != nil {
					return fmt.Errorf("%s on %s with seed %d: %w", tuner, p.name, seed, err)
				}
			}
		}
	}
	return nil
}

// earlierOf returns other tasks as earlier studies: of each as many trainings that did not diverge, drawn at random.
func earlierOf(p *pool, pools []*pool, seed int) []optimizer.Earlier {
	var all []optimizer.Earlier
	for _, other := range pools {
		if other == p {
			continue
		}
		e := optimizer.Earlier{Name: other.name}
		rng := rand.New(rand.NewPCG(lines.Seed(p.name+" "+other.name, seed), 3))
		for _, i := range rng.Perm(len(other.trainings)) {
			t := &other.trainings[i]
			if end := t.losses[len(t.losses)-1]; !math.IsNaN(end) && len(e.Points) < earlierPoints {
				e.Points, e.Costs = append(e.Points, t.point), append(e.Costs, end)
			}
		}
		all = append(all, e)
	}
	return all
}

// playFinal plays a run. A tuner is told where the training is that it got: the nearest unused one to what it asked for.
func playFinal(ctx context.Context, p *pool, pools []*pool, mode, tuner, python string, seed int) (regret []float64, err error) {
	workers := 8
	if mode == "sequential" {
		workers = 1
	}
	w, err := newWorld(p, seed, nil)
	if err != nil {
		return nil, err
	}
	s := session.Session{Problem: optimizer.Problem{
		Space: w.space, Direction: study.Minimize, MaxTrials: finals, Parallelism: workers, Seed: w.seed,
	}}
	name, knows := strings.CutSuffix(tuner, ":true")
	if knows {
		s.Problem.Earlier = earlierOf(p, pools, seed)
	}
	if strings.HasPrefix(name, "fantasia") {
		s.Optimizer, err = registry.New("hebo", nil)
	} else {
		var o *outside
		if o, err = newOutside(python, name, w); err == nil {
			defer func() { err = errors.Join(err, o.Close()) }()
		}
		s.Optimizer = o
	}
	if err != nil {
		return nil, err
	}
	rng, now, best := rand.New(rand.NewPCG(w.seed, 1)), 0.0, 100.0
	var running session.Agenda[*trial]
	for len(regret) < finals {
		busy := len(s.Problem.Pending)
		if free := min(workers-busy, finals-s.Asked()); free > 0 && (mode != "batch" || busy == 0) {
			batch, err := s.Ask(ctx, free)
			if err != nil {
				return nil, fmt.Errorf("ask: %w", err)
			}
			for i, suggestion := range batch {
				t := w.begin(w.encoding.Encode(suggestion.Point))
				s.Problem.Pending[busy+i].Point = t.point
				running.Add(now+math.Exp(rng.NormFloat64()), t.number, t)
			}
		}
		var next *trial
		next, now = running.Next()
		o := optimizer.Observation{Trial: next.number, Point: next.point, Outcome: optimizer.OutcomeFailed}
		if losses := next.losses; !math.IsNaN(losses[len(losses)-1]) {
			o.Outcome, o.Values = optimizer.OutcomeCompleted, study.Values{losses[len(losses)-1]}
			best = min(best, 100*p.regret(o.Values.First()))
		}
		s.Tell(o)
		regret = append(regret, best)
	}
	return regret, nil
}

// outside is a tuner that peer.py plays in a process of its own, which serves a single run.
type outside struct {
	*peer.Process
	sent  int // observations
	began bool
	name  string
	world *world
}

func newOutside(python, name string, w *world) (*outside, error) {
	p, err := peer.Start(python, "research/curves/peer.py")
	return &outside{Process: p, name: name, world: w}, err
}

// place is a point in the unit cube with its loss, NaN of one that failed.
type place struct {
	X    []float64 `json:"x"`
	Loss *float64  `json:"loss"`
}

// Suggest implements optimizer.Optimizer for the requests of one run, in their order.
func (o *outside) Suggest(_ context.Context, p *optimizer.Problem, _ optimizer.State, n int, _ *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	if !o.began {
		o.began = true
		earlier := [][]place{}
		for _, e := range p.Earlier {
			var list []place
			for i := range e.Points {
				list = append(list, place{o.world.encoding.Encode(e.Points[i]), &e.Costs[i]})
			}
			earlier = append(earlier, list)
		}
		about := map[string]any{"tuner": o.name, "seed": uint32(p.Seed), "dim": o.world.encoding.Dim(), "earlier": earlier}
		if err := o.Send(about); err != nil {
			return nil, nil, err
		}
	}
	tell := []place{}
	for _, observation := range p.Observations[o.sent:] {
		one := place{X: o.world.encoding.Encode(observation.Point)}
		if observation.Outcome == optimizer.OutcomeCompleted {
			loss := observation.Values.First()
			one.Loss = &loss
		}
		tell = append(tell, one)
	}
	o.sent = len(p.Observations)
	var xs [][]float64
	if err := o.Ask(map[string]any{"tell": tell, "ask": n}, &xs); err != nil {
		return nil, nil, err
	}
	batch := make([]optimizer.Suggestion, len(xs))
	for i, x := range xs {
		batch[i].Point = o.world.encoding.Decode(x)
	}
	return batch, nil, nil
}
