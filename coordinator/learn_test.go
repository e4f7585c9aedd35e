package coordinator

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// told is a sampler that keeps what its problems say of earlier studies.
type told struct {
	sampler
	mu  *sync.Mutex
	all *[][]optimizer.Earlier
}

func (s told) Suggest(ctx context.Context, p *optimizer.Problem, state optimizer.State, n int, rng *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	s.mu.Lock()
	*s.all = append(*s.all, p.Earlier)
	s.mu.Unlock()
	return s.sampler.Suggest(ctx, p, state, n, rng)
}

// A study that names an earlier one keeps its trials: the optimiser is told the same after the earlier study
// is gone, and an update that only names it again changes nothing.
func TestEarlierStudiesAreReadOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	var mu sync.Mutex
	var all [][]optimizer.Earlier
	c := r.leader(func(o *Options) {
		o.NewOptimizer = func(study.Algorithm) (optimizer.Optimizer, error) { return told{mu: &mu, all: &all}, nil }
	})
	r.hand("w", 2, nil)
	ctx := r.ctx()
	learns := func(names ...string) func(*study.Spec) {
		return func(s *study.Spec) {
			for _, name := range names {
				s.LearnFrom = append(s.LearnFrom, study.Earlier{Study: name})
			}
		}
	}
	_, err := c.Create(ctx, newStudy("april", 4, 1, learns("march")))
	if !isProblem(err, "spec.learnFrom[0].study", `"march": there is no such study`) {
		t.Errorf("learn from a study that is not there: %v", err)
	}
	march := r.create(c, "march", 6, 2)
	r.ends(march.ID)
	april := r.create(c, "april", 4, 1, learns("march"))
	if err := c.Delete(ctx, "march", true); err != nil {
		t.Fatal(err)
	}
	r.ends(april.ID)
	stored, err := c.ledger.Study(ctx, "april")
	if err != nil {
		t.Fatal(err)
	}
	from := stored.Study.Definition.Spec.LearnFrom
	if len(from) != 1 || len(from[0].Trials) != 6 || from[0].Direction != study.Minimize {
		t.Fatalf("april has learnt %+v, want the six trials of march", from)
	}
	if err := c.Update(ctx, "april", newStudy("april", 5, 1, learns("march")), 0); err != nil {
		t.Errorf("a larger budget: %v", err)
	}
	r.ends(april.ID)
	err = c.Update(ctx, "april", newStudy("april", 5, 1), 0)
	if !errors.Is(err, ErrIncompatible) || !strings.Contains(err.Error(), "spec.learnFrom") {
		t.Errorf("update without the earlier study: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	last := all[len(all)-1]
	if len(last) != 1 || last[0].Name != "march" || len(last[0].Points) != 6 {
		t.Fatalf("the optimiser was told %+v", last)
	}
	if len(last[0].Seconds) != 6 || last[0].Spent != nil {
		t.Fatalf("the optimiser was told that trials took %v and cost %v", last[0].Seconds, last[0].Spent)
	}
	for i, trial := range from[0].Trials {
		if !(trial.Seconds > 0) || trial.Seconds != last[0].Seconds[i] {
			t.Errorf("trial %d took %v, and %v as the optimiser was told", i, trial.Seconds, last[0].Seconds[i])
		}
		if diff := cmp.Diff(study.Point(trial.Parameters), last[0].Points[i]); diff != "" || trial.Value != last[0].Costs[i] {
			t.Errorf("trial %d (-ledger +optimiser): %s, %v and %v", i, diff, trial.Value, last[0].Costs[i])
		}
	}
}

// isProblem reports whether an error is one problem of a field.
func isProblem(err error, path, message string) bool {
	problems, ok := errors.AsType[*study.Problems](err)
	return ok && len(problems.List) == 1 && problems.List[0].Path == path && strings.Contains(problems.List[0].Message, message)
}

// A study without a completed trial, and one of several objectives, teach nothing.
func TestNobodyLearnsFromThese(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	r.create(c, "empty", 6, 2)
	r.create(c, "front", 6, 2, func(s *study.Spec) {
		s.Several = []study.Objective{{Metric: "a", Direction: study.Minimize}, {Metric: "b", Direction: study.Minimize}}
		s.Objective = study.Objective{}
	})
	for name, says := range map[string]string{"empty": "no completed trial", "front": "several objectives"} {
		_, err := c.Create(r.ctx(), newStudy("new", 1, 1, func(s *study.Spec) { s.LearnFrom = []study.Earlier{{Study: name}} }))
		if !isProblem(err, "spec.learnFrom[0].study", says) {
			t.Errorf("learn from %s: %v", name, err)
		}
	}
	r.hand("w", 2, nil)
	r.ends(r.create(c, "short", 3, 2).ID)
	r.ends(r.create(c, "other", 4, 2).ID)
	learns := func(name, from string, direction study.Direction) error {
		_, err := c.Create(r.ctx(), newStudy("new", 1, 1, func(s *study.Spec) {
			s.Parameters[0].Name, s.LearnFrom = name, []study.Earlier{{Study: from, Direction: direction}}
		}))
		return err
	}
	if err := learns("x", "short", ""); !isProblem(err, "spec.learnFrom[0]", "from 3 of its trials") {
		t.Errorf("learn from three trials: %v", err)
	}
	if err := learns("rate", "other", ""); !isProblem(err, "spec.learnFrom[0]", "none of the parameters that this study searches (rate)") {
		t.Errorf("learn from trials of other parameters: %v", err)
	}
	if err := learns("x", "other", study.Maximize); !isProblem(err, "spec.learnFrom[0].direction", "the study other has minimize") {
		t.Errorf("learn in the wrong direction: %v", err)
	}
}
