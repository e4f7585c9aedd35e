package front_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
)

// The front is all values that no others dominate, by the definition: nowhere worse and
// somewhere better.
func TestFrontByItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		objectives := make([]study.Objective, 1+rng.IntN(4))
		for i := range objectives {
			objectives[i].Direction = []study.Direction{study.Minimize, study.Maximize}[rng.IntN(2)]
		}
		all := make([]study.Values, rng.IntN(30))
		for i := range all {
			if rng.IntN(8) == 0 {
				continue // it did not complete
			}
			for range objectives {
				all[i] = append(all[i], float64(rng.IntN(4)))
			}
		}
		var want []int
		for i, v := range all {
			if v == nil {
				continue
			}
			dominated := slices.ContainsFunc(all, func(w study.Values) bool {
				if w == nil {
					return false
				}
				worse, better := false, false
				for k, o := range objectives {
					sign := 1.0
					if o.Direction == study.Maximize {
						sign = -1
					}
					worse = worse || sign*w[k] > sign*v[k]
					better = better || sign*w[k] < sign*v[k]
				}
				return better && !worse
			})
			if !dominated {
				want = append(want, i)
			}
		}
		if got := front.Of(objectives, all); !slices.Equal(got, want) {
			t.Fatalf("the front of %v for %v is %v, want %v", all, objectives, got, want)
		}
		on, knee := front.Ordered(objectives, all)
		best := func(a, b int) int {
			return cmp.Compare(objectives[0].Direction.Cost(all[a][0]), objectives[0].Direction.Cost(all[b][0]))
		}
		if !slices.IsSortedFunc(on, best) || knee != front.Knee(objectives, all) || knee >= 0 && !slices.Contains(on, knee) {
			t.Fatalf("the front of %v for %v in order is %v, with the knee %d", all, objectives, on, knee)
		}
		if slices.Sort(on); !slices.Equal(on, want) {
			t.Fatalf("the front in order has %v, want %v", on, want)
		}
	}
}

// two are objectives that are minimised and maximised, with references.
func two() []study.Objective {
	return []study.Objective{
		{Metric: "loss", Direction: study.Minimize, Reference: new(4.0)}, {Metric: "size", Direction: study.Maximize, Reference: new(1.0)},
	}
}

// Up to the references 4 and 1, the trials dominate rectangles: 3×1 and, beyond it, 2×2 and
// 1×1. A trial that is not better than a reference adds nothing, and neither does one without
// values.
func TestVolumes(t *testing.T) {
	all := []study.Values{{1, 2}, nil, {2, 4}, {3, 5}, {5, 9}, {3, 3}, {0, 1}}
	want := []float64{3, 3, 7, 8, 8, 8, 8}
	reference := front.References(two())
	if !slices.Equal(reference, study.Values{4, 1}) {
		t.Errorf("the references are %v, want 4 and 1", reference)
	}
	if got := front.Volumes(two(), all, reference); !slices.Equal(got, want) {
		t.Errorf("the hypervolumes are %v, want %v", got, want)
	}
	if got := front.Hypervolume(two(), all, reference); got != 8 {
		t.Errorf("the hypervolume is %v, want 8", got)
	}
	without := two()
	without[1].Reference = nil
	if got := front.References(without); got != nil {
		t.Errorf("without one of the references they are %v", got)
	}
	// The front has sizes from 1 to 9.
	if got := front.Beyond(without, all); len(got) != 2 || got[0] != 4 || math.Abs(got[1]-0.2) > 1e-12 {
		t.Errorf("beyond the front is %v", got)
	}
	if got := front.Beyond(two(), all[1:2]); got != nil {
		t.Errorf("beyond an empty front is %v", got)
	}
}

// What each of the values adds is, all together, the hypervolume, with any number of
// objectives.
func TestVolumesAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		objectives := make([]study.Objective, 2+rng.IntN(3))
		for i := range objectives {
			objectives[i] = study.Objective{Direction: study.Minimize, Reference: new(0.8)}
		}
		var all []study.Values
		for range 20 {
			v := make(study.Values, len(objectives))
			for k := range v {
				v[k] = rng.Float64()
			}
			all = append(all, v)
		}
		reference := front.References(objectives)
		volumes := front.Volumes(objectives, all, reference)
		for n := range all {
			if want := front.Hypervolume(objectives, all[:n+1], reference); math.Abs(volumes[n]-want) > 1e-12 {
				t.Fatalf("after %d of %v the hypervolume is %v, want %v", n+1, all, volumes[n], want)
			}
		}
	}
}

// The knee of a front of three trials is the one in the middle if that lies below the line
// through the others, whatever the units.
func TestKnee(t *testing.T) {
	for name, test := range map[string]struct {
		all  []study.Values
		want int
	}{
		"a bulge": {[]study.Values{{0, 900}, nil, {0.2, 300}, {1, 100}, {0.9, 90}}, 2},
		"a hole":  {[]study.Values{{0, 900}, {0.9, 800}, {1, 100}}, -1},
		"a line":  {[]study.Values{{0, 900}, {0.5, 500}, {1, 100}}, -1},
		"two":     {[]study.Values{{0, 900}, {1, 100}}, -1},
		"none":    {nil, -1},
	} {
		objectives := []study.Objective{{Direction: study.Minimize}, {Direction: study.Minimize}}
		if got := front.Knee(objectives, test.all); got != test.want {
			t.Errorf("%s: the knee is %d, want %d", name, got, test.want)
		}
		for _, v := range test.all {
			if v != nil {
				v[1] = -v[1]
			}
		}
		objectives[1].Direction = study.Maximize
		if got := front.Knee(objectives, test.all); got != test.want {
			t.Errorf("%s, maximised: the knee is %d, want %d", name, got, test.want)
		}
	}
}
