package cmaes

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// oracle is testdata/updates.json.
type oracle struct {
	Full, Diagonal, Margin []generation
	Levels                 []int
	Categories             []struct {
		Points []struct{ Chosen []int }
		Shares [][]float64
	}
}

type generation struct {
	Points []struct {
		At    []float64
		Value float64
	}
	Mean, Cov, Path, Scale []float64
	Sigma                  float64
}

func (g generation) members() []member {
	var members []member
	for _, p := range g.Points {
		members = append(members, member{at: p.At, value: p.Value})
	}
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.value, b.value) })
	return members
}

func readOracle(t *testing.T) oracle {
	t.Helper()
	text, err := os.ReadFile("testdata/updates.json")
	if err != nil {
		t.Fatal(err)
	}
	var want oracle
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

func near(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= 1e-7*max(1, math.Abs(x)) })
}

// check compares the distribution with cmaes' after a generation.
func check(t *testing.T, k int, g *gaussian, want generation) {
	t.Helper()
	if !near(g.Mean, want.Mean) || math.Abs(g.Sigma-want.Sigma) > 1e-7*want.Sigma || !near(g.PathSigma, want.Path) {
		t.Fatalf(
			"generation %d: mean %v, sigma %g, path %v; cmaes has %v, %g, %v", k, g.Mean, g.Sigma, g.PathSigma, want.Mean, want.Sigma, want.Path,
		)
	}
	if !near(g.Cov, want.Cov) {
		t.Fatalf("generation %d: covariance %v, cmaes has %v", k, g.Cov, want.Cov)
	}
	if len(want.Scale) > 0 && !near(g.Scale, want.Scale) {
		t.Fatalf("generation %d: scale %v, cmaes has %v", k, g.Scale, want.Scale)
	}
}

// The updates of cmaes 0.13.1 for the same points: CMA, SepCMA, CMAwM, CatCMAwM.
func TestUpdatesOfCmaes(t *testing.T) {
	want := readOracle(t)
	t.Run("full", func(t *testing.T) {
		s := newStrategy(5, 9)
		g := newGaussian(s, slices.Repeat([]float64{0.5}, 5), 0.2)
		for k, one := range want.Full {
			g.update(s, one.members())
			check(t, k, g, one)
		}
	})
	t.Run("diagonal", func(t *testing.T) {
		s := newStrategy(70, 16)
		g := newGaussian(s, slices.Repeat([]float64{0.5}, 70), 0.1)
		for k, one := range want.Diagonal {
			g.update(s, one.members())
			check(t, k, g, one)
		}
	})
	t.Run("margin", func(t *testing.T) {
		s := newStrategy(5, 8)
		g := newGaussian(s, slices.Repeat([]float64{0.48}, 5), 0.2)
		columns := make([]optimizer.Column, 5)
		for i, n := range want.Levels {
			columns[i] = optimizer.Column{Levels: n, Parameter: study.Parameter{Type: study.Ordinal, Values: make([]any, n)}}
		}
		for k, one := range want.Margin {
			g.update(s, one.members())
			g.margin(columns, 1.0/(5*8))
			check(t, k, g, one)
		}
	})
	t.Run("categories", func(t *testing.T) {
		s := newStrategy(1, 8)
		c := newChoices([][]float64{{1. / 3, 1. / 3, 1. / 3}, {0.25, 0.25, 0.25, 0.25}, {0.5, 0.5}}, 3)
		for k, one := range want.Categories {
			var parents [][]int
			for _, p := range one.Points[:s.parents] {
				parents = append(parents, p.Chosen)
			}
			c.update(s, parents)
			for i := range c.Shares {
				if !near(c.Shares[i], one.Shares[i]) {
					t.Fatalf("generation %d: shares %v, cmaes has %v", k, c.Shares, one.Shares)
				}
			}
		}
	})
}
