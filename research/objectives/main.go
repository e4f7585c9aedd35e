// Command objectives plays functions of several objectives, and functions with limits, with
// those algorithms that take them, eight trials at once. Of several objectives it prints how
// much of the exact front's hypervolume is missing, of functions with limits how far the best
// value within them is from the minimum: the decimal logarithm, as the mean and its standard
// error over the seeds. Beside them it plays other tuners, those of peer.py, with -peers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/session"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

const parallel = 8

var after = []int{24, 64, 128}

// game is a function to play.
type game struct {
	name               string
	lower, upper, step []float64
	// aim completes the problem, value evaluates a point, and missing is what is missing
	// after some evaluations.
	aim     func(p *optimizer.Problem)
	value   func(x []float64) (values study.Values, excess []float64)
	missing func(found []optimizer.Observation) float64
	// noise is the standard deviation of noisy evaluations' noise, for a share of 1; nil for
	// functions that are not played with noise.
	noise []float64
}

func main() {
	log.SetFlags(0)
	algorithms := flag.String("algorithms", "hebo,gp,tpe,nsga2,random",
		"the algorithms to play; -once behind hebo or gp plays it with replicate: false")
	functions := flag.String("functions", "", "the functions to play; empty means all")
	seeds := flag.Int("seeds", 3, "how many seeds, from 1 on")
	peers := flag.String("peers", "", "other tuners to play: optuna-tpe, optuna-nsga2, optuna-gp, botorch, hebo-0.3.6")
	python := flag.String("python", "python3", "the Python that has these tuners")
	most := flag.Int("trials", after[len(after)-1], "after how many evaluations a game ends")
	reference := flag.Bool("reference", false, "tell the algorithms the reference point that the hypervolume is measured with")
	noise := flag.Float64("noise", 0, "the standard deviation of the evaluations' noise, as a share of the front's extent, for hebo and gp "+
		"only; what is missing is then that of the recommended front's true values")
	huge := flag.Bool("huge", false, "let the values beyond a reference near the front grow with the fifth power, and measure the "+
		"hypervolume from there")
	path := flag.String("keep", "", "a file that keeps each game as soon as it has ended; games that it holds are not played again")
	flag.Parse()
	played, err := openKeep(*path)
	if err != nil {
		log.Fatal(err)
	}
	counts := slices.DeleteFunc(slices.Clone(after), func(n int) bool { return n > *most })
	fmt.Print("| function | algorithm |")
	for _, n := range counts {
		fmt.Printf(" after %d |", n)
	}
	fmt.Println("\n| --- | --- |" + strings.Repeat(" ---: |", len(counts)))
	games := fronts(*reference, *huge)
	if *peers == "" && *noise == 0 && !*huge { // which take no limits here
		games = append(games, limited()...)
	}
	for _, g := range games {
		if *functions != "" && !named(*functions, g.name) {
			continue
		}
		for _, name := range strings.FieldsFunc(*algorithms+","+*peers, func(r rune) bool { return r == ',' }) {
			s := setting{name: name, counts: counts, reference: *reference, huge: *huge, noise: *noise, played: played}
			if named(*peers, name) {
				s.python = *python
			}
			row, err := s.row(g, *seeds)
			if err != nil {
				log.Fatalf("%s on %s: %v", name, g.name, err)
			}
			fmt.Println(row)
		}
	}
}

// named reports whether a name is in a list with commas.
func named(list, name string) bool { return strings.Contains(","+list+",", ","+name+",") }

// setting is who plays, and for how long.
type setting struct {
	name   string
	python string // what runs peer.py; "" for an algorithm of Fantasia
	counts []int

	reference bool // is told
	huge      bool
	noise     float64
	played    *keep
}

