package diagnose_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/diagnose"
)

// reference holds what testdata/reference.py computed with SciPy.
type reference struct {
	Tests []struct {
		Name                  string      `json:"name"`
		Groups                [][]float64 `json:"groups"`
		Median, Mean, Fligner [2]float64
	} `json:"tests"`
	Ranks []struct {
		Name     string `json:"name"`
		X, Y     []float64
		Ranks    []float64 `json:"ranks"`
		Spearman float64   `json:"spearman"`
		Kendall  float64   `json:"kendall"`
	} `json:"ranks"`
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

// near fails unless got equals want to a relative tolerance.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestTestsAgainstSciPy(t *testing.T) {
	for _, c := range readReference(t).Tests {
		t.Run(c.Name, func(t *testing.T) {
			for _, test := range []struct {
				name string
				want [2]float64
				run  func() (diagnose.Test, error)
			}{
				{"Levene", c.Median, func() (diagnose.Test, error) { return diagnose.Levene(c.Groups) }},
				{"Fligner–Killeen", c.Fligner, func() (diagnose.Test, error) { return diagnose.FlignerKilleen(c.Groups) }},
			} {
				got, err := test.run()
				if err != nil {
					t.Fatal(err)
				}
				near(t, test.name+": statistic", got.Statistic, test.want[0], 1e-10)
				near(t, test.name+": p", got.P, test.want[1], 1e-10)
			}
		})
	}
}

func TestGroupsWithoutATest(t *testing.T) {
	for name, groups := range map[string][][]float64{
		"none":                {},
		"one group":           {{1, 2, 3}},
		"a group of one":      {{1, 2, 3}, {4}},
		"not finite":          {{1, 2, 3}, {4, math.NaN(), 6}},
		"no spread":           {{1, 1, 1}, {2, 2, 2}},
		"pairs, one distance": {{1, 2}, {5, 6}},
	} {
		if got, err := diagnose.Levene(groups); !errors.Is(err, diagnose.ErrGroups) {
			t.Errorf("%s: Levene gives %v, %v; want ErrGroups", name, got, err)
		}
		if got, err := diagnose.FlignerKilleen(groups); !errors.Is(err, diagnose.ErrGroups) {
			t.Errorf("%s: Fligner–Killeen gives %v, %v; want ErrGroups", name, got, err)
		}
	}
}

// A test depends on neither the groups' locations nor their common scale, and its P is
// a probability.
func TestTestsAreInvariant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.IntRange(-1000, 1000)
		groups := rapid.SliceOfN(rapid.SliceOfN(value, 3, 8), 2, 6).Draw(t, "groups")
		shift := rapid.SliceOfN(value, len(groups), len(groups)).Draw(t, "shift")
		a, b := make([][]float64, len(groups)), make([][]float64, len(groups))
		for i, g := range groups {
			for _, v := range g {
				a[i] = append(a[i], float64(v))
				b[i] = append(b[i], float64(-4*(v+shift[i])))
			}
		}
		for _, run := range []func([][]float64) (diagnose.Test, error){
			diagnose.FlignerKilleen, diagnose.Levene,
		} {
			before, err := run(a)
			after, again := run(b)
			if (err == nil) != (again == nil) {
				t.Fatalf("%v, but %v after a shift", err, again)
			}
			if err != nil {
				continue
			}
			if math.Abs(before.Statistic-after.Statistic) > 1e-9*(1+before.Statistic) || !(before.P >= 0 && before.P <= 1) {
				t.Fatalf("%+v, but %+v after a shift", before, after)
			}
		}
	})
}
