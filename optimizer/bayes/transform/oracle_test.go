package transform

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// reference holds the results of testdata/reference.py, computed with SciPy.
type reference struct {
	Cases []struct {
		Name       string    `json:"name"`
		Y          []float64 `json:"y"`
		BoxCox     *oracle   `json:"boxcox"`
		YeoJohnson *oracle   `json:"yeojohnson"`
	} `json:"cases"`
}

type oracle struct {
	Lambda float64      `json:"lambda"`
	LLF    float64      `json:"llf"`
	At     [][2]float64 `json:"at"`
	Z      []float64    `json:"z"`
}

func readReference(t *testing.T) reference {
	t.Helper()
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*max(1, math.Abs(want))
}

// check compares one chain, fitted to y without a clip, with SciPy's. SciPy's
// likelihoods are of y for Box-Cox and of y/sd for Yeo-Johnson.
func check(t *testing.T, kind Kind, y []float64, o *oracle) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(y))
	n := float64(len(y))
	for _, chain := range chains(sorted, 0, clip{}) {
		if chain.kind != kind {
			continue
		}
		unit := 0.0 // SciPy's y over w
		if kind == KindBoxCox {
			unit = math.Log(chain.scale)
		}
		s := make([]float64, len(sorted))
		value := chain.fit(sorted, s, lambdaHigh)
		var sum float64
		for _, x := range s {
			sum += x
		}
		// SciPy's variance has n in the denominator, and its Box-Cox likelihood
		// counts the Jacobian of w to y in its sum of logarithms.
		scipy := func(value float64) float64 { return value - n*unit - n/2*math.Log1p(-1/n) }
		for _, at := range o.At {
			if got := scipy(profile(kind, at[0], s, sum)); !near(got, at[1], 1e-9) {
				t.Errorf("%s: log-likelihood at λ=%g is %.12g, SciPy has %.12g", kind, at[0], got, at[1])
			}
		}
		if !near(chain.lambda, o.Lambda, 1e-6) {
			t.Errorf("%s: λ = %.9g, SciPy has %.9g", kind, chain.lambda, o.Lambda)
		}
		if got := scipy(value + n*math.Log(chain.scale)); !near(got, o.LLF, 1e-9) {
			t.Errorf("%s: log-likelihood %.12g, SciPy has %.12g", kind, got, o.LLF)
		}
		z := make([]float64, len(y))
		chain.Apply(z, y)
		for i := range z {
			if !near(z[i], o.Z[i], 1e-5) {
				t.Errorf("%s: z of y[%d] = %g is %.9g, SciPy has %.9g", kind, i, y[i], z[i], o.Z[i])
			}
		}
		return
	}
	t.Errorf("%s was not tried", kind)
}

func TestPowerTransformsAgainstSciPy(t *testing.T) {
	for _, c := range readReference(t).Cases {
		t.Run(c.Name, func(t *testing.T) {
			check(t, KindYeoJohnson, c.Y, c.YeoJohnson)
			if c.BoxCox != nil {
				check(t, KindBoxCox, c.Y, c.BoxCox)
			}
		})
	}
}

// The rule of n points is exact for polynomials of degree 2n − 1: the even
// moments of a standard normal variable are (2k − 1)!!.
func TestQuadratureHasTheMomentsOfANormal(t *testing.T) {
	want := 1.0
	for k := range 2 * len(nodes) {
		var sum float64
		for i, node := range nodes {
			sum += 2 * weights[i] * math.Pow(node, float64(2*k))
		}
		if !near(sum/want, 1, 1e-12) {
			t.Errorf("moment %d is %v, want %v", 2*k, sum, want)
		}
		want *= float64(2*k + 1)
	}
}

// Lambda returns the parameter of the power transform.
func (t Transform) Lambda() float64 { return t.lambda }

// Clipped reports whether outliers are squeezed.
func (t Transform) Clipped() bool { return t.clip.on }
