package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/research/lines"
)

// The search of the paper's Table 3: even points, and as many around the best one at normal steps, whose size decays.
const (
	candidates = 200
	step       = 0.25
	decay      = 0.995
)

// published plays the paper's own transformers, as far as they were trained into a folder.
type published struct {
	folder  string
	keep    string // the file that keeps the runs
	trials  int
	initial int
	seeds   int
	chance  int // seeds of random search
	// program plays an optimiser of the program, which methods name fantasia:NAME.
	program func(ctx context.Context, name string, f testfunc.Function, seed int) (float64, error)
}

// program marks the methods that are optimisers of the program.
const program = "fantasia:"

// made is a run that was played. Random search has the method random.
type made struct {
	Function string  `json:"function"`
	Method   string  `json:"method"`
	Columns  int     `json:"columns"`
	Seed     int     `json:"seed"`
	Trials   int     `json:"trials"`
	Regret   float64 `json:"regret"`
}

func (p published) row(ctx context.Context, dim int, methods []string) error {
	kept, err := p.kept()
	if err != nil {
		return err
	}
	functions, err := testfunc.Suite("pt")
	if err != nil {
		return err
	}
	functions = slices.DeleteFunc(functions, func(f testfunc.Function) bool { return f.Dim() != dim })
	regrets := map[string][][]float64{}
	for _, method := range append([]string{"random"}, methods...) {
		network, err := p.network(method, dim)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		seeds := p.seeds
		if method == "random" {
			seeds = p.chance
		}
		for _, f := range functions {
			var of []float64
			for seed := range seeds {
				run := made{Function: f.Name, Method: method, Columns: dim, Seed: seed, Trials: p.trials}
				regret, found := kept[run]
				if !found {
					if regret, err = p.make(ctx, run, f, network); err != nil {
						return err
					}
				}
				of = append(of, regret)
			}
			regrets[method] = append(regrets[method], of)
		}
	}
	fmt.Printf("| %d | %d |", dim, len(functions))
	for _, method := range methods {
		if regrets[method] == nil {
			fmt.Print(" |")
			continue
		}
		fmt.Print(cell(regrets[method], regrets["random"]))
	}
	fmt.Println()
	return nil
}

// kept returns the regrets of the runs that were played before, by the run without its regret.
func (p published) kept() (map[made]float64, error) {
	runs, err := lines.Read[made](p.keep)
	kept := map[made]float64{}
	for _, run := range runs {
		regret := run.Regret
		run.Regret = 0
		kept[run] = regret
	}
	return kept, err
}

// make plays a run and keeps it.
func (p published) make(ctx context.Context, run made, f testfunc.Function, network *histogram) (float64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	name, ours := strings.CutPrefix(run.Method, program)
	if !ours {
		run.Regret = p.play(f, network, run.Seed)
	} else if regret, err := p.program(ctx, name, f, run.Seed); err == nil {
		run.Regret = regret
	} else {
		return 0, err
	}
	return run.Regret, lines.Append(p.keep, run)
}

// network reads the network that a method searches with. Random search and the program's optimisers have none.
func (p published) network(method string, dim int) (*histogram, error) {
	if method == "random" || strings.HasPrefix(method, program) {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(p.folder, fmt.Sprintf("%s-%d.safetensors", method, dim)))
	if err != nil {
		return nil, err
	}
	return loadHistogram(data)
}

// play minimises a function and returns the regret. All methods start from the same points with a seed.
func (p published) play(f testfunc.Function, network *histogram, seed int) float64 {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	var x [][]float64
	var y []float64
	for trial := range p.trials {
		at := even(f.Dim(), rng)
		if network != nil && trial >= p.initial {
			at = next(network, x, y, step*math.Pow(decay, float64(trial-p.initial)), rng)
		}
		x, y = append(x, at), append(y, f.Value(f.Scale(at)))
	}
	return slices.Min(y) - f.Minimum
}

func even(dim int, rng *rand.Rand) []float64 {
	x := make([]float64, dim)
	for i := range x {
		x[i] = rng.Float64()
	}
	return x
}

// next returns the candidate of the largest expected improvement, after standardised outcomes.
func next(network *histogram, x [][]float64, y []float64, size float64, rng *rand.Rand) []float64 {
	mean, sd := stat.PopMeanStdDev(y, nil)
	if !(sd > 0) {
		sd = 1
	}
	z, best := make([]float64, len(y)), 0
	for i, v := range y {
		z[i] = (v - mean) / sd
		if v < y[best] {
			best = i
		}
	}
	var places [][]float64
	for range candidates {
		places = append(places, even(len(x[0]), rng))
	}
	for range candidates {
		near := slices.Clone(x[best])
		for i := range near {
			near[i] = min(1, max(0, near[i]+size*rng.NormFloat64()))
		}
		places = append(places, near)
	}
	p := network.predict(x, z, places)
	chosen, most := 0, math.Inf(-1)
	for i := range places {
		if v := network.improvement(p.RawRowView(i), z[best]); v > most {
			chosen, most = i, v
		}
	}
	return places[chosen]
}
