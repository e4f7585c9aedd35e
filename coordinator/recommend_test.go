package coordinator

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// latest recommends the last observation; it fails if its state is not the committed
// one.
func latest(p *optimizer.Problem, state optimizer.State) (*optimizer.Recommendation, error) {
	if string(state) != "fitted" {
		return nil, fmt.Errorf("the state is %q", state)
	}
	last := p.Observations[len(p.Observations)-1]
	return &optimizer.Recommendation{Trial: last.Trial, Mean: last.Values.First() + 1, SD: 0.5, Point: last.Point}, nil
}

// A recommender that panics returns an error to its caller and does not block the next
// one.
func TestRecommendThatPanics(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader(recommending(func(*optimizer.Problem, optimizer.State) (*optimizer.Recommendation, error) {
		panic("no such row")
	}))
	r.hand("w", 1, nil)
	s := r.create(c, "panics", 1, 1)
	ended := r.ends(s.ID)
	for range 2 {
		if _, err := c.Recommend(r.ctx(), ended); err == nil || !strings.Contains(err.Error(), "no such row") {
			t.Errorf("a recommendation that panics: %v", err)
		}
	}
}

// The front that is recommended of several objectives is stored as it was made.
func TestARecommendedFrontIsKept(t *testing.T) {
	t.Parallel()
	front := func(p *optimizer.Problem, state optimizer.State) (*optimizer.Recommendation, error) {
		r, err := latest(p, state)
		if err == nil {
			r.Front = []optimizer.Expected{{Trial: 1, Means: []float64{1, 5}, SDs: []float64{0.1, 0.2}},
				{Trial: r.Trial, Means: []float64{2, 3}, SDs: []float64{0, 0}, Knee: true}}
		}
		return r, err
	}
	r := newRig(t, membus.Options{})
	c := r.leader(recommending(front))
	r.hand("w", 1, nil)
	s := r.create(c, "front", 3, 1)
	r.ends(s.ID)
	ended := r.until(s.ID, func(s ledger.Summary) bool { return s.Status.RecommendedOfAll() })
	want, err := front(&optimizer.Problem{Observations: []optimizer.Observation{{Trial: 3, Values: study.Values{0}}}},
		optimizer.State("fitted"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Front, ended.Status.Recommended.At(nil).Front); diff != "" || ended.Status.Recommended.Trial != 3 {
		t.Errorf("trial %d is stored, and (-want +got):\n%s", ended.Status.Recommended.Trial, diff)
	}
}

// The leader recommends a point while a study runs and once more at its end. Callers
// then get the same recommendation without another fit.
func TestRecommendationsAreKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	var made atomic.Int64
	c := r.leader(recommending(func(p *optimizer.Problem, state optimizer.State) (*optimizer.Recommendation, error) {
		made.Add(1)
		return latest(p, state)
	}))
	hold := make(chan struct{})
	r.hand("w", 1, func(a *messaging.Assignment) *messaging.Result {
		if a.Trial > 1 {
			<-hold
		}
		return completes(a)
	})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	s := r.create(c, "kept", 3, 1)
	r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Recommended.Trial == 1 })
	r.eventually(func() error {
		p, err := c.Progress(r.ctx(), s.ID)
		if err == nil && p.Status.Recommended.Trial != 1 {
			err = fmt.Errorf("progress has %+v", p.Status)
		}
		return err
	})
	release()
	r.ends(s.ID)
	ended := r.until(s.ID, func(s ledger.Summary) bool { return s.Status.Recommended.Position == s.Status.Position })
	before := made.Load()
	recommended, err := c.Recommend(r.ctx(), ended)
	if err != nil {
		t.Fatal(err)
	}
	third, err := r.ledger.Trial(r.ctx(), s.ID, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := &optimizer.Recommendation{Trial: 3, Mean: third.Values.First() + 1, SD: 0.5, Point: third.Point}
	if diff := cmp.Diff(want, recommended); diff != "" || made.Load() != before {
		t.Errorf("%d more were made for one that is known; it is (-want +got):\n%s", made.Load()-before, diff)
	}
}

// A replica that does not lead makes a recommendation from the ledger, with the
// committed state.
func TestRecommendFromTheLedger(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader(func(o *Options) {
		o.NewOptimizer = func(study.Algorithm) (optimizer.Optimizer, error) { return stateful{}, nil }
	})
	r.hand("w", 1, nil)
	s := r.create(c, "read", 2, 1)
	ended := r.ends(s.ID)
	var made atomic.Int64
	other := r.replica(recommending(func(p *optimizer.Problem, state optimizer.State) (*optimizer.Recommendation, error) {
		made.Add(1)
		return latest(p, state)
	}))
	for range 2 {
		recommended, err := other.Recommend(r.ctx(), ended)
		if err != nil {
			t.Fatal(err)
		}
		if recommended == nil || recommended.Trial != 2 {
			t.Errorf("recommended %+v, want trial 2", recommended)
		}
	}
	if made.Load() != 1 {
		t.Errorf("made %d times for the same position of the ledger", made.Load())
	}
	// The leader's optimiser has no model.
	if recommended, err := c.Recommend(r.ctx(), ended); recommended != nil || err != nil {
		t.Errorf("without a model: %+v, %v", recommended, err)
	}
	if got := ended.Status.Recommended; got.Trial != 0 {
		t.Errorf("without a model, the leader recommended %+v", got)
	}
}

// A leader that dies before it has recommended a point of an ended study leaves that to
// the next one, which does not load the study's engine for it.
func TestTheNextLeaderRecommends(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	var made atomic.Int64
	c := r.leader(recommending(func(*optimizer.Problem, optimizer.State) (*optimizer.Recommendation, error) {
		return nil, errors.New("killed")
	}))
	r.hand("w", 1, nil)
	s := r.create(c, "orphaned", 3, 1)
	r.ends(s.ID)
	c.stop()
	for range 2 { // the second finds nothing left to do
		next := r.leader(recommending(func(p *optimizer.Problem, state optimizer.State) (*optimizer.Recommendation, error) {
			made.Add(1)
			return latest(p, state)
		}))
		done := r.until(s.ID, func(s ledger.Summary) bool { return s.Status.RecommendedOfAll() })
		if got := done.Status.Recommended; got.Trial != 3 || got.SD != 0.5 || done.Status.Counts.Completed != 3 {
			t.Errorf("recommended %+v of %+v, want trial 3 of 3", got, done.Status.Counts)
		}
		if err := next.Stop(r.ctx(), s.ID, ""); err != nil {
			t.Error(err)
		}
		next.stop()
	}
	if made.Load() != 1 {
		t.Errorf("recommended %d times, want once", made.Load())
	}
}
