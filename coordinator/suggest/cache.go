package suggest

import (
	"context"
	"sync"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// maxRecommendations is how many studies' recommendations are kept in memory.
const maxRecommendations = 1000

// Recommendations caches each study's last recommendation until the study's ledger
// position changes. Safe for concurrent use.
type Recommendations struct {
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

// NewRecommendations returns an empty cache.
func NewRecommendations() *Recommendations {
	return &Recommendations{making: make(chan struct{}, 1), last: map[string]recommendation{}}
}

func (r *Recommendations) known(id string, position int64) (*optimizer.Recommendation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.last[id]
	return last.Recommendation, ok && last.position == position
}

func (r *Recommendations) keep(id string, position int64, recommended *optimizer.Recommendation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) >= maxRecommendations {
		clear(r.last)
	}
	r.last[id] = recommendation{position, recommended}
}

// At returns the recommendation of a study at a ledger position. It calls recommend
// if the recommendation is not cached.
func (r *Recommendations) At(ctx context.Context, id string, position int64,
	recommend func() (*optimizer.Recommendation, error)) (*optimizer.Recommendation, error) {
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
