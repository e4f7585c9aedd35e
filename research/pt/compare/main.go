// Command compare compares the optimiser pt, and four ways of training its transformer,
// with random search and gp, as in Table 2 of Maraval et al. (2022): make paper-pt, make paper-pt-variants.
// With -paper it plays the paper's own transformers instead, which train/paper.py trains: make paper-pt-table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// variants returns the paper's, in the order of its Table 2.
func variants() []string { return []string{"pt", "pt-r", "pt-v", "pt-vr"} }

func main() { lifecycle.Main("transformer", run) }

// plan is what is played.
type plan struct {
	weights string // empty to leave the variants out
	methods []string
	trials  int
	initial int
	seeds   int
	chance  int // seeds of random search
	jobs    int
}

func run(ctx context.Context) error {
	var p plan
	dims := flag.String("dims", "1,2,5,10", "dimensions to play, separated by commas")
	flag.StringVar(&p.weights, "weights", "", "folder with VARIANT-COLUMNS.safetensors, to play the variants")
	paper := flag.String("paper", "", "folder with the paper's own transformers, to play those instead")
	keep := flag.String("keep", "", "with --paper: the file that keeps the runs")
	flag.IntVar(&p.trials, "trials", 60, "evaluations of a run")
	flag.IntVar(&p.initial, "initial", 10, "evaluations of the initial design")
	flag.IntVar(&p.seeds, "seeds", 3, "number of seeds")
	flag.IntVar(&p.chance, "random-seeds", 100, "number of seeds of random search, with which the others are compared")
	flag.IntVar(&p.jobs, "jobs", 1, "runs at once")
	methods := flag.String("methods", "", "methods to play, separated by commas (default pt,gp, or the variants with --weights; "+
		"with --paper the variants, fantasia:pt and fantasia:gp)")
	flag.Parse()
	if (*paper == "") != (*keep == "") {
		return errors.New("want --paper and --keep together")
	}
	if flag.NArg() > 0 || min(p.trials, p.initial, p.seeds, p.chance, p.jobs) < 1 {
		return errors.New("want positive numbers, and no arguments beside the flags")
	}
	switch {
	case *methods != "":
		p.methods = strings.Split(*methods, ",")
	case *paper != "":
		p.methods = append(variants(), program+"pt", program+"gp")
	case p.weights != "":
		p.methods = variants()
	default:
		p.methods = []string{"pt", "gp"}
	}
	fmt.Printf("| dimension | functions | %s |\n| ---: | ---: |%s\n", strings.Join(p.methods, " | "),
		strings.Repeat(" ---: |", len(p.methods)))
	for _, text := range strings.Split(*dims, ",") {
		dim, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("dimension %q: %w", text, err)
		}
		if *paper != "" {
			q := published{
				folder: *paper, keep: *keep, trials: p.trials, initial: p.initial, seeds: p.seeds, chance: p.chance, program: p.program,
			}
			if err := q.row(ctx, dim, p.methods); err != nil {
				return err
			}
			continue
		}
		if err := p.row(ctx, dim); err != nil {
			return err
		}
	}
	return nil
}

// row plays the functions of a dimension and prints the methods' mean improvements, with their
// standard errors over the seeds.
func (p plan) row(ctx context.Context, dim int) error {
	functions, err := testfunc.Suite("pt")
	if err != nil {
		return err
	}
	functions = slices.DeleteFunc(functions, func(f testfunc.Function) bool { return f.Dim() != dim })
	methods := append([]string{"random"}, p.methods...)
	regrets, err := p.regrets(ctx, methods, functions)
	if err != nil {
		return err
	}
	fmt.Printf("| %d | %d |", dim, len(functions))
	for i, method := range methods[1:] {
		for j, f := range functions {
			fmt.Fprintf(os.Stderr, "%s, %s: %.3g, random %.3g\n", f.Name, method, stat.Mean(regrets[i+1][j], nil), stat.Mean(regrets[0][j], nil))
		}
		fmt.Print(cell(regrets[i+1], regrets[0]))
	}
	fmt.Println()
	return nil
}

