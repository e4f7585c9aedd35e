package coordinator

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// maxAdvised bounds how many studies' recommendations are kept.
const maxAdvised = 1000

// advice keeps each study's last recommendation until its ledger moves on. Safe
// for concurrent use.
type advice struct {
	// making holds one token: recommendations are made one after the other, and
	// each once, however many ask.
	making chan struct{}

	mu   sync.Mutex
	last map[string]advised
}

func newAdvice() *advice {
	return &advice{making: make(chan struct{}, 1), last: map[string]advised{}}
}

type advised struct {
	position int64
	given    *optimizer.Recommendation
}

func (a *advice) known(id string, position int64) (*optimizer.Recommendation, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.last[id]
	return known.given, ok && known.position == position
}

func (a *advice) keep(id string, position int64, given *optimizer.Recommendation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.last) >= maxAdvised {
		clear(a.last)
	}
	a.last[id] = advised{position, given}
}

// at returns the recommendation of a study at a ledger position, made where it is
// not known.
func (a *advice) at(ctx context.Context, id string, position int64, recommend func() (*optimizer.Recommendation, error)) (*optimizer.Recommendation, error) {
	if given, ok := a.known(id, position); ok {
		return given, nil
	}
	select {
	case a.making <- struct{}{}:
		defer func() { <-a.making }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if given, ok := a.known(id, position); ok { // made meanwhile
		return given, nil
	}
	given, err := recommend()
	if err != nil {
		return nil, err
	}
	a.keep(id, position, given)
	return given, nil
}

// Recommend returns the evaluated point of a study whose posterior mean is best,
// nil while nothing has completed. Any replica answers, from the ledger.
func (c *Coordinator) Recommend(ctx context.Context, s ledger.Summary) (*optimizer.Recommendation, error) {
	if s.Status.Counts.Completed == 0 {
		return nil, nil
	}
	id := s.Study.ID
	return c.advice.at(ctx, id, s.Status.Position, func() (*optimizer.Recommendation, error) { return c.recommend(ctx, id) })
}

// recommend makes a recommendation from a study's records.
func (c *Coordinator) recommend(ctx context.Context, id string) (*optimizer.Recommendation, error) {
	records, err := c.ledger.LoadStudy(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load study %s: %w", id, err)
	}
	e, _, err := engine.Load(records.Study, records.Status, records.Model, records.Trials, ids{}, c.o.Engine, time.Now())
	if err != nil {
		return nil, fmt.Errorf("load study %s: %w", id, err)
	}
	given, err := c.advise(ctx, records.Study.Study.Spec.Algorithm, e.Problem())
	if err != nil {
		return nil, fmt.Errorf("recommend a point of study %s: %w", id, err)
	}
	return given, nil
}

// advise calls what makes recommendations; a panic there fails the request, not
// the process.
func (c *Coordinator) advise(ctx context.Context, a study.Algorithm, p *optimizer.Problem) (given *optimizer.Recommendation, err error) {
	defer caught(&err)
	return c.o.Recommend(ctx, a, p)
}

// adviseRest is how many times as long as a recommendation took the leader waits
// before the next one, and a second at least: they take a twentieth of its time.
const adviseRest = 20

// adviser has a recommendation made for each study from time to time, so that
// lists, progress and metrics have it without a fit of their own. The loop owns it.
type adviser struct {
	log     *slog.Logger
	studies *studies
	// advise makes a recommendation, and says how long that took: 0 where one was
	// known.
	advise func(ctx context.Context, id string, position int64, a study.Algorithm, p *optimizer.Problem) (*optimizer.Recommendation, time.Duration, error)
	post   post
	spawn  func(func()) // starts a goroutine of the term

	busy  bool      // a recommendation is being made
	after time.Time // when the next one may be
}

// adviseAt returns the recommendation of a study at a ledger position, and how long
// it took to make it.
func (c *Coordinator) adviseAt(ctx context.Context, id string, position int64, algorithm study.Algorithm, p *optimizer.Problem) (given *optimizer.Recommendation, took time.Duration, err error) {
	given, err = c.advice.at(ctx, id, position, func() (*optimizer.Recommendation, error) {
		start := time.Now()
		defer func() { took = time.Since(start) }()
		return c.advise(ctx, algorithm, p)
	})
	return given, took, err
}

// next begins the next recommendation, of the study that has waited for one for
// the longest.
func (a *adviser) next(ctx context.Context, now time.Time) {
	if a.busy || now.Before(a.after) {
		return
	}
	r := a.waiting()
	if r == nil {
		return
	}
	id, algorithm, p, position := r.spec.ID, r.spec.Study.Spec.Algorithm, r.engine.Problem(), r.engine.Status().Position
	a.busy, r.advised, r.advisedAt = true, position, now
	a.spawn(func() {
		asking, stop := context.WithTimeout(ctx, suggestTime)
		defer stop()
		given, took, err := a.advise(asking, id, position, algorithm, p)
		a.post(ctx, func(_ context.Context, now time.Time) error {
			a.busy, a.after = false, now.Add(max(tickEvery, adviseRest*took))
			r := a.studies.runs[id]
			switch {
			case r == nil:
			case err != nil:
				a.log.Warn("a study gets no recommendation", telemetry.LogStudy, r.name(), telemetry.LogError, err)
			case given != nil:
				a.studies.step(r, engine.Recommended{At: now, Recommended: record.Recommended{Trial: given.Trial, Mean: given.Mean, SD: given.SD, Position: position}})
			}
			return nil
		})
	})
}

// waiting is the study whose last recommendation is oldest, of those that have
// moved on since; nil where none has.
func (a *adviser) waiting() *run {
	var oldest *run
	for _, r := range a.studies.loaded {
		s := &r.status
		if s.Counts.Completed > 0 && s.Position > r.advised && (oldest == nil || r.advisedAt.Before(oldest.advisedAt)) {
			oldest = r
		}
	}
	return oldest
}
