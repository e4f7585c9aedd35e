package cmaes

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// gaussian is the search distribution over the numeric coordinates: normal, with the
// mean Mean and the covariance Sigma²·A·C·A, where A is diagonal (Scale). Fields are
// exported for the state.
type gaussian struct {
	Mean, Scale      floats
	PathSigma, PathC floats
	Sigma            float64
	// Cov is C: row by row, the part from the diagonal on; the diagonal alone if the
	// strategy is diagonal.
	Cov        floats
	Generation int // updates since the start of the run
}

func newGaussian(s strategy, mean []float64, sigma float64) *gaussian {
	n := s.dim
	g := &gaussian{
		Mean: slices.Clone(mean), Scale: slices.Repeat([]float64{1}, n),
		PathSigma: make([]float64, n), PathC: make([]float64, n), Sigma: sigma,
	}
	if s.diagonal {
		g.Cov = slices.Repeat([]float64{1}, n)
		return g
	}
	for i := range n {
		g.Cov = append(g.Cov, 1)
		g.Cov = append(g.Cov, make([]float64, n-1-i)...)
	}
	return g
}

// valid reports whether the distribution is one of the strategy's, with finite numbers.
func (g *gaussian) valid(s strategy) bool {
	size := s.dim * (s.dim + 1) / 2
	if s.diagonal {
		size = s.dim
	}
	for _, list := range [][]float64{g.Mean, g.Scale, g.PathSigma, g.PathC, g.Cov} {
		if slices.ContainsFunc(list, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			return false
		}
	}
	return len(g.Mean) == s.dim && len(g.Scale) == s.dim && len(g.PathSigma) == s.dim && len(g.PathC) == s.dim &&
		len(g.Cov) == size && g.Sigma > 0 && !math.IsInf(g.Sigma, 1) && g.Generation >= 0
}

// variance returns the i-th element of C's diagonal.
func (g *gaussian) variance(i int) float64 {
	n := len(g.Mean)
	if len(g.Cov) == n {
		return g.Cov[i]
	}
	return g.Cov[i*n-i*(i-1)/2]
}

// spectrum is the decomposition B·D²·Bᵀ of a covariance matrix; B is nil if it is the
// unit matrix.
type spectrum struct {
	b *mat.Dense
	d []float64
}

// floor is the least eigenvalue that counts, where rounding made one negative.
const floor = 1e-8

