package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/uhe"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// places is the number of points at which predictions are compared with a function. The paper has
// about 250,000, which take as long as the search.
const places = 20000

// played is a run of a method on a function, one evaluation at a time.
type played struct {
	Function string    `json:"function"`
	Method   string    `json:"method"`
	Prior    uhe.Prior `json:"prior"`
	Seed     uint64    `json:"seed"`
	Trials   int       `json:"trials"`
	// Error is the mean squared error of the predictions after all trials, as a share of the
	// function's variance.
	Error float64 `json:"error"`
	// Regret is how far the best evaluation is above the minimum.
	Regret float64 `json:"regret"`
}

// with returns the run without what it found.
func (p played) with() played {
	p.Error, p.Regret = 0, 0
	return p
}

// functions plays the paper's Figures 2 and 4: every method with every prior on each function. The
// file keeps the runs, and what it has is not played again.
type functions struct {
	names, methods []string
	priors         []uhe.Prior
	seeds, trials  int
	keep           string
}

func (f functions) run(ctx context.Context) error {
	kept, err := lines.Read[played](f.keep)
	if err != nil {
		return err
	}
	known := map[played]bool{}
	for _, p := range kept {
		known[p.with()] = true
	}
	for seed := range f.seeds {
		for _, name := range f.names {
			for _, prior := range f.priors {
				for _, method := range f.methods {
					p := played{Function: name, Method: method, Prior: prior, Seed: uint64(seed), Trials: f.trials}
					if known[p] {
						continue
					}
					if err := p.play(ctx); err != nil {
						return fmt.Errorf("%s on %s, seed %d: %w", method, name, seed, err)
					}
					if err := lines.Append(f.keep, p); err != nil {
						return err
					}
					kept = append(kept, p)
				}
			}
		}
		fmt.Fprintf(os.Stderr, "%d of %d seeds\n", seed+1, f.seeds)
	}
	for _, prior := range f.priors {
		fmt.Printf("Regret, prior %s:\n\n", prior)
		f.write(os.Stdout, kept, prior, func(p played) float64 { return p.Regret })
		fmt.Printf("log10 of the error of predictions, prior %s:\n\n", prior)
		f.write(os.Stdout, kept, prior, func(p played) float64 { return math.Log10(p.Error) })
	}
	return nil
}

// write prints the means by method with their standard errors; then what the first method has more than the
// others in the same seeds, with 95% intervals.
func (f functions) write(out io.Writer, kept []played, prior uhe.Prior, of func(played) float64) {
	found := map[string]map[string]map[uint64]float64{} // by function, method and seed
	for _, p := range kept {
		if p.Prior != prior || p.Trials != f.trials {
			continue
		}
		if found[p.Function] == nil {
			found[p.Function] = map[string]map[uint64]float64{}
		}
		if found[p.Function][p.Method] == nil {
			found[p.Function][p.Method] = map[uint64]float64{}
		}
		found[p.Function][p.Method][p.Seed] = of(p)
	}
	head := fmt.Sprintf("%s |\n| --- |%s\n", strings.Join(f.names, " | "), strings.Repeat(" ---: |", len(f.names)))
	fmt.Fprint(out, "| | ", head)
	for _, method := range f.methods {
		fmt.Fprintf(out, "| `%s` |", method)
		for _, name := range f.names {
			var values []float64
			for seed := range f.seeds {
				if v, ok := found[name][method][uint64(seed)]; ok {
					values = append(values, v)
				}
			}
			mean, sd := stat.MeanStdDev(values, nil)
			fmt.Fprintf(out, " %.3f ± %.3f |", mean, stat.StdErr(sd, float64(len(values))))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "\n| `%s` less | %s", f.methods[0], head)
	for _, method := range f.methods[1:] {
		fmt.Fprintf(out, "| `%s` |", method)
		for _, name := range f.names {
			var differences []float64
			for seed := range f.seeds {
				a, played := found[name][f.methods[0]][uint64(seed)]
				if b, too := found[name][method][uint64(seed)]; played && too {
					differences = append(differences, a-b)
				}
			}
			mean, low, high := interval(differences)
			fmt.Fprintf(out, " %+.3f (%+.3f to %+.3f) |", mean, low, high)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
}

// interval returns the mean and its 95% interval by Student's t; one or no value has none.
func interval(values []float64) (mean, low, high float64) {
	mean, sd := stat.MeanStdDev(values, nil)
	if len(values) < 2 {
		return mean, math.Inf(-1), math.Inf(1)
	}
	n := float64(len(values))
	half := stat.StdErr(sd, n) * distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975)
	return mean, mean - half, mean + half
}

// play sets what the run finds.
func (p *played) play(ctx context.Context) error {
	f, err := testfunc.Get(p.Function)
	if err != nil {
		return err
	}
	domain, err := box(f.Dim())
	if err != nil {
		return err
	}
	options := uhe.Options{Method: uhe.Method(p.Method), Prior: p.Prior, Kappa: 1.96}
	tuner := uhe.New(options)
	if p.Method == chance {
		options.Method, tuner = uhe.MAP, evenly()
	}
	s := session.Session{Optimizer: tuner, Problem: optimizer.Problem{Space: domain, Direction: study.Minimize, MaxTrials: p.Trials,
		Parallelism: 1, Seed: p.Seed}}
	best := math.Inf(1)
	for trial := 1; trial <= p.Trials; trial++ {
		batch, err := s.Ask(ctx, 1)
		if err != nil {
			return err
		}
		value := f.Value(f.Scale(unit(batch[0].Point, f.Dim())))
		best = min(best, value)
		s.Tell(optimizer.Observation{Trial: trial, Point: batch[0].Point, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value}})
	}
	from := s.State
	if p.Method == chance {
		from = nil
	}
	e, err := uhe.NewEstimate(ctx, options, s.Snapshot(), from)
	if err != nil {
		return err
	}
	p.Regret, p.Error = best-f.Minimum, share(e, f, rand.New(rand.NewPCG(p.Seed, 3)))
	return nil
}

// share returns the mean squared error of the predictions at random points, as a share of the
// function's variance over them.
func share(e *uhe.Estimate, f testfunc.Function, rng *rand.Rand) float64 {
	const together = 1000 // bounds the memory of a prediction
	var squares float64
	truth := make([]float64, 0, places)
	for range places / together {
		where := make([]study.Point, together)
		for i := range where {
			u := make([]float64, f.Dim())
			where[i] = study.Point{}
			for c := range u {
				u[c] = rng.Float64()
				where[i][column(c)] = u[c]
			}
			truth = append(truth, f.Value(f.Scale(u)))
		}
		for i, v := range e.Predict(where) {
			squares += squared(v - truth[len(truth)-together+i])
		}
	}
	return squares / places / stat.PopVariance(truth, nil)
}

func column(c int) string { return fmt.Sprint("x", c+1) }

// unit returns the coordinates of a point of a box.
func unit(p study.Point, dim int) []float64 {
	u := make([]float64, dim)
	for c := range u {
		u[c], _ = p[column(c)].(float64) // a box has no other
	}
	return u
}

// box returns the unit cube.
func box(dim int) (*space.Space, error) {
	low, high := 0.0, 1.0
	parameters := make([]study.Parameter, dim)
	for c := range parameters {
		parameters[c] = study.Parameter{Name: column(c), Type: study.Float, Min: &low, Max: &high}
	}
	return celspace.New(parameters, nil, nil)
}
