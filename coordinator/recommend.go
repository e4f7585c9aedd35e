package coordinator

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// maxRecommendations is how many studies' recommendations are kept in memory.
const maxRecommendations = 1000

// recommendations caches each study's last recommendation until the study's ledger
// position changes. Safe for concurrent use.
type recommendations struct {
	// making holds one token, so that recommendations are made one at a time, and
	// each only once even if several callers ask for it.
	making chan struct{}

	mu   sync.Mutex
	last map[string]recommendation // by the study's id
}

// recommendation is what was recommended at a ledger position; its Recommendation is
// nil if nothing was.
type recommendation struct {
	position int64
	*optimizer.Recommendation
}

func (r *recommendations) known(id string, position int64) (*optimizer.Recommendation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.last[id]
	return last.Recommendation, ok && last.position == position
}

func (r *recommendations) keep(id string, position int64, recommended *optimizer.Recommendation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) >= maxRecommendations {
		clear(r.last)
	}
	r.last[id] = recommendation{position, recommended}
}

// at returns the recommendation of a study at a ledger position. It calls recommend
// if the recommendation is not cached.
func (r *recommendations) at(ctx context.Context, id string, position int64, recommend func() (*optimizer.Recommendation, error)) (*optimizer.Recommendation, error) {
	if recommended, ok := r.known(id, position); ok {
		return recommended, nil
	}
	select {
	case r.making <- struct{}{}:
		defer func() { <-r.making }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if recommended, ok := r.known(id, position); ok { // made while this call waited
		return recommended, nil
	}
	recommended, err := recommend()
	if err != nil {
		return nil, err
	}
	r.keep(id, position, recommended)
	return recommended, nil
}

// Recommend returns the evaluated point of a study whose posterior mean is best. It
// returns nil if no trial has completed yet, or if the study's optimiser makes no
// recommendations. It reads the ledger, so any replica can call it.
func (c *Coordinator) Recommend(ctx context.Context, s ledger.Summary) (*optimizer.Recommendation, error) {
	if s.Status.Counts.Completed == 0 {
		return nil, nil
	}
	o, err := c.o.NewOptimizer(s.Study.Definition.Spec.Algorithm)
	if err != nil {
		return nil, fmt.Errorf("recommend a point of study %s: %w", s.Study.ID, err)
	}
	if _, ok := o.(optimizer.Recommender); !ok {
		return nil, nil
	}
	return c.recommendations.at(ctx, s.Study.ID, s.Status.Position, func() (*optimizer.Recommendation, error) {
		return c.recommendStored(ctx, s.Study.ID)
	})
}

// recommendStored makes a recommendation from a study's records; nil if its optimiser makes none.
func (c *Coordinator) recommendStored(ctx context.Context, id string) (*optimizer.Recommendation, error) {
	records, err := c.ledger.LoadStudy(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load study %s: %w", id, err)
	}
	o, err := c.o.NewOptimizer(records.Study.Definition.Spec.Algorithm)
	if err != nil {
		return nil, fmt.Errorf("recommend a point of study %s: %w", id, err)
	}
	model, ok := o.(optimizer.Recommender)
	if !ok {
		return nil, nil
	}
	e, _, err := engine.Load(records.Study, records.Status, records.Model, records.Trials, drive.IDs{}, c.o.Engine, time.Now())
	if err != nil {
		return nil, fmt.Errorf("load study %s: %w", id, err)
	}
	recommended, err := drive.Recommend(ctx, model, e.FinalProblem(), e.Model().State)
	if err != nil {
		return nil, fmt.Errorf("recommend a point of study %s: %w", id, err)
	}
	return recommended, nil
}

// recommendRest limits recommendations to about a twentieth of the leader's time:
// after one that took a time t, the leader waits recommendRest·t before the next
// one, and at least a second.
const recommendRest = 20

// recommender makes a recommendation for each study from time to time, so that lists,
// progress and metrics need not fit a model themselves. The loop owns it.
type recommender struct {
	log     *slog.Logger
	studies *studies
	known   *recommendations
	stored  func(ctx context.Context, id string) (*optimizer.Recommendation, error) // from the ledger
	post    inbox.Post
	spawn   func(func()) // starts a goroutine of the term

	busy  bool      // a recommendation is being made
	after time.Time // when the next one may begin
}

// next starts the next recommendation, for the study that has waited longest.
func (m *recommender) next(ctx context.Context, now time.Time) {
	if m.busy || now.Before(m.after) {
		return
	}
	r, model := m.waiting()
	if r == nil {
		r = m.ended()
	}
	if r == nil {
		return
	}
	id, position := r.spec.ID, r.status.Position
	making := func(ctx context.Context) (*optimizer.Recommendation, error) { return m.stored(ctx, id) }
	if r.engine != nil {
		p, state := r.engine.FinalProblem(), r.engine.Model().State
		making = func(ctx context.Context) (*optimizer.Recommendation, error) {
			return drive.Recommend(ctx, model, p, state)
		}
	}
	m.busy, r.recommending, r.recommendingAt = true, position, now
	m.spawn(func() {
		asking, stop := context.WithTimeout(ctx, drive.SuggestTime)
		defer stop()
		var took time.Duration
		recommended, err := m.known.at(asking, id, position, func() (*optimizer.Recommendation, error) {
			start := time.Now()
			defer func() { took = time.Since(start) }()
			return making(asking)
		})
		m.post(ctx, func(_ context.Context, now time.Time) error {
			m.busy, m.after = false, now.Add(max(tickEvery, recommendRest*took))
			r := m.studies.runs[id]
			switch {
			case r == nil:
			case err != nil:
				m.log.Warn("could not make a recommendation", telemetry.LogStudy, r.name(), telemetry.LogError, err)
			case recommended != nil:
				m.studies.recommended(r, now, record.Recommended(recommended, position))
			}
			return nil
		})
	})
}

// waiting returns the study with the oldest recommendation, and its optimiser. It
// considers only studies whose position has changed since and whose optimiser makes
// recommendations. It returns nil if there is none.
func (m *recommender) waiting() (oldest *run, model optimizer.Recommender) {
	for _, r := range m.studies.loaded {
		s := &r.status
		if s.Counts.Completed == 0 || s.Position <= r.recommending || oldest != nil && !r.recommendingAt.Before(oldest.recommendingAt) {
			continue
		}
		if o, ok := r.optimizer.(optimizer.Recommender); ok {
			oldest, model = r, o
		}
	}
	return oldest, model
}

// ended takes the next ended study whose final recommendation is missing. Its engine is not loaded: a
// study of many trials would hold the loop up.
func (m *recommender) ended() *run {
	for s := m.studies; len(s.unfinished) > 0; {
		r := s.runs[s.unfinished[0]]
		s.unfinished = s.unfinished[1:]
		if r == nil || !r.unfinished() { // it was deleted, or has resumed
			continue
		}
		// Whether an optimiser recommends depends on its name only, which is all that a head has of it.
		o, err := s.newOptimizer(study.Algorithm{Name: r.spec.Definition.Spec.Algorithm.Name})
		if err != nil {
			m.log.Warn("could not make a recommendation", telemetry.LogStudy, r.name(), telemetry.LogError, err)
			continue
		}
		if _, ok := o.(optimizer.Recommender); ok {
			return r
		}
	}
	return nil
}
