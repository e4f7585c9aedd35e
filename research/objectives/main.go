// Command objectives plays functions of several objectives, and functions with limits, with
// those algorithms that take them, eight trials at once. Of several objectives it prints how
// much of the exact front's hypervolume is missing, of functions with limits how far the best
// value within them is from the minimum: the decimal logarithm, as the mean and its standard
// error over the seeds.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
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
}

func main() {
	log.SetFlags(0)
	algorithms := flag.String("algorithms", "hebo,gp,tpe,nsga2,random", "the algorithms to play")
	functions := flag.String("functions", "", "the functions to play; empty means all")
	seeds := flag.Int("seeds", 3, "how many seeds, from 1 on")
	reference := flag.Bool("reference", false, "tell the algorithms the reference point that the hypervolume is measured with")
	flag.Parse()
	fmt.Println("| function | algorithm | after 24 | after 64 | after 128 |\n| --- | --- | ---: | ---: | ---: |")
	for _, g := range append(fronts(*reference), limited()...) {
		if *functions != "" && !strings.Contains(","+*functions+",", ","+g.name+",") {
			continue
		}
		for _, name := range strings.Split(*algorithms, ",") {
			missing := make([][]float64, len(after))
			for seed := range *seeds {
				one, err := play(name, g, uint64(seed+1))
				if err != nil {
					log.Fatalf("%s on %s: %v", name, g.name, err)
				}
				for i, v := range one {
					missing[i] = append(missing[i], math.Log10(v))
				}
			}
			row := fmt.Sprintf("| %s | `%s` |", g.name, name)
			for _, values := range missing {
				mean, sd := stat.MeanStdDev(values, nil)
				row += fmt.Sprintf(" %.2f ± %.2f |", mean, stat.StdErr(sd, float64(len(values))))
			}
			fmt.Println(strings.ReplaceAll(row, "+Inf ± NaN", "none within"))
		}
	}
}

// play returns what is missing after each count of evaluations. The oldest of the pending
// trials always ends first.
func play(name string, g game, seed uint64) ([]float64, error) {
	o, err := registry.New(name, nil)
	if err != nil {
		return nil, err
	}
	p, err := problem(g, seed)
	if err != nil {
		return nil, err
	}
	var state optimizer.State
	var missing []float64
	for len(p.Observations) < p.MaxTrials {
		if free := min(parallel-len(p.Pending), p.MaxTrials-p.First+1); free > 0 {
			var batch []optimizer.Suggestion
			asked := *p
			batch, state, err = o.Suggest(context.Background(), &asked, state, free, optimizer.NewRand(seed, p.First))
			if err != nil {
				return nil, err
			}
			p.Pending = append([]optimizer.Pending{}, p.Pending...)
			for _, b := range batch {
				p.Pending = append(p.Pending, optimizer.Pending{Trial: p.First, Point: b.Point})
				p.First++
			}
		}
		ended := p.Pending[0]
		p.Pending = append([]optimizer.Pending{}, p.Pending[1:]...)
		x := make([]float64, len(g.lower))
		for i := range x {
			x[i] = ended.Point[fmt.Sprintf("x%d", i+1)].(float64)
		}
		values, excess := g.value(x)
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: ended.Trial, Point: ended.Point, Outcome: optimizer.OutcomeCompleted, Values: values, Excess: excess,
		})
		if len(missing) < len(after) && len(p.Observations) == after[len(missing)] {
			missing = append(missing, g.missing(p.Observations))
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
		Space: s, Direction: study.Minimize, MaxTrials: after[len(after)-1], Parallelism: parallel, Seed: seed, First: 1,
	}
	g.aim(p)
	return p, nil
}
