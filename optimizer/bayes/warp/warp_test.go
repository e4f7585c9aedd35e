package warp_test

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/warp"
)

// fixture holds arguments with exact results, from testdata/reference.py.
type fixture struct{ x, a, b, w, dx, da, db float64 }

func fixtures(t *testing.T) []fixture {
	t.Helper()
	file, err := os.Open("testdata/mpmath.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]fixture, len(rows))
	for i, row := range rows {
		f := &all[i]
		for c, to := range []*float64{&f.x, &f.a, &f.b, &f.w, &f.dx, &f.da, &f.db} {
			if *to, err = strconv.ParseFloat(row[c], 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

func TestAgainstMpmath(t *testing.T) {
	for _, f := range fixtures(t) {
		if got := warp.Value(f.x, f.a, f.b); !close(got, f.w) {
			t.Errorf("w(%v; %v, %v) = %v, want %v", f.x, f.a, f.b, got, f.w)
		}
		w, dx, da, db := warp.Gradient(f.x, f.a, f.b)
		for _, c := range []struct {
			of        string
			got, want float64
		}{{"value", w, f.w}, {"slope by x", dx, f.dx}, {"slope by a", da, f.da}, {"slope by b", db, f.db}} {
			if !close(c.got, c.want) {
				t.Errorf("%s of w(%v; %v, %v) = %v, want %v", c.of, f.x, f.a, f.b, c.got, c.want)
			}
		}
	}
}

// close allows the rounding of 1 − (a number with 16 digits) at most.
func close(got, want float64) bool { return math.Abs(got-want) <= 1e-13*math.Abs(want) }

func TestUnitShapesAreTheIdentity(t *testing.T) {
	for _, x := range []float64{0, 1e-9, 0.2, 0.5, 0.9, 1} {
		if got := warp.Value(x, 1, 1); math.Abs(got-x) > 1.001*warp.Epsilon {
			t.Errorf("w(%v; 1, 1) = %v", x, got)
		}
	}
}

func TestMonotoneWithinTheInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := func(name string) float64 {
			return math.Exp(rapid.Float64Range(math.Log(warp.MinShape), math.Log(warp.MaxShape)).Draw(t, name))
		}
		a, b := shape("a"), shape("b")
		x := rapid.Float64Range(0, 1).Draw(t, "x")
		y := rapid.Float64Range(x, 1).Draw(t, "y")
		low, high := warp.Value(x, a, b), warp.Value(y, a, b)
		if !(low >= 0 && low <= high*(1+1e-15) && high <= 1) {
			t.Errorf("w(%v) = %v, w(%v) = %v with shapes %v and %v", x, low, y, high, a, b)
		}
		w, dx, da, db := warp.Gradient(x, a, b)
		if w != low || !(dx >= 0 && da <= 0 && db >= 0) || math.IsInf(dx+db-da, 0) {
			t.Errorf("value %v and slopes %v, %v, %v at %v with shapes %v and %v", w, dx, da, db, x, a, b)
		}
	})
}

// Rows agree with the scalar functions, except that values near 0 have only the digits
// that values near 1 have.
func TestRowsAgainstMpmath(t *testing.T) {
	for _, f := range fixtures(t) {
		for _, n := range []int{1, 7, 64, 150} {
			x, w, dx, da, db := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
			for i := range x {
				x[i] = 0.5
			}
			at := n / 2
			x[at] = f.x
			warp.Gradients(w, dx, da, db, x, f.a, f.b)
			if !(math.Abs(w[at]-f.w) <= 5e-16) || !close(dx[at], f.dx) || !close(da[at], f.da) || !close(db[at], f.db) {
				t.Fatalf("w(%v; %v, %v) = %v with slopes %v, %v, %v, want %v with %v, %v, %v",
					f.x, f.a, f.b, w[at], dx[at], da[at], db[at], f.w, f.dx, f.da, f.db)
			}
			warp.Values(x, x, f.a, f.b)
			if !slices.Equal(x, w) {
				t.Fatalf("values with shapes %v, %v differ from those with gradients", f.a, f.b)
			}
		}
	}
}

func TestRowsDoNotAllocate(t *testing.T) {
	x, dst := make([]float64, 100), make([]float64, 400)
	if n := testing.AllocsPerRun(10, func() {
		warp.Values(dst[:100], x, 0.5, 2)
		warp.Gradients(dst[:100], dst[100:200], dst[200:300], dst[300:], x, 0.5, 2)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRow(b *testing.B) {
	const n = 1024
	x, v := make([]float64, n), make([]float64, 4*n)
	for i := range x {
		x[i] = float64(i) / n
	}
	w, dx, da, db := v[:n], v[n:2*n], v[2*n:3*n], v[3*n:]
	for name, f := range map[string]func(){
		"values":    func() { warp.Values(w, x, 0.7, 1.8) },
		"gradients": func() { warp.Gradients(w, dx, da, db, x, 0.7, 1.8) },
		"values, one by one": func() {
			for i, v := range x {
				w[i] = warp.Value(v, 0.7, 1.8)
			}
		},
		"gradients, one by one": func() {
			for i, v := range x {
				w[i], dx[i], da[i], db[i] = warp.Gradient(v, 0.7, 1.8)
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
		})
	}
}
