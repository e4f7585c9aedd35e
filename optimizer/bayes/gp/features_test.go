package gp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/kernel"
)

const (
	weightMean     = 0.4
	weightVariance = 0.3
)

// bends are two functions of three columns.
type bends struct{}

func (bends) Len() int { return 2 }

func (bends) Values(x *mat.Dense) *mat.Dense {
	n, _ := x.Dims()
	out := mat.NewDense(n, 2, nil)
	for i := range n {
		out.SetRow(i, []float64{math.Sin(4 * x.At(i, 0)), x.At(i, 0)*x.At(i, 1) - x.At(i, 2)})
	}
	return out
}

func (bends) Slopes(x *mat.Dense) []*mat.Dense {
	n, d := x.Dims()
	out := []*mat.Dense{mat.NewDense(n, d, nil), mat.NewDense(n, d, nil)}
	for i := range n {
		out[0].Set(i, 0, 4*math.Cos(4*x.At(i, 0)))
		out[1].SetRow(i, []float64{x.At(i, 1), x.At(i, 0), -1})
	}
	return out
}

// bent returns a Matérn kernel with the functions, and one without.
func bent() (with, without *kernel.Kernel) {
	without = kernel.NewMatern52(kernel.Continuous(3))
	return kernel.NewSum(without, kernel.NewFeatures(kernel.Continuous(3), bends{}, weightMean, weightVariance)), without
}

// A process with functions in its kernel is one with explicit basis functions: with the prior N(b, B) of
// their weights, H their values at the observations and H* at the points,
//
//	β = (B⁻¹ + H K⁻¹ Hᵀ)⁻¹ (H K⁻¹ y + B⁻¹ b),  R = H* − H K⁻¹ K*
//	mean = K*ᵀ K⁻¹ y + Rᵀ β,  variance = var(f*) + diag(Rᵀ (B⁻¹ + H K⁻¹ Hᵀ)⁻¹ R)
//
// (Rasmussen and Williams, equations 2.41 and 2.42).
func TestFeaturesAreBasisFunctions(t *testing.T) {
	x, y := sample(25, 3, 1)
	at, _ := sample(40, 3, 2)
	with, without := bent()
	h := hyper(1.3, 0.02, 0.3, 0.5, 1)
	m, err := gp.Condition(with, h, x, y)
	if err != nil {
		t.Fatal(err)
	}
	mean, variance := m.Posterior(at)
	wantMean, wantVariance, weights := basisFunctions(without, h, x, at, y)
	near(t, "mean", mean, wantMean, 1e-9)
	near(t, "variance", variance, wantVariance, 1e-9)
	near(t, "weights", m.Weights(), weights, 1e-9)
	near(t, "Mean", m.Mean(at), wantMean, 1e-9)
	draw, err := m.Sample(at, mat.NewDense(40, 1, nil))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "a draw without noise", mat.Col(nil, 0, draw), wantMean, 1e-9)
	f := m.Fantasies()
	f.Believe(at.Slice(0, 3, 0, 3))
	believed, _ := f.Posterior(at)
	near(t, "mean with pending points", believed, wantMean, 1e-8)
}

