package transfer

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

const (
	// maxEfforts is how many points of an earlier study the model of its times learns from, at most. Times vary more
	// smoothly than outcomes do.
	maxEfforts = 64
	// effortSteps is how many steps the search for such a model's hyperparameters takes.
	effortSteps = 20
	// leastSpread is the least standard deviation of a source's logarithms that counts.
	leastSpread = 0.01
)

// ReadEfforts is Read for how long evaluations took, or what they cost. logs has the logarithms for each of the problem's earlier
// studies: one of each point, NaN where it is not known, or nil. A source's function is the mean of a process that was fitted to them,
// less their mean, since another machine may be twice as fast. The functions are in units of spread, the standard deviation of
// the logarithms within a source.
func ReadEfforts(
	ctx context.Context, p *optimizer.Problem, encoding *optimizer.Encoding, logs [][]float64,
) (sources Sources, spread float64, err error) {
	for i := range p.Earlier {
		if logs[i] == nil {
			continue
		}
		s, rows, all := place(&p.Earlier[i], encoding, logs[i])
		if s == nil {
			continue
		}
		n := min(len(rows), maxEfforts)
		x, y := mat.NewDense(n, encoding.Dim(), nil), make([]float64, n)
		for k := range y {
			at := k * len(rows) / n
			x.SetRow(k, rows[at])
			y[k] = all[at]
		}
		mean, sd := stat.MeanStdDev(y, nil)
		s.unit = max(sd, leastSpread)
		for k := range y {
			y[k] = (y[k] - mean) / s.unit
		}
		k := kernel.NewMatern52(columns(encoding))
		config := gp.DefaultConfig(k.Dim())
		config.Starts, config.Explore, config.Polish = 1, 0, effortSteps
		if err := s.fit(ctx, k, x, y, config, nil, optimizer.NewRand(p.Seed, i)); err != nil {
			return nil, 0, fmt.Errorf("model the times of the earlier study %s: %w", s.Name, err)
		}
		spread += s.unit * s.unit
		sources = append(sources, s)
	}
	if sources == nil {
		return nil, 0, nil
	}
	spread = math.Sqrt(spread / float64(len(sources)))
	for _, s := range sources {
		s.unit /= spread
	}
	return sources, spread, nil
}

// EffortKernel is Kernel for sources of ReadEfforts: together they are expected to say exactly how much longer one evaluation takes
// than another.
func (all Sources) EffortKernel(columns []kernel.Column) *kernel.Kernel {
	count := float64(len(all))
	return kernel.NewFeatures(columns, all, 1/count, spread/count)
}

// Mean returns the mean of the sources' functions at the rows of x.
func (all Sources) Mean(x *mat.Dense) []float64 {
	values := all.Values(x)
	mean := make([]float64, values.RawMatrix().Rows)
	for i := range mean {
		mean[i] = stat.Mean(values.RawRowView(i), nil)
	}
	return mean
}
