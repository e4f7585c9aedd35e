// Package duration models how long evaluations take: a Gaussian process on the logarithm of the time, since
// what makes an evaluation slower multiplies its time. It also learns from evaluations whose whole time is not
// known, because they still run or were stopped: they take longer than they have run. What evaluations cost, if that is not their
// time, is modelled in the same way.
package duration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// MinEnded is the number of evaluations with a known time that a model needs; 2 do if earlier studies say how long theirs took.
	MinEnded = 4
	// mostPoints bounds the evaluations that a model is made of: its time grows with the third power of them.
	mostPoints = 250
	// shortest is the least time, in seconds, that counts: below it, clocks and processes decide.
	shortest = 1e-3
	// cheapest is the least cost that counts, as a share of the largest one.
	cheapest = 1e-6
	// rounds is how often the hyperparameters are fitted again, with what the last ones let expect of the censored evaluations.
	rounds = 2
	// leastSpread is the least standard deviation of logarithms that the model works with: times that differ
	// by less than a hundredth are alike.
	leastSpread = 0.01
)

// ErrTooFew says that too few evaluations have ended for a model.
var ErrTooFew = errors.New("too few evaluations have ended")

// Observation is what is known of an evaluation's time.
type Observation struct {
	// Point is in the space.
	Point study.Point
	// Seconds is how long it has run, finite and not negative.
	Seconds float64
	// Censored means that it would take longer than that: it still runs, or it was stopped.
	Censored bool
}

// Model is a model of the time of evaluations. It is immutable and safe for concurrent use.
type Model struct {
	encoding *optimizer.Encoding
	gp       *gp.Model
	scale    gp.Scale // of the logarithms
	width    float64  // by which standard deviations are multiplied
}

// Fit returns a model that learns from the observations, the latest last, and from the times of earlier studies. The latter count
// as long as fewer than 48 observations have ended. The model uses at most 250 observations: the latest half, and
// an even share of those before. The same arguments give the same model. The error wraps ErrTooFew if fewer
// than MinEnded of them have ended, or is ctx's.
func Fit(
	ctx context.Context, encoding *optimizer.Encoding, observations []Observation, before []optimizer.Earlier, seed uint64,
) (*Model, error) {
	d := newData(encoding, some(observations), shortest)
	if d.ended() < fewOwn {
		var err error
		if d.earlier, err = readEarlier(ctx, encoding, &optimizer.Problem{Earlier: before, Seed: seed}, false); err != nil {
			return nil, fmt.Errorf("model the time of evaluations: %w", err)
		}
	}
	return d.model(ctx, encoding, seed, (*data).width)
}

// model returns the model, whose intervals are as wide as width says.
func (d *data) model(
	ctx context.Context, encoding *optimizer.Encoding, seed uint64,
	width func(*data, context.Context, *kernel.Kernel, gp.Config, *rand.Rand) (float64, error),
) (*Model, error) {
	least := MinEnded
	if d.earlier != nil {
		least = leastOwn
	}
	if ended := d.ended(); ended < least {
		return nil, fmt.Errorf("%w: %d, and a model of their time needs %d", ErrTooFew, ended, least)
	}
	k, config := covariance(encoding)
	if d.earlier != nil {
		k = kernel.NewSum(k, d.earlier.sources.EffortKernel(surrogate.Columns(encoding)))
	}
	rng := optimizer.NewRand(seed, len(d.logs))
	factor, err := width(d, ctx, k, config, rng)
	if err == nil {
		var m *Model
		if m, err = d.fit(ctx, k, config, rng); err == nil {
			m.encoding, m.width = encoding, factor
			return m, nil
		}
	}
	return nil, fmt.Errorf("model the time of evaluations: %w", err)
}

// fit returns the model but for its encoding and the width of its intervals.
func (d *data) fit(ctx context.Context, k *kernel.Kernel, config gp.Config, rng *rand.Rand) (*Model, error) {
	var err error
	for round := 0; err == nil; round++ {
		x, y, scale := d.outcomes(round > 0)
		var fitted *gp.Result
		if fitted, err = gp.Fit(ctx, k, x, y, config, rng); err != nil {
			break
		}
		m := &Model{gp: fitted.Model, scale: scale}
		if d.open == 0 {
			return m, nil
		}
		config.Warm = new(m.gp.Hyperparameters())
		if m.gp, err = d.condition(ctx, k, *config.Warm, scale); err == nil && round == rounds {
			return m, nil
		}
	}
	return nil, err
}

// covariance returns the kernel, and how its hyperparameters are fitted. A space with a single point has a column on which
// all evaluations are at one place.
func covariance(encoding *optimizer.Encoding) (*kernel.Kernel, gp.Config) {
	if encoding.Dim() == 0 {
		return kernel.NewMatern52(kernel.Continuous(1)), gp.DefaultConfig(1)
	}
	return surrogate.DefaultOptions().Covariance(encoding)
}

// some returns at most mostPoints of the observations, in their order.
func some(all []Observation) []Observation {
	if len(all) <= mostPoints {
		return all
	}
	const latest = mostPoints / 2
	before := all[:len(all)-latest]
	used := make([]Observation, 0, mostPoints)
	for i := range mostPoints - latest {
		used = append(used, before[i*len(before)/(mostPoints-latest)])
	}
	return append(used, all[len(all)-latest:]...)
}

// data are observations as the model sees them.
type data struct {
	x        *mat.Dense
	logs     []float64 // of the seconds
	censored []bool
	open     int       // how many are censored
	filled   []float64 // logs, with what is expected in the places of censored ones
	earlier  *earlier
}

// ended is how many of the evaluations have a known time.
func (d *data) ended() int { return len(d.logs) - d.open }

// newData returns the data of observations, of which those below least count as least.
func newData(encoding *optimizer.Encoding, list []Observation, least float64) *data {
	d := &data{x: mat.NewDense(max(1, len(list)), max(1, encoding.Dim()), nil)}
	for i, o := range list {
		copy(d.x.RawRowView(i), encoding.Encode(o.Point))
		d.logs, d.censored = append(d.logs, math.Log(max(o.Seconds, least))), append(d.censored, o.Censored)
		if o.Censored {
			d.open++
		}
	}
	d.filled = slices.Clone(d.logs)
	return d
}

// outcomes returns the places and the standardised outcomes to which hyperparameters are fitted: those that are known, or
// with all also what is expected of the censored ones.
func (d *data) outcomes(all bool) (*mat.Dense, []float64, gp.Scale) {
	var of []int
	for i, censored := range d.censored {
		if all || !censored {
			of = append(of, i)
		}
	}
	y := indices.Pick(d.filled, of)
	_, scale := gp.Standardize(y)
	if stat.StdDev(y, nil) < leastSpread {
		scale.SD = leastSpread
	}
	if d.earlier != nil { // the functions of earlier studies are in units of their spread
		scale.SD = d.earlier.spread
	}
	for i, v := range y {
		y[i] = (v - scale.Mean) / scale.SD
	}
	return rows(d.x, of), y, scale
}

// rows returns some rows of x.
func rows(x *mat.Dense, of []int) *mat.Dense {
	_, dim := x.Dims()
	out := mat.NewDense(len(of), dim, nil)
	for k, i := range of {
		out.SetRow(k, x.RawRowView(i))
	}
	return out
}
