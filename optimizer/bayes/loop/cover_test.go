package loop_test

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/acquisition"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// covering proposes what Cover chooses under a process with fixed hyperparameters.
type covering struct {
	hurry context.CancelFunc // called before the search begins, unless nil
	best  *float64           // the value of the choice
}

var kappa = acquisition.UCB{Kappa: 2}

// process conditions on the observations.
func process(d *surrogate.Data) (*gp.Model, error) {
	_, dim := d.X.Dims()
	h := gp.Hyperparameters{Kernel: make([]float64, dim+1), Noise: 1e-4}
	for i := range dim {
		h.Kernel[i] = math.Log(0.25)
	}
	return gp.Condition(kernel.NewMatern52(kernel.Continuous(dim)), h, d.X, d.Y)
}

// Propose implements optimizer.Proposer.
func (c covering) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	d := surrogate.Observe(r.Problem, r.Encoding, surrogate.Options{})
	m, err := process(d)
	if err != nil {
		return nil, nil, err
	}
	l := loop.New(
		ctx, loop.Input{Request: r, Data: d, Models: []bayes.Surrogate{bayes.Gaussian(m)}, Criterion: kappa}, loop.Options{Candidates: 20},
	)
	if c.hurry != nil {
		c.hurry()
	}
	note := func(_ context.Context, t *loop.Turn) (s optimizer.Suggestion, picked bool) {
		if t.Found {
			*c.best = t.Best.Value
		}
		return s, false
	}
	return l.Fill(ctx, nil, r.N, []loop.Strategy{l.Score, l.Cover(200), note, l.PickBest}), nil, nil
}

// observed returns evaluations of a function of the unit square at six places.
func observed(t *testing.T) *optimizer.Problem {
	t.Helper()
	p := &optimizer.Problem{Space: optimizertest.Cube(t, 2, 0, 1), Direction: study.Minimize, MaxTrials: 50, Parallelism: 1, First: 7}
	for i, x := range [][2]float64{{0.1, 0.2}, {0.7, 0.3}, {0.4, 0.9}, {0.8, 0.8}, {0.3, 0.5}, {0.55, 0.15}} {
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: i + 1, Point: study.Point{"x1": x[0], "x2": x[1]}, Outcome: optimizer.OutcomeCompleted,
			Values: study.Values{math.Sin(7*x[0]) + math.Cos(5*x[1])},
		})
	}
	return p
}

// The samples reach the maximum of the acquisition function: that of a fine grid, or more.
func TestCoverReachesTheMaximum(t *testing.T) {
	p := observed(t)
	m, err := process(surrogate.Observe(p, optimizer.NewEncoding(p.Space), surrogate.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	const steps = 201
	grid := mat.NewDense(steps*steps, 2, nil)
	for i := range steps {
		for j := range steps {
			grid.SetRow(i*steps+j, []float64{float64(i) / (steps - 1), float64(j) / (steps - 1)})
		}
	}
	want := math.Inf(-1)
	mean, variance := m.Posterior(grid)
	for i := range mean {
		want = max(want, 2*math.Sqrt(variance[i])-mean[i])
	}
	for seed := range uint64(5) {
		best := math.Inf(-1)
		batch, _, err := optimizer.Guard(covering{best: &best}).Suggest(t.Context(), p, nil, 1, optimizer.NewRand(seed, 1))
		if err != nil {
			t.Fatal(err)
		}
		x := mat.NewDense(1, 2, []float64{batch[0].Point["x1"].(float64), batch[0].Point["x2"].(float64)})
		mean, variance := m.Posterior(x)
		if value := 2*math.Sqrt(variance[0]) - mean[0]; value < want-1e-3 || math.Abs(value-best) > 1e-9 {
			t.Errorf("seed %d: the choice %v has the value %v, reported as %v; the maximum is %v", seed, batch[0].Point, value, best, want)
		}
	}
}

// Without time, the choice is the best of the places where a search begins.
func TestCoverWithoutTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	best := math.Inf(-1)
	batch, _, err := optimizer.Guard(covering{hurry: cancel, best: &best}).Suggest(ctx, observed(t), nil, 1, optimizer.NewRand(1, 1))
	if err != nil || len(batch) != 1 || math.IsInf(best, -1) || batch[0].Source != optimizer.SourceModel {
		t.Errorf("suggested %+v with the value %v, %v; want a point of the model", batch, best, err)
	}
}
