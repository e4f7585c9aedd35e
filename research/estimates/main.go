// Command estimates shows how well a search lets the optimiser uhe, and the methods that its
// paper compares it with, predict the objective and estimate its hyperparameters. With -functions
// it plays the paper's own functions, as its Figures 2 and 4 do: make paper-uhe. Without, the
// objectives are drawn from Gaussian processes, so that the true hyperparameters are known: make
// paper-uhe-estimates.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/optimizer/papers/uhe"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/study"
)

// The true hyperparameters of the objectives, on the unit square: the lengthscales of a
// Matérn-5/2 kernel, and the standard deviations of the objective and of the noise.
const (
	length1, length2 = 0.15, 0.4
	signal, noise    = 1.0, 0.1
)

// features is the number of random features of an objective, and points that of the points
// at which predictions are compared with it.
const (
	features = 1000
	points   = 1000
)

func main() { lifecycle.Main("estimates", run) }

// contender is a method. Random points are estimated by MAP.
type contender struct {
	name   string
	method uhe.Method
	random bool
}

// chance is the name of random search.
const chance = "random"

func evenly() optimizer.Optimizer { return random.New() }

func contenders() []contender {
	all := []contender{{chance, uhe.MAP, true}}
	for _, m := range []uhe.Method{uhe.UHE, uhe.MAP, uhe.MCMC, uhe.Shrink, uhe.Adaptive, uhe.Portfolio, uhe.Alternate, uhe.Bandit} {
		all = append(all, contender{string(m), m, false})
	}
	return all
}

func run(ctx context.Context) error {
	seeds := flag.Int("seeds", 10, "number of objectives")
	after := flag.String("after", "20,50,100", "numbers of evaluations, in order")
	prior := flag.String("prior", string(uhe.ShapeRate), "the priors' reading, as uhe's setting; several with -functions, separated by commas")
	names := flag.String("functions", "", "functions of the paper to play, separated by commas, instead of drawn ones")
	methods := flag.String("methods", "uhe,map,mcmc,shrink,adaptive,portfolio,alternate,bandit,random", "with -functions: methods to play")
	trials := flag.Int("trials", 100, "with -functions: evaluations of a run")
	keep := flag.String("keep", "", "with -functions: the file that keeps the runs")
	flag.Parse()
	if flag.NArg() > 0 || *seeds < 2 {
		return errors.New("want at least two seeds, and no arguments beside the flags")
	}
	if *names != "" {
		f := functions{names: strings.Split(*names, ","), methods: strings.Split(*methods, ","), seeds: *seeds, trials: *trials, keep: *keep}
		for _, p := range strings.Split(*prior, ",") {
			f.priors = append(f.priors, uhe.Prior(p))
		}
		return f.run(ctx)
	}
	var checkpoints []int
	for _, text := range strings.Split(*after, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2 || len(checkpoints) > 0 && n <= checkpoints[len(checkpoints)-1] {
			return fmt.Errorf("-after %q: want numbers from 2 on, in order", *after)
		}
		checkpoints = append(checkpoints, n)
	}
	errorsOf := map[string][]deviation{}
	for seed := range *seeds {
		o := draw(rand.New(rand.NewPCG(uint64(seed), 1)))
		for _, c := range contenders() {
			found, err := play(ctx, c, o, uhe.Prior(*prior), uint64(seed), checkpoints)
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", c.name, seed, err)
			}
			for i, d := range found {
				key := fmt.Sprint(c.name, " ", checkpoints[i])
				errorsOf[key] = append(errorsOf[key], d)
			}
		}
		fmt.Fprintf(os.Stderr, "%d of %d objectives\n", seed+1, *seeds)
	}
	for _, n := range checkpoints {
		fmt.Printf("After %d evaluations:\n\n", n)
		fmt.Print("| | log lengthscales | log signal | log noise | predictions | regret |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
		for _, c := range contenders() {
			fmt.Printf("| `%s` |%s\n", c.name, row(errorsOf[fmt.Sprint(c.name, " ", n)]))
		}
		fmt.Println()
	}
	return nil
}

// deviation is how far an estimate is from the truth: the root mean square over the
// lengthscales' logarithms, the absolute values of the others', and the root mean square of
// the predictions; and the least value found, less the least of the points'.
type deviation [5]float64

