// Command steps shows the steps of hebo-paper on given observations, for a comparison with its
// reference implementation: what the model predicts, its hyperparameters, and which points are chosen. It reads a
// request as JSON and answers as JSON; research/benchmarks/steps.py asks it and compares.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/hebo"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// request has points as the numbers of their values, one for each parameter.
type request struct {
	Parameters []struct {
		Levels  int  `json:"levels"`
		Ordered bool `json:"ordered"`
	} `json:"parameters"`
	Points  [][]int   `json:"points"`
	Values  []float64 `json:"values"`
	Queries [][]int   `json:"queries"`
	Batches int       `json:"batches"` // how many batches of 8 to choose, each with its own seed
	Seed    uint64    `json:"seed"`
}

// answer is in units of the transformed and standardised outcomes.
type answer struct {
	Y      []float64 `json:"y"`    // the outcomes
	Mean   []float64 `json:"mean"` // at the queries
	SD     []float64 `json:"sd"`   // with the noise, as the acquisition functions see it
	Noise  float64   `json:"noise"`
	Kernel []float64 `json:"kernel"` // lengthscales, variances of the Matérn and of the linear kernel, exponents of the warps
	// LogLikelihood is that of the outcomes, without priors.
	LogLikelihood float64   `json:"logLikelihood"`
	Chosen        [][][]int `json:"chosen"`
}

// batch is what the experiments of the paper ask for at once.
const batch = 8

func main() { lifecycle.Main("steps", run) }

func run(ctx context.Context) error {
	var q request
	if err := json.NewDecoder(os.Stdin).Decode(&q); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	a, err := steps(ctx, q)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(a)
}

func steps(ctx context.Context, q request) (*answer, error) {
	parameters := make([]study.Parameter, len(q.Parameters))
	for i, p := range q.Parameters {
		parameters[i] = study.Parameter{Name: fmt.Sprintf("p%d", i), Type: study.Categorical}
		if p.Ordered {
			parameters[i].Type = study.Ordinal
		}
		for k := range p.Levels {
			parameters[i].Values = append(parameters[i].Values, int64(k))
		}
	}
	s, err := celspace.New(parameters, nil, nil)
	if err != nil {
		return nil, err
	}
	point := func(row []int) study.Point {
		p := study.Point{}
		for i, k := range row {
			p[parameters[i].Name] = int64(k)
		}
		return p
	}
	problem := &optimizer.Problem{Space: s, Direction: study.Minimize, MaxTrials: 128, Parallelism: batch, First: len(q.Points) + 1}
	for i, row := range q.Points {
		problem.Observations = append(problem.Observations, optimizer.Observation{
			Trial: i + 1, Point: point(row), Outcome: optimizer.OutcomeCompleted, Values: study.Values{q.Values[i]},
		})
	}
	settings, err := hebo.PaperSettings().Parse(nil)
	if err != nil {
		return nil, err
	}
	options, encoding := hebo.PaperFromSettings(settings), optimizer.NewEncoding(s)
	d := surrogate.Observe(problem, encoding, options.Surrogate)
	model, err := surrogate.Fit(ctx, d, options.Surrogate, nil, optimizer.NewRand(q.Seed, 1))
	if err != nil {
		return nil, err
	}
	h := model.GP.Hyperparameters()
	a := &answer{Y: d.Y, Noise: h.Noise, LogLikelihood: model.GP.LogMarginalLikelihood()}
	for _, v := range h.Kernel {
		a.Kernel = append(a.Kernel, math.Exp(v))
	}
	at := mat.NewDense(len(q.Queries), encoding.Dim(), nil)
	for i, row := range q.Queries {
		at.SetRow(i, encoding.Encode(point(row)))
	}
	var variance []float64
	a.Mean, variance = model.GP.Posterior(at)
	for _, v := range variance {
		a.SD = append(a.SD, math.Sqrt(v+h.Noise))
	}
	o := hebo.New(options)
	for i := range q.Batches {
		chosen, _, err := o.Suggest(ctx, problem, nil, batch, optimizer.NewRand(q.Seed, i+2))
		if err != nil {
			return nil, err
		}
		var rows [][]int
		for _, c := range chosen {
			var row []int
			for _, p := range parameters {
				k, _ := study.Number(c.Point[p.Name])
				row = append(row, int(k))
			}
			rows = append(rows, row)
		}
		a.Chosen = append(a.Chosen, rows)
	}
	return a, nil
}
