package suggest

import (
	"context"
	"log/slog"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/inbox"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// recommendRest limits recommendations to about a twentieth of the leader's time:
// after one that took a time t, the leader waits recommendRest·t before the next
// one, and at least a second.
const recommendRest = 20

// recommendLeast is the least time between two recommendations.
const recommendLeast = time.Second

// Recommender makes a recommendation for each study from time to time, so that lists,
// progress and metrics need not fit a model themselves. The loop owns it.
type Recommender struct {
	o     RecommenderOptions
	busy  bool      // a recommendation is being made
	after time.Time // when the next one may begin
}

// RecommenderOptions say what a Recommender works with.
type RecommenderOptions struct {
	Log          *slog.Logger
	Studies      *studies.Studies
	NewOptimizer func(study.Algorithm) (optimizer.Optimizer, error)
	// Known are the recommendations of all terms.
	Known *Recommendations
	// Stored makes a recommendation from the ledger, for a study whose engine is not loaded.
	Stored func(ctx context.Context, id string) (*optimizer.Recommendation, error)
	Post   inbox.Post
	Spawn  func(func()) // starts a goroutine of the term
}

// NewRecommender returns the recommender of a term.
func NewRecommender(o RecommenderOptions) *Recommender { return &Recommender{o: o} }

// Next starts the next recommendation, for the study that has waited longest.
func (m *Recommender) Next(ctx context.Context, now time.Time) {
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
	id, position := r.Spec.ID, r.Status.Position
	making := func(ctx context.Context) (*optimizer.Recommendation, error) { return m.o.Stored(ctx, id) }
	if r.Engine != nil {
		p, state := r.Engine.FinalProblem(), r.Engine.Model().State
		making = func(ctx context.Context) (*optimizer.Recommendation, error) {
			return drive.Recommend(ctx, model, p, state)
		}
	}
	m.busy, r.Recommending, r.RecommendingAt = true, position, now
	m.o.Spawn(func() {
		asking, stop := context.WithTimeout(ctx, drive.SuggestTime)
		defer stop()
		var took time.Duration
		recommended, err := m.o.Known.At(asking, id, position, func() (*optimizer.Recommendation, error) {
			start := time.Now()
			defer func() { took = time.Since(start) }()
			return making(asking)
		})
		m.o.Post(ctx, func(_ context.Context, now time.Time) error {
			m.busy, m.after = false, now.Add(max(recommendLeast, recommendRest*took))
			r := m.o.Studies.Get(id)
			switch {
			case r == nil:
			case err != nil:
				m.o.Log.Warn("could not make a recommendation", telemetry.LogStudy, r.Name(), telemetry.LogError, err)
			case recommended != nil:
				m.o.Studies.Recommended(r, now, record.Recommended(recommended, position))
			}
			return nil
		})
	})
}

// waiting returns the study with the oldest recommendation, and its optimiser. It
// considers only studies whose position has changed since and whose optimiser makes
// recommendations. It returns nil if there is none.
func (m *Recommender) waiting() (oldest *studies.Study, model optimizer.Recommender) {
	for r := range m.o.Studies.Loaded() {
		s := &r.Status
		if s.Counts.Completed == 0 || s.Position <= r.Recommending || oldest != nil && !r.RecommendingAt.Before(oldest.RecommendingAt) {
			continue
		}
		if o, ok := r.Optimizer.(optimizer.Recommender); ok {
			oldest, model = r, o
		}
	}
	return oldest, model
}

// ended takes the next ended study whose final recommendation is missing. Its engine is not loaded: a
// study of many trials would hold the loop up.
func (m *Recommender) ended() *studies.Study {
	for r := m.o.Studies.NextUnfinished(); r != nil; r = m.o.Studies.NextUnfinished() {
		// Whether an optimiser recommends depends on its name only, which is all that a head has of it.
		o, err := m.o.NewOptimizer(study.Algorithm{Name: r.Spec.Definition.Spec.Algorithm.Name})
		if err != nil {
			m.o.Log.Warn("could not make a recommendation", telemetry.LogStudy, r.Name(), telemetry.LogError, err)
			continue
		}
		if _, ok := o.(optimizer.Recommender); ok {
			return r
		}
	}
	return nil
}