// row prints the means with their standard errors.
func row(of []deviation) string {
	var text strings.Builder
	for i := range len(deviation{}) {
		mean, sd := stat.MeanStdDev(each.Of(of, func(d deviation) float64 { return d[i] }), nil)
		fmt.Fprintf(&text, " %.2f ± %.2f |", mean, stat.StdErr(sd, float64(len(of))))
	}
	return text.String()
}

// objective is a function of the unit square.
type objective func(x1, x2 float64) float64

// draw returns a draw from the Gaussian process: a sum of cosines with normal weights, whose
// frequencies have the kernel's spectral density, which for Matérn-5/2 is Student's t with
// five degrees of freedom over the lengthscale (Rasmussen and Williams, section 4.2.1;
// Rahimi and Recht 2007).
func draw(rng *rand.Rand) objective {
	var w [features][4]float64 // two frequencies, phase, weight
	for i := range w {
		var squares float64
		for range 5 {
			z := rng.NormFloat64()
			squares += z * z
		}
		t := math.Sqrt(5 / squares)
		w[i] = [4]float64{
			rng.NormFloat64() * t / length1, rng.NormFloat64() * t / length2, 2 * math.Pi * rng.Float64(),
			rng.NormFloat64() * signal * math.Sqrt(2./features),
		}
	}
	return func(x1, x2 float64) float64 {
		var sum float64
		for i := range w {
			sum += w[i][3] * math.Cos(w[i][0]*x1+w[i][1]*x2+w[i][2])
		}
		return sum
	}
}

func point(x1, x2 float64) study.Point { return study.Point{"x1": x1, "x2": x2} }

// at returns the value of the objective at a point.
func (o objective) at(p study.Point) (float64, error) {
	x1, ok1 := p["x1"].(float64)
	x2, ok2 := p["x2"].(float64)
	if !ok1 || !ok2 {
		return 0, fmt.Errorf("%v is no point of the square", p)
	}
	return o(x1, x2), nil
}

// play returns the deviations after the numbers of evaluations, in order.
func play(ctx context.Context, c contender, o objective, prior uhe.Prior, seed uint64, checkpoints []int) ([]deviation, error) {
	options := uhe.Options{Method: c.method, Prior: prior, Kappa: 1.96}
	tuner := uhe.New(options)
	if c.random {
		tuner = evenly()
	}
	domain, err := box(2)
	if err != nil {
		return nil, err
	}
	trials := checkpoints[len(checkpoints)-1]
	s := session.Session{Optimizer: tuner, Problem: optimizer.Problem{Space: domain, Direction: study.Minimize, MaxTrials: trials,
		Parallelism: 1, Seed: seed}}
	drawn := rand.New(rand.NewPCG(seed, 2))
	where, truth := make([]study.Point, points), make([]float64, points)
	for i := range where {
		x1, x2 := drawn.Float64(), drawn.Float64()
		where[i], truth[i] = point(x1, x2), o(x1, x2)
	}
	best, least := math.Inf(1), floats.Min(truth)
	var all []deviation
	for trial := 1; trial <= trials; trial++ {
		batch, err := s.Ask(ctx, 1)
		if err != nil {
			return nil, err
		}
		value, err := o.at(batch[0].Point)
		if err != nil {
			return nil, err
		}
		best = min(best, value)
		s.Tell(optimizer.Observation{
			Trial: trial, Point: batch[0].Point, Outcome: optimizer.OutcomeCompleted, Values: study.Values{value + noise*drawn.NormFloat64()},
		})
		if trial < checkpoints[len(all)] {
			continue
		}
		from := s.State
		if c.random {
			from = nil
		}
		e, err := uhe.NewEstimate(ctx, options, s.Snapshot(), from)
		if err != nil {
			return nil, err
		}
		all = append(all, deviate(e, where, truth, best-least))
	}
	return all, nil
}

// deviate compares an estimate with the truth.
func deviate(e *uhe.Estimate, where []study.Point, truth []float64, regret float64) deviation {
	return deviation{
		math.Sqrt((squared(math.Log(e.Lengthscales[0]/length1)) + squared(math.Log(e.Lengthscales[1]/length2))) / 2),
		math.Abs(math.Log(e.SD / signal)), math.Abs(math.Log(e.Noise / noise)),
		floats.Distance(e.Predict(where), truth, 2) / math.Sqrt(float64(len(truth))),
		regret,
	}
}

func squared(v float64) float64 { return v * v }