// cell formats the mean improvement over random search, given the regrets by function and seed.
func cell(regrets, random [][]float64) string {
	total, square, n := 0.0, 0.0, float64(len(regrets))
	for j, found := range regrets {
		chance := stat.Mean(random[j], nil)
		total += improvement(stat.Mean(found, nil), chance) / n
		e := 100 * standardError(found) / chance / n
		square += e * e
	}
	return fmt.Sprintf(" %.1f ± %.1f |", total, math.Sqrt(square))
}

// improvement returns by how many percent a mean regret is below random search's, at least 0 as
// in the paper.
func improvement(regret, random float64) float64 {
	return max(0, 100*(1-regret/random))
}

// standardError returns that of the mean, 0 for a single value.
func standardError(v []float64) float64 {
	if len(v) < 2 {
		return 0
	}
	return stat.StdErr(stat.StdDev(v, nil), float64(len(v)))
}

func (p plan) optimizer(name string, dim int) (optimizer.Optimizer, error) {
	if name == "random" {
		return registry.New(name, nil)
	}
	initial := map[string]any{"initial": p.initial}
	columns := map[int]int{1: 1, 2: 2, 5: 5, 10: 12}[dim]
	file := filepath.Join(p.weights, fmt.Sprintf("%s-%d.safetensors", name, columns))
	if _, err := os.Stat(file); p.weights == "" || err != nil {
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

// regrets returns, by method, function and seed, how far the best value is above the minimum.
func (p plan) regrets(ctx context.Context, methods []string, functions []testfunc.Function) ([][][]float64, error) {
	regrets := make([][][]float64, len(methods))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(p.jobs)
	for i, name := range methods {
		seeds := p.seeds
		if name == "random" {
			seeds = p.chance
		}
		for j, f := range functions {
			o, err := p.optimizer(name, f.Dim())
			if err != nil {
				return nil, errors.Join(err, g.Wait())
			}
			regrets[i] = append(regrets[i], make([]float64, seeds))
			found := regrets[i][j]
			for seed := range seeds {
				g.Go(func() error {
					var err error
					if found[seed], err = p.play(ctx, o, f, uint64(seed)); err != nil {
						return fmt.Errorf("%s on %s: %w", name, f.Name, err)
					}
					if name != "random" {
						fmt.Fprintf(os.Stderr, "%s, %s, seed %d: %.3g\n", f.Name, name, seed, found[seed])
					}
					return nil
				})
			}
		}
	}
	return regrets, g.Wait()
}

// program plays an optimiser by its name.
func (p plan) program(ctx context.Context, name string, f testfunc.Function, seed int) (float64, error) {
	o, err := p.optimizer(name, f.Dim())
	if err != nil {
		return 0, err
	}
	return p.play(ctx, o, f, uint64(seed))
}

// play minimises a function, one evaluation after the other, and returns the regret.
func (p plan) play(ctx context.Context, o optimizer.Optimizer, f testfunc.Function, seed uint64) (float64, error) {
	parameters := make([]study.Parameter, f.Dim())
	for i := range parameters {
		parameters[i] = study.Parameter{Name: fmt.Sprintf("x%d", i+1), Type: study.Float, Min: &f.Lower[i], Max: &f.Upper[i]}
	}
	s, err := celspace.New(parameters, nil, nil)
	if err != nil {
		return 0, err
	}
	play := session.Session{Optimizer: o, Problem: optimizer.Problem{Space: s, Direction: study.Minimize, MaxTrials: p.trials, Parallelism: 1,
		Seed: seed}}
	best := 0.0
	for trial := 1; trial <= p.trials; trial++ {
		batch, err := play.Ask(ctx, 1)
		if err != nil {
			return 0, err
		}
		x := make([]float64, f.Dim())
		for i := range x {
			x[i], _ = study.Number(batch[0].Point[parameters[i].Name])
		}
		value := f.Value(x)
		if trial == 1 || value < best {
			best = value
		}
		play.Tell(optimizer.Observation{
			Trial: trial, Point: batch[0].Point, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value},
		})
	}
	return best - f.Minimum, nil
}