func (g *gaussian) spectrum() spectrum {
	n := len(g.Mean)
	if len(g.Cov) == n {
		return rooted(spectrum{d: slices.Clone(g.Cov)})
	}
	c := mat.NewSymDense(n, nil)
	k := 0
	for i := range n {
		for j := i; j < n; j++ {
			c.SetSym(i, j, g.Cov[k])
			k++
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(c, true) {
		return rooted(spectrum{d: slices.Repeat([]float64{1}, n)})
	}
	s := spectrum{b: new(mat.Dense), d: eigen.Values(nil)}
	eigen.VectorsTo(s.b)
	return rooted(s)
}

// rooted turns eigenvalues into their roots.
func rooted(s spectrum) spectrum {
	for i, v := range s.d {
		if v <= 0 {
			v = floor
		}
		s.d[i] = math.Sqrt(v)
	}
	return s
}

// color returns B·D·z, whiten C^(-½)·y.
func (s spectrum) color(z []float64) []float64 {
	scaled := make([]float64, len(z))
	for i, v := range z {
		scaled[i] = s.d[i] * v
	}
	return s.rotate(scaled, false)
}

func (s spectrum) whiten(y []float64) []float64 {
	rotated := s.rotate(y, true)
	scaled := make([]float64, len(y))
	for i, v := range rotated {
		scaled[i] = v / s.d[i]
	}
	return s.rotate(scaled, false)
}

// rotate returns B·v, or Bᵀ·v.
func (s spectrum) rotate(v []float64, transposed bool) []float64 {
	if s.b == nil {
		return v
	}
	out := make([]float64, len(v))
	for i := range out {
		for j, w := range v {
			if transposed {
				out[i] += s.b.At(j, i) * w
			} else {
				out[i] += s.b.At(i, j) * w
			}
		}
	}
	return out
}

// sample returns a draw from the distribution.
func (g *gaussian) sample(s spectrum, rng *rand.Rand) []float64 {
	z := make([]float64, len(g.Mean))
	for i := range z {
		z[i] = rng.NormFloat64()
	}
	v := s.color(z)
	for i := range v {
		v[i] = g.Mean[i] + g.Sigma*g.Scale[i]*v[i]
	}
	return v
}

// member is an evaluated point of a generation.
type member struct {
	at    []float64 // the numeric coordinates
	value float64   // lower is better
	// foreign marks a point that was not drawn from the present distribution.
	foreign bool
}

// update moves the distribution to the generation's best members, which are sorted, the
// best first. A foreign member counts as no farther away than a drawn one would be
// (Hansen 2011, Injecting external solutions into CMA-ES, arXiv 1110.4181).
func (g *gaussian) update(s strategy, generation []member) {
	g.Generation++
	n := float64(s.dim)
	roots := g.spectrum()
	steps, white := make([][]float64, len(generation)), make([]float64, len(generation))
	for k, m := range generation {
		y := make([]float64, s.dim)
		for i, v := range m.at {
			y[i] = (v - g.Mean[i]) / (g.Scale[i] * g.Sigma)
		}
		white[k] = norm(roots.whiten(y))
		if longest := math.Sqrt(n) + 2*n/(n+2); m.foreign && white[k] > longest {
			for i := range y {
				y[i] *= longest / white[k]
			}
			white[k] = longest
		}
		steps[k] = y
	}
	step := make([]float64, s.dim)
	for k := range s.parents {
		for i, v := range steps[k] {
			step[i] += s.weights[k] * v
		}
	}
	whiteStep := roots.whiten(step)
	for i := range step {
		g.Mean[i] += g.Sigma * step[i]
		g.PathSigma[i] = (1-s.pathSigma)*g.PathSigma[i] + math.Sqrt(s.pathSigma*(2-s.pathSigma)*s.mass)*whiteStep[i]
	}
	path := norm(g.PathSigma)
	// At most by e in one update, as in Hansen 2011.
	g.Sigma = min(g.Sigma*math.Exp(min(1, s.pathSigma/s.damping*(path/s.length-1))), maxSigma)
	stalled := 0.0
	if path/math.Sqrt(1-math.Pow(1-s.pathSigma, 2*float64(g.Generation+1))) >= (1.4+2/(n+1))*s.length {
		stalled = 1
	}
	for i := range step {
		g.PathC[i] = (1-s.pathC)*g.PathC[i] + (1-stalled)*math.Sqrt(s.pathC*(2-s.pathC)*s.mass)*step[i]
	}
	g.learn(s, steps, white, stalled)
}

// maxSigma bounds the step size: the coordinates are those of the unit cube.
const maxSigma = 1e3

// learn updates the covariance matrix from the steps of the members.
func (g *gaussian) learn(s strategy, steps [][]float64, white []float64, stalled float64) {
	weights, sum := make([]float64, len(steps)), 0.0
	for k, w := range s.weights {
		sum += w
		if w < 0 {
			w *= float64(s.dim) / (white[k]*white[k] + 1e-8)
		}
		weights[k] = w
	}
	keep := 1 + s.rankOne*stalled*s.pathC*(2-s.pathC) - s.rankOne - s.rankMu*sum
	at := 0
	for i := range s.dim {
		for j := i; j < s.dim; j++ {
			c := keep*g.Cov[at] + s.rankOne*g.PathC[i]*g.PathC[j]
			for k, y := range steps {
				c += s.rankMu * weights[k] * y[i] * y[j]
			}
			g.Cov[at] = c
			at++
			if s.diagonal {
				break
			}
		}
	}
}

func norm(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
