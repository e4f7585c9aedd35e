// Command compare compares the optimiser pt, and four ways of training its transformer,
// with random search and gp, as in Table 2 of Maraval et al. (2022): make paper-pt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// variants returns the paper's, in the order of its Table 2.
func variants() []string { return []string{"pt", "pt-r", "pt-v", "pt-vr"} }

// wide is a model of up to 12 columns. It predicts too badly to be served.
const wide = "optimizer/papers/pt/testdata/columns12.safetensors"

func main() { lifecycle.Main("transformer", run) }

// plan is what is played.
type plan struct {
	weights string // empty to leave the variants out
	trials  int
	initial int
	seeds   int
	jobs    int
}

func run(ctx context.Context) error {
	var p plan
	dims := flag.String("dims", "1,2,5,10", "dimensions to play, separated by commas")
	flag.StringVar(&p.weights, "weights", "", "folder with VARIANT-COLUMNS.safetensors, to play the variants")
	flag.IntVar(&p.trials, "trials", 60, "evaluations of a run")
	flag.IntVar(&p.initial, "initial", 10, "evaluations of the initial design")
	flag.IntVar(&p.seeds, "seeds", 2, "number of seeds")
	flag.IntVar(&p.jobs, "jobs", 1, "runs at once")
	flag.Parse()
	if flag.NArg() > 0 || p.trials < 1 || p.initial < 1 || p.seeds < 1 || p.jobs < 1 {
		return errors.New("want positive numbers, and no arguments beside the flags")
	}
	shown := p.methods()[1:]
	fmt.Printf("| dimension | functions | %s |\n| ---: | ---: |%s\n", strings.Join(shown, " | "), strings.Repeat(" ---: |", len(shown)))
	for _, text := range strings.Split(*dims, ",") {
		dim, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("dimension %q: %w", text, err)
		}
		if err := p.row(ctx, dim); err != nil {
			return err
		}
	}
	return nil
}

// methods returns what is played, random search first.
func (p plan) methods() []string {
	if p.weights == "" {
		return []string{"random", "pt", "gp"}
	}
	return append([]string{"random"}, append(variants(), "gp")...)
}

// row plays the functions of a dimension and prints the methods' mean improvements.
func (p plan) row(ctx context.Context, dim int) error {
	functions, err := testfunc.Suite("pt")
	if err != nil {
		return err
	}
	methods := p.methods()
	sums, played := make([]float64, len(methods)), 0
	for _, f := range functions {
		if f.Dim() != dim {
			continue
		}
		played++
		regrets := make([]float64, len(methods))
		for i, name := range methods {
			o, err := p.optimizer(name, dim)
			if err != nil {
				return err
			}
			if regrets[i], err = p.regret(ctx, o, f); err != nil {
				return fmt.Errorf("%s on %s: %w", name, f.Name, err)
			}
			sums[i] += improvement(regrets[i], regrets[0])
		}
		fmt.Fprintf(os.Stderr, "%s: %v %.3g\n", f.Name, methods, regrets)
	}
	fmt.Printf("| %d | %d |", dim, played)
	for i := range methods[1:] {
		fmt.Printf(" %.1f |", sums[i+1]/float64(played))
	}
	fmt.Println()
	return nil
}

// improvement returns by how many percent a regret is below random search's, at least 0 as
// in the paper.
func improvement(regret, random float64) float64 {
	return max(0, 100*(1-regret/random))
}

func (p plan) optimizer(name string, dim int) (optimizer.Optimizer, error) {
	if name == "random" {
		return registry.New(name, nil)
	}
	initial := map[string]any{"initial": p.initial}
	file := filepath.Join(p.weights, fmt.Sprintf("%s-%d.safetensors", name, dim))
	switch {
	case name == "gp":
		return registry.New(name, initial)
	case p.weights == "" && dim == 10:
		file = wide
	case p.weights == "":
		return registry.New(name, initial)
	}
	gp, err := registry.New("gp", initial)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	models, err := pt.FromFiles(data)
	if err != nil {
		return nil, err
	}
	settings, err := pt.Settings().Parse(initial)
	if err != nil {
		return nil, err
	}
	return pt.New(pt.FromSettings(settings), models, gp.(pt.Successor)), nil
}

// regret returns the mean over the seeds of how far the best value is above the minimum.
func (p plan) regret(ctx context.Context, o optimizer.Optimizer, f testfunc.Function) (float64, error) {
	regrets := make([]float64, p.seeds)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(p.jobs)
	for seed := range p.seeds {
		g.Go(func() (err error) {
			regrets[seed], err = p.play(ctx, o, f, uint64(seed))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	mean := 0.0
	for _, r := range regrets {
		mean += r / float64(p.seeds)
	}
	return mean, nil
}

// play minimises a function, one evaluation after the other, and returns the regret.
func (p plan) play(ctx context.Context, o optimizer.Optimizer, f testfunc.Function, seed uint64) (float64, error) {
	parameters := make([]study.Parameter, f.Dim())
	for i := range parameters {
		parameters[i] = study.Parameter{Name: fmt.Sprintf("x%d", i+1), Type: study.Float, Min: &f.Lower[i], Max: &f.Upper[i]}
	}
	s, err := space.New(parameters, nil, nil)
	if err != nil {
		return 0, err
	}
	problem := optimizer.Problem{Space: s, Direction: study.Minimize, MaxTrials: p.trials, Parallelism: 1, Seed: seed}
	var state optimizer.State
	best := 0.0
	for trial := 1; trial <= p.trials; trial++ {
		problem.First = trial
		given := problem
		batch, next, err := o.Suggest(ctx, &given, state, 1, optimizer.NewRand(seed, trial))
		if err != nil {
			return 0, err
		}
		x := make([]float64, f.Dim())
		for i := range x {
			x[i], _ = study.Number(batch[0].Point[parameters[i].Name])
		}
		value := f.Value(x)
		if state = next; trial == 1 || value < best {
			best = value
		}
		problem.Observations = append(problem.Observations, optimizer.Observation{
			Trial: trial, Point: batch[0].Point, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value},
		})
	}
	return best - f.Minimum, nil
}
