package tpe

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// branches is a space in which some parameters are active in some points only.
func branches(t *testing.T) *space.Space {
	all := append(parameters(), study.Parameter{Name: "more", Type: study.Bool})
	for _, p := range parameters() {
		p.Name, p.When = p.Name+"b", map[string][]any{"choice": {"b"}}
		all = append(all, p)
	}
	return optimizertest.Space(t, all, nil)
}

// The density of the bad points is, bit for bit, the one that newParzen makes of the same points,
// while observations arrive, other ones become good, and points are open.
func TestBadOnesAreSortedOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	encoding := optimizer.NewEncoding(branches(t))
	draw := func() study.Point {
		x := make([]float64, encoding.Dim())
		optimizer.Uniform(rng)(x)
		return encoding.Decode(x)
	}
	h := newHistory(encoding)
	var observations []optimizer.Observation
	for len(observations) < 300 {
		for range rng.IntN(8) {
			observations = append(observations, optimizer.Observation{Point: draw()})
		}
		if h.add(observations); !h.of(encoding, observations) {
			t.Fatal("the history is not that of its observations")
		}
		good := make([]bool, len(observations))
		var bad, open []point
		for i, o := range observations {
			if good[i] = rng.IntN(10) == 0; !good[i] {
				bad = append(bad, point{encoding.Encode(o.Point), o.Point})
			}
		}
		for range rng.IntN(4) {
			p := draw()
			if rng.IntN(2) == 0 && len(bad) > 0 { // at the same place as another
				p = bad[rng.IntN(len(bad))].point
			}
			open = append(open, point{encoding.Encode(p), p})
		}
		for i, tab := range h.tables {
			rows := tab.of(append(bad[:len(bad):len(bad)], open...))
			want := newParzen(tab.columns, rows, ramp(len(rows)), false)
			got := tab.badOnes(good, tab.of(open))
			for range 5 {
				p := draw()
				for _, x := range tab.of([]point{{encoding.Encode(p), p}}) {
					if a, b := got.logDensity(x, nil), want.logDensity(x, nil); a != b {
						t.Fatalf("%d observations, group %d: log density %v, want %v", len(observations), i, a, b)
					}
					if a, b := got.roughly(x, nil), want.logDensity(x, nil); a < b-near/1000 || a > b+near/1000 {
						t.Fatalf("%d observations, group %d: roughly %v, want %v", len(observations), i, a, b)
					}
				}
			}
		}
	}
}

// An optimiser that has seen other requests, also of other studies, answers as a new one does.
func TestHistoryIsOnlyACache(t *testing.T) {
	used := New(defaults(t))
	objective := func(p study.Point) float64 {
		return p["plain"].(float64) + p["log"].(float64) + p["grid"].(float64)
	}
	space := branches(t)
	var studies []*optimizertest.Session
	for seed := range uint64(2) {
		studies = append(studies, optimizertest.NewSession(t, New(defaults(t)), space, seed))
	}
	for step := range 6 {
		for i, s := range studies {
			s.Run(12*(step+1), 1+i, objective)
			for _, observations := range [][]optimizer.Observation{s.Problem.Observations, s.Problem.Observations[:10]} {
				p := s.Problem
				p.Observations = observations
				got, _, err := used.Suggest(t.Context(), &p, s.State, 3, optimizer.NewRand(1, step))
				if err != nil {
					t.Fatal(err)
				}
				want, _, err := New(defaults(t)).Suggest(t.Context(), &p, s.State, 3, optimizer.NewRand(1, step))
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Fatalf("study %d after %d observations (-new +used): %v\n%s", i, len(observations), err, diff)
				}
			}
		}
	}
}