// basisFunctions returns the posterior by the equations, and the weights β.
func basisFunctions(k *kernel.Kernel, h gp.Hyperparameters, x, at *mat.Dense, y []float64) (mean, variance, weights []float64) {
	n, _ := x.Dims()
	points, other := k.Prepare(h.Kernel, x, false), k.Prepare(h.Kernel, at, false)
	gram := mat.NewSymDense(n, nil)
	points.Gram(gram)
	for i := range n {
		gram.SetSym(i, i, gram.At(i, i)+h.Noise)
	}
	m, _ := at.Dims()
	cross, prior := mat.NewDense(n, m, nil), make([]float64, m)
	points.Cross(cross, other)
	other.Diag(prior)
	var inverse, precision, covariance, solved, r, share, explained mat.Dense
	if err := inverse.Inverse(gram); err != nil {
		panic(err)
	}
	solved.Mul(&inverse, cross)
	values, valuesAt := bends{}.Values(x), bends{}.Values(at) // Hᵀ and H*ᵀ
	var hk mat.Dense
	hk.Mul(values.T(), &inverse)
	precision.Mul(&hk, values)
	right := mat.NewVecDense(2, nil)
	right.MulVec(&hk, mat.NewVecDense(n, y))
	for s := range 2 {
		precision.Set(s, s, precision.At(s, s)+1/weightVariance)
		right.SetVec(s, right.AtVec(s)+weightMean/weightVariance)
	}
	if err := covariance.Inverse(&precision); err != nil {
		panic(err)
	}
	var beta, plain mat.VecDense
	beta.MulVec(&covariance, right)
	r.Mul(values.T(), &solved)
	r.Sub(valuesAt.T(), &r)
	plain.MulVec(solved.T(), mat.NewVecDense(n, y))
	share.Mul(&covariance, &r)
	explained.Mul(cross.T(), &solved)
	for j := range m {
		mean = append(mean, plain.AtVec(j)+mat.Dot(r.ColView(j), &beta))
		variance = append(variance, prior[j]-explained.At(j, j)+mat.Dot(r.ColView(j), share.ColView(j)))
	}
	return mean, variance, mat.Col(nil, 0, &beta)
}

// The derivatives of a posterior with functions, with pending points too.
func TestFeatureGradientsAgainstFiniteDifferences(t *testing.T) {
	x, y := sample(20, 3, 1)
	at, _ := sample(10, 3, 2)
	with, _ := bent()
	m, err := gp.Condition(with, hyper(1.3, 0.02, 0.3, 0.5, 1), x, y)
	if err != nil {
		t.Fatal(err)
	}
	f := m.Fantasies()
	f.Believe(at.Slice(0, 2, 0, 3))
	g, slopes := f.Gradients(at), m.MeanSlopes(at)
	const step = 1e-5
	for c := range 3 {
		up, down := mat.DenseCopyOf(at), mat.DenseCopyOf(at)
		for i := range 10 {
			up.Set(i, c, at.At(i, c)+step)
			down.Set(i, c, at.At(i, c)-step)
		}
		meanUp, varianceUp := f.Posterior(up)
		meanDown, varianceDown := f.Posterior(down)
		for i := range 10 {
			dMean, dVariance := (meanUp[i]-meanDown[i])/(2*step), (varianceUp[i]-varianceDown[i])/(2*step)
			near(t, "dMean", []float64{g.DMean.At(i, c), slopes.At(i, c)}, []float64{dMean, dMean}, 1e-6)
			near(t, "dVariance", []float64{g.DVariance.At(i, c)}, []float64{dVariance}, 1e-6)
		}
	}
}

// The likelihood that a fit maximises is that of the observations above the prior mean.
func TestFitWithFeatures(t *testing.T) {
	x, y := sample(30, 3, 4)
	with, _ := bent()
	config := gp.DefaultConfig(3)
	result, err := gp.Fit(t.Context(), with, x, y, config, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	again, err := gp.Condition(with, result.Model.Hyperparameters(), x, y)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "likelihood", []float64{result.Model.LogMarginalLikelihood()}, []float64{again.LogMarginalLikelihood()}, 1e-9)
	// By definition: the density of y under N(H b, K + H B Hᵀ).
	h := again.Hyperparameters()
	gram := mat.NewSymDense(30, nil)
	with.Prepare(h.Kernel, x, false).Gram(gram)
	above := append([]float64(nil), y...)
	for i, row := 0, (bends{}).Values(x); i < 30; i++ {
		gram.SetSym(i, i, gram.At(i, i)+h.Noise)
		above[i] -= weightMean * mat.Sum(row.RowView(i))
	}
	var factor mat.Cholesky
	if !factor.Factorize(gram) {
		t.Fatal("not positive definite")
	}
	var solved mat.VecDense
	if err := factor.SolveVecTo(&solved, mat.NewVecDense(30, above)); err != nil {
		t.Fatal(err)
	}
	want := -0.5*mat.Dot(mat.NewVecDense(30, above), &solved) - 0.5*factor.LogDet() - 15*math.Log(2*math.Pi)
	near(t, "likelihood by definition", []float64{again.LogMarginalLikelihood()}, []float64{want}, 1e-8)
}
