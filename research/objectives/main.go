// Command objectives plays functions of several objectives with those algorithms that take
// several, eight trials at once, and prints how much of the exact front's hypervolume is
// missing: the decimal logarithm, as the mean and its standard error over the seeds.
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
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/pareto"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

const parallel = 8

var after = []int{24, 64, 128}

func main() {
	log.SetFlags(0)
	algorithms := flag.String("algorithms", "hebo,gp,tpe,nsga2,random", "the algorithms to play")
	functions := flag.String("functions", "", "the functions to play; empty means all")
	seeds := flag.Int("seeds", 3, "how many seeds, from 1 on")
	reference := flag.Bool("reference", false, "tell the algorithms the reference point that the hypervolume is measured with")
	flag.Parse()
	fmt.Println("| function | algorithm | after 24 | after 64 | after 128 |\n| --- | --- | ---: | ---: | ---: |")
	for _, f := range testfunc.Vectors() {
		if *functions != "" && !strings.Contains(","+*functions+",", ","+f.Name+",") {
			continue
		}
		for _, name := range strings.Split(*algorithms, ",") {
			missing := make([][]float64, len(after))
			for seed := range *seeds {
				one, err := play(name, f, uint64(seed+1), *reference)
				if err != nil {
					log.Fatalf("%s on %s: %v", name, f.Name, err)
				}
				for i, v := range one {
					missing[i] = append(missing[i], v)
				}
			}
			row := fmt.Sprintf("| %s | `%s` |", f.Name, name)
			for _, values := range missing {
				mean, sd := stat.MeanStdDev(values, nil)
				row += fmt.Sprintf(" %.2f ± %.2f |", mean, stat.StdErr(sd, float64(len(values))))
			}
			fmt.Println(row)
		}
	}
}

// play returns the logarithm of what is missing after each count of evaluations. The oldest
// of the pending trials always ends first.
func play(name string, f testfunc.Vector, seed uint64, reference bool) ([]float64, error) {
	o, err := registry.New(name, nil)
	if err != nil {
		return nil, err
	}
	p, err := problem(f, seed, reference)
	if err != nil {
		return nil, err
	}
	var state optimizer.State
	var found [][]float64
	var missing []float64
	for len(found) < p.MaxTrials {
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
		x := make([]float64, len(f.Lower))
		for i := range x {
			x[i] = ended.Point[fmt.Sprintf("x%d", i+1)].(float64)
		}
		values := f.Value(x)
		p.Observations = append(p.Observations, optimizer.Observation{
			Trial: ended.Trial, Point: ended.Point, Outcome: optimizer.OutcomeCompleted, Values: values,
		})
		found = append(found, values)
		if len(missing) < len(after) && len(found) == after[len(missing)] {
			missing = append(missing, math.Log10(f.Hypervolume-pareto.Hypervolume(found, f.Reference)))
		}
	}
	return missing, nil
}

func problem(f testfunc.Vector, seed uint64, reference bool) (*optimizer.Problem, error) {
	var parameters []study.Parameter
	for i := range f.Lower {
		parameters = append(parameters, study.Parameter{
			Name: fmt.Sprintf("x%d", i+1), Type: study.Float, Min: &f.Lower[i], Max: &f.Upper[i],
		})
	}
	s, err := celspace.New(parameters, nil, nil)
	if err != nil {
		return nil, err
	}
	p := &optimizer.Problem{
		Space: s, Direction: study.Minimize, MaxTrials: after[len(after)-1], Parallelism: parallel, Seed: seed, First: 1,
	}
	for k := range f.Reference {
		objective := study.Objective{Metric: fmt.Sprintf("f%d", k+1), Direction: study.Minimize}
		if reference {
			objective.Reference = &f.Reference[k]
		}
		p.Objectives = append(p.Objectives, objective)
	}
	return p, nil
}
