package optimizer_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// foreseeing is an algorithm that is told what is foreseen, and keeps it.
type foreseeing struct {
	propose
	foresees bool
}

func (f foreseeing) Foresees() bool { return f.foresees }

// What is foreseen of pending points counts as completed, for an algorithm that wants it so, and while little else is known.
func TestForeseenEndsCountAsCompleted(t *testing.T) {
	space := optimizertest.Small(t)
	points, _ := space.Enumerate(optimizertest.SmallSize)
	for name, c := range map[string]struct {
		foresees bool
		ended    int
		limits   []study.Limit
		want     string // trials that have ended and those that are pending
	}{
		"foreseen":             {true, 2, nil, "[1 2 4 5] [3]"},
		"nothing has ended":    {true, 0, nil, "[2 3] [1]"},
		"no such algorithm":    {false, 2, nil, "[1 2] [3 4 5]"},
		"limits":               {true, 2, []study.Limit{{Metric: "memory", Max: new(1.)}}, "[1 2] [3 4 5]"},
		"much else is known":   {true, 32, nil, "32 [33 34 35]"},
		"nearly as much is so": {true, 31, nil, "33 [32]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &optimizer.Problem{Space: space, Direction: study.Minimize, MaxTrials: 100, First: c.ended + 4, Limits: c.limits}
			for i := range c.ended {
				p.Observations = append(p.Observations, optimizer.Observation{
					Trial: i + 1, Point: points[i%3], Outcome: optimizer.OutcomeCompleted, Values: study.Values{float64(i)},
				})
			}
			p.Observations = slices.Grow(p.Observations, 8) // which nobody may fill
			for i := range 3 {
				pending := optimizer.Pending{Trial: c.ended + 1 + i, Point: points[3+i]}
				if i > 0 {
					pending.Likely = study.Values{float64(10 * i)}
				}
				p.Pending = append(p.Pending, pending)
			}
			var told *optimizer.Problem
			o := optimizer.Guard(foreseeing{func(r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
				told = r.Problem
				taken := r.Sampler.Taken(points[4]) && r.Sampler.Taken(points[5])
				return []optimizer.Suggestion{{
					Point: points[8], Source: optimizer.SourceModel,
					Reasons: optimizer.Reasons{Pending: len(r.Pending), Note: fmt.Sprint(taken)},
				}}, nil, nil
			}, c.foresees})
			batch, _, err := o.Suggest(t.Context(), p, nil, 1, optimizer.NewRand(1, p.First))
			if err != nil {
				t.Fatal(err)
			}
			var ended, pending []int
			for _, x := range told.Observations {
				ended = append(ended, x.Trial)
			}
			for _, x := range told.Pending {
				pending = append(pending, x.Trial)
			}
			got := fmt.Sprint(ended, pending)
			if c.ended > 5 {
				got = fmt.Sprint(len(ended), " ", pending)
			}
			if got != c.want {
				t.Errorf("told %s, want %s", got, c.want)
			}
			foreseen := len(pending) == 1
			last := told.Observations[len(told.Observations)-1]
			if foreseen && (last.Values.First() != 20 || last.Outcome != optimizer.OutcomeCompleted) {
				t.Errorf("the last one is told as %+v", last)
			}
			r := batch[0].Reasons
			if r.Pending != 3 || r.Note != "true" {
				t.Errorf("the reasons are %+v, want 3 pending points, which are taken", r)
			}
			if len(p.Observations) != c.ended || len(p.Pending) != 3 || p.Observations[:c.ended+1][c.ended].Trial != 0 {
				t.Errorf("the problem has changed: %+v", p)
			}
		})
	}
}
