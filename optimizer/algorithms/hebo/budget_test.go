package hebo

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// counted is a context that ends at the n-th call of Err.
type counted struct {
	context.Context
	left int
}

func (c *counted) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A request whose time runs out at any point of the work still returns suggestions.
func TestTimeRunsOut(t *testing.T) {
	for name, o := range map[string]optimizer.Optimizer{
		"logei": New(DefaultOptions()),
		"mace":  newSmall(options(func(o *Options) { o.Acquisition = MACE }), effort{1000, 100, 20}),
	} {
		t.Run(name, func(t *testing.T) {
			s := optimizertest.NewSession(t, o, optimizertest.Mixed(t), 3)
			s.Run(12, 2, func(p study.Point) float64 { return p["lr"].(float64) + p["drop"].(float64)*p["decay"].(float64) })
			s.Problem.MaxTrials = 100
			s.Ask(2)
			ask := func(ctx context.Context) ([]optimizer.Suggestion, optimizer.State, error) {
				p := s.Problem
				return o.Suggest(ctx, &p, s.State, 3, optimizer.NewRand(p.Seed, p.First))
			}
			whole := &counted{t.Context(), 1 << 30}
			want, _, err := ask(whole)
			if err != nil {
				t.Fatal(err)
			}
			looks := 1<<30 - whole.left
			if looks < 10 {
				t.Fatalf("the context is looked at %d times", looks)
			}
			for k := 0; k < looks; k += 1 + looks/8 {
				got, state, err := ask(&counted{t.Context(), k})
				if k == 0 {
					if !errors.Is(err, context.DeadlineExceeded) || len(got) > 0 {
						t.Errorf("no time at all: %v and %v, want no point and %v", got, err, context.DeadlineExceeded)
					}
					continue
				}
				if err != nil || len(got) == 0 || len(state) == 0 {
					t.Fatalf("ended at look %d of %d: %d points, a state of %d bytes and %v", k, looks, len(got), len(state), err)
				}
				hurried := false
				for _, b := range got {
					if err := s.Problem.Space.Check(b.Point); err != nil {
						t.Errorf("ended at look %d: %v", k, err)
					}
					hurried = hurried || strings.HasSuffix(b.Reasons.Note, loop.CutShort)
				}
				if !hurried && !cmp.Equal(want, got) {
					t.Errorf("ended at look %d of %d: other points, and no word of it", k, looks)
				}
				again, _, _ := ask(&counted{t.Context(), k})
				if diff := cmp.Diff(got, again); diff != "" {
					t.Errorf("ended at look %d twice (-first +second):\n%s", k, diff)
				}
			}
		})
	}
}

// Without time for a fit, the last request's model is used.
func TestNoTimeForAFit(t *testing.T) {
	s := observed(t, 40)
	p := s.Problem
	before := readMemory(s.State, DefaultOptions().Surrogate.NumParams(optimizer.NewEncoding(p.Space)))
	if before.Fitted == nil {
		t.Fatal("no hyperparameters were kept")
	}
	_, state, err := New(DefaultOptions()).Suggest(&counted{t.Context(), 2}, &p, s.State, 1, optimizer.NewRand(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	after := readMemory(state, len(before.Fitted.Kernel))
	if diff := cmp.Diff(before.Fitted, after.Fitted); diff != "" {
		t.Errorf("hyperparameters of a fit that was not made (-before +after):\n%s", diff)
	}
}
