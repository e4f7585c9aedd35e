package gp

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

// convergedSteps iterations that gain less than convergedGain nats end a search.
const (
	convergedSteps = 3
	convergedGain  = 1e-3
)

// Fit returns the model whose hyperparameters maximise the posterior density of config,
// searched by L-BFGS in log space. y must be finite and should be standardised; starts
// are drawn from rng. If ctx ends, Fit returns the context's error together with the
// best model so far, which is that of the first start if there was no time at all. A caller
// MUST NOT keep the hyperparameters of such a model as the next fit's Warm: the search may
// have stopped anywhere.
func Fit(ctx context.Context, k *kernel.Kernel, x mat.Matrix, y []float64, config Config, rng *rand.Rand) (*Result, error) {
	if n, d := x.Dims(); n != len(y) || d != k.Dim() {
		panic(fmt.Sprintf("gp: %d×%d points and %d outcomes for a kernel of %d columns", n, d, len(y), k.Dim()))
	}
	if len(config.Kernel) != k.NumParams() || config.Warm != nil && len(config.Warm.Kernel) != k.NumParams() {
		panic(fmt.Sprintf("gp: configuration or warm start must have %d kernel hyperparameters", k.NumParams()))
	}
	if config.Starts < 1 {
		panic(fmt.Sprintf("gp: %d starts", config.Starts))
	}
	points := k.Transform(x)
	full := newObjective(k, points, y, &config)
	explore := full
	if len(y) > config.Subset {
		px, py := subset(points, y, config.Subset, rng)
		explore = newObjective(k, px, py, &config)
	}
	best, bestValue := []float64(nil), math.Inf(1)
	for _, start := range starts(&config, rng) {
		v, f, err := explore.minimize(ctx, start, config.Explore)
		if err != nil {
			return nil, err
		}
		if best == nil || f < bestValue {
			best, bestValue = v, f
		}
		if ctx.Err() != nil {
			break // there is no time for the other starts
		}
	}
	full.evaluations = 0
	v, f, err := full.minimize(ctx, best, config.Polish)
	if err != nil {
		return nil, err
	}
	model, err := full.model(v)
	if err != nil {
		return nil, err
	}
	result := &Result{Model: model, LogPosterior: -f, Evaluations: full.evaluations}
	if err := ctx.Err(); err != nil {
		return result, fmt.Errorf("fit a Gaussian process: %w", err)
	}
	return result, nil
}

// subset returns count observations drawn by rng, in their original order.
func subset(x *mat.Dense, y []float64, count int, rng *rand.Rand) (*mat.Dense, []float64) {
	n, d := x.Dims()
	px, py := mat.NewDense(count, d, nil), make([]float64, 0, count)
	for i := 0; len(py) < count; i++ {
		// Selection sampling (Knuth, volume 2, algorithm 3.4.2S).
		if rng.IntN(n-i) < count-len(py) {
			px.SetRow(len(py), x.RawRowView(i))
			py = append(py, y[i])
		}
	}
	return px, py
}

// starts returns the vectors of free hyperparameters to start from.
func starts(config *Config, rng *rand.Rand) [][]float64 {
	params := config.free()
	var all [][]float64
	if config.Warm != nil {
		warm := make([]float64, 0, len(params))
		for i, p := range config.Kernel {
			if !p.Fixed {
				warm = append(warm, config.Warm.Kernel[i])
			}
		}
		if !config.Noise.Fixed {
			warm = append(warm, math.Log(max(config.Warm.Noise-config.NoiseFloor, math.Exp(config.Noise.Min))))
		}
		for i, p := range params {
			warm[i] = min(max(warm[i], p.Min), p.Max)
		}
		all = append(all, warm)
	}
	for len(all) < config.Starts {
		v := make([]float64, len(params))
		for i, p := range params {
			v[i] = p.Start
			if len(all) > 0 {
				v[i] += rng.NormFloat64()
			}
			v[i] = min(max(v[i], p.Min), p.Max)
		}
		all = append(all, v)
	}
	return all[:config.Starts]
}

// free returns the hyperparameters to search, the noise last.
func (c *Config) free() []Param {
	var out []Param
	for _, p := range append(append([]Param(nil), c.Kernel...), c.Noise) {
		if !p.Fixed {
			out = append(out, p)
		}
	}
	return out
}

// minimize returns the lowest point found within the given number of iterations and
// before ctx ends, or start if there is no time.
func (o *objective) minimize(ctx context.Context, start []float64, iterations int) ([]float64, float64, error) {
	if ctx.Err() != nil {
		return start, math.Inf(1), nil //nolint:nilerr // it is none of a search that has not begun
	}
	// A search cannot start at a point where the covariance matrix cannot be factored.
	value := o.value(start)
	if len(start) == 0 || iterations < 1 || math.IsInf(value, 1) {
		return start, value, nil
	}
	reached, least := start, value // gonum's own record misses the last steps of a stopped search
	problem := optimize.Problem{
		Func: func(v []float64) float64 {
			f := o.value(v)
			if f < least {
				reached, least = slices.Clone(v), f
			}
			return f
		},
		Grad: o.gradient,
		Status: func() (optimize.Status, error) {
			if err := ctx.Err(); err != nil {
				return optimize.Failure, err
			}
			return optimize.NotTerminated, nil
		},
	}
	settings := &optimize.Settings{
		MajorIterations: iterations,
		FuncEvaluations: 3 * iterations,
		Converger:       &optimize.FunctionConverge{Absolute: convergedGain, Iterations: convergedSteps},
	}
	result, err := optimize.Minimize(problem, start, settings, &optimize.LBFGS{})
	if ctx.Err() != nil {
		return reached, least, nil //nolint:nilerr // that the time is up is no error of a search with a result
	}
	if result == nil {
		return nil, 0, fmt.Errorf("fit a Gaussian process: %w", err)
	}
	// err may mean that a line search found no better point; earlier results are still
	// valid.
	return result.X, result.F, nil
}