// row plays a game with each seed and returns the row of the table.
func (s setting) row(g game, seeds int) (string, error) {
	missing := make([][]float64, len(s.counts))
	for seed := range seeds {
		one, err := s.logarithms(g, uint64(seed+1))
		if err != nil {
			return "", err
		}
		for i, v := range one {
			missing[i] = append(missing[i], v)
		}
	}
	row := fmt.Sprintf("| %s | `%s` |", g.name, s.name)
	for _, values := range missing {
		mean, sd := stat.MeanStdDev(values, nil)
		row += fmt.Sprintf(" %.2f ± %.2f |", mean, stat.StdErr(sd, float64(len(values))))
	}
	return strings.NewReplacer("+Inf ± NaN", "none within", " ± NaN", "").Replace(row), nil
}

// logarithms returns the logarithms of the hypervolume that a game misses. A game whose result is kept is not played again.
func (s setting) logarithms(g game, seed uint64) ([]float64, error) {
	r := run{Function: g.name, Algorithm: s.name, Seed: seed, Trials: s.counts[len(s.counts)-1], Reference: s.reference, Huge: s.huge,
		Noise: s.noise}
	if missing, ok := s.played.runs[r]; ok {
		return missing, nil
	}
	missing, err := s.play(g, seed)
	if err != nil {
		return nil, err
	}
	for i, v := range missing {
		missing[i] = math.Log10(v)
	}
	return missing, s.played.add(r, missing)
}

// play returns what is missing after each count of evaluations.
func (s setting) play(g game, seed uint64) (missing []float64, err error) {
	p, err := problem(g, seed)
	if err != nil {
		return nil, err
	}
	if s.python != "" {
		other, err := newOutside(s.python, "research/objectives/peer.py", s.name, g, p)
		if err != nil {
			return nil, err
		}
		missing, err = s.trials(other, g, p)
		return missing, errors.Join(err, other.Close())
	}
	name, once := strings.CutSuffix(s.name, "-once")
	settings := map[string]any{}
	if s.noise > 0 {
		settings["noise"] = "yes"
	}
	if once {
		settings["replicate"] = false
	}
	o, err := registry.New(name, settings)
	if err != nil {
		return nil, err
	}
	return s.trials(o, g, p)
}

// trials is play with an optimiser. The oldest of the pending trials always ends first.
func (s setting) trials(o optimizer.Optimizer, g game, p *optimizer.Problem) (missing []float64, err error) {
	play := session.Session{Optimizer: o, Problem: *p}
	for len(missing) < len(s.counts) {
		if free := min(parallel-len(play.Problem.Pending), p.MaxTrials-play.Asked()); free > 0 {
			if _, err := play.Ask(context.Background(), free); err != nil {
				return nil, err
			}
		}
		ended := play.Problem.Pending[0]
		values, excess := g.value(g.at(ended.Point))
		s.blur(g, p, ended.Trial, values)
		play.Tell(optimizer.Observation{
			Trial: ended.Trial, Point: ended.Point, Outcome: optimizer.OutcomeCompleted, Values: values, Excess: excess,
		})
		if found := play.Problem.Observations; len(found) == s.counts[len(missing)] {
			if s.noise > 0 {
				if found, err = recommended(&play, g); err != nil {
					return nil, err
				}
			}
			missing = append(missing, g.missing(found))
		}
	}
	return missing, nil
}

func problem(g game, seed uint64) (*optimizer.Problem, error) {
	var parameters []study.Parameter
	for i := range g.lower {
		p := study.Parameter{Name: fmt.Sprintf("x%d", i+1), Type: study.Float, Min: &g.lower[i], Max: &g.upper[i]}
		if g.step != nil && g.step[i] > 0 {
			p.Step = &g.step[i]
		}
		parameters = append(parameters, p)
	}
	s, err := celspace.New(parameters, nil, nil)
	if err != nil {
		return nil, err
	}
	p := &optimizer.Problem{
		Space: s, Direction: study.Minimize, MaxTrials: after[len(after)-1], Parallelism: parallel, Seed: seed,
	}
	g.aim(p)
	return p, nil
}
