// Package optimizer is the contract between a study and the algorithm that
// chooses its points. An optimiser is a pure function of its problem, its state
// and its random source; the packages below hold the algorithms and their
// mathematics.
package optimizer

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/study"
)

// MaxStateSize is the largest state, in bytes, that an optimiser may return: it
// is committed together with the suggestions that it made.
const MaxStateSize = 64 << 10

// ErrExhausted says that a finite space has no point left that is neither
// observed nor pending. Suggest returns it only together with no suggestions.
var ErrExhausted = errors.New("the search space is exhausted: every point has been evaluated or is being evaluated")

// Outcome is how the evaluation of an observed point ended.
type Outcome string

// The outcomes of evaluations. Only OutcomeCompleted carries a value.
const (
	OutcomeCompleted  Outcome = "completed"
	OutcomeFailed     Outcome = "failed"
	OutcomeInfeasible Outcome = "infeasible"
)

// Observation is an ended evaluation that the optimiser is told.
type Observation struct {
	// Trial is the trial's number, counted from 1; 0 for a point that was told
	// without having been asked for.
	Trial   int
	Point   study.Point
	Outcome Outcome
	// Values are the objectives' values as the program reported them, finite; they
	// are only meaningful for OutcomeCompleted.
	Values study.Values
}

// Pending is a point that is queued or being evaluated.
type Pending struct {
	Trial int
	Point study.Point
}

// Problem is everything that an optimiser may know. The caller does not change
// a Problem, its slices or its points after passing it, and neither does the
// optimiser.
type Problem struct {
	Space     *study.Space
	Direction study.Direction
	// MaxTrials is the study's budget of ended trials, Parallelism its bound on
	// trials that run at once.
	MaxTrials   int
	Parallelism int
	// Seed is the study's seed: for sequences that run through a whole study.
	// Draws for one suggestion come from Suggest's rng.
	Seed uint64
	// First is the number of the first trial that this request may become: the
	// count of all trials so far, plus 1.
	First int
	// Observations are all the ended trials in ledger order.
	Observations []Observation
	// Pending are all the points handed out or queued without an observation,
	// by trial number.
	Pending []Pending
}

// Source says where a suggestion came from.
type Source string

// The sources of suggestions.
const (
	SourceInitial   Source = "initial"   // from the study file's initial points
	SourceDesign    Source = "design"    // from the initial design
	SourceRandom    Source = "random"    // drawn at random
	SourceModel     Source = "model"     // from the optimiser's model
	SourceFallback  Source = "fallback"  // the optimiser was too slow or failed
	SourceRequested Source = "requested" // told by a person or a program
)

// Reasons say why a point was suggested. Fields that do not apply are nil.
type Reasons struct {
	// Mean and SD are the model's posterior mean and standard deviation at the
	// point, in the objective's own units and direction.
	Mean *float64 `json:"mean,omitempty"`
	SD   *float64 `json:"sd,omitempty"`
	// Acquisition holds the acquisition functions' values by name, larger is better,
	// of Thompson sampling what the drawn function promises, and where failures are modelled "feasible", the probability that the
	// evaluation completes.
	Acquisition map[string]float64 `json:"acquisition,omitempty"`
	// Pending is how many points were pending when the suggestion was made,
	// earlier members of its own batch included.
	Pending int `json:"pending"`
	// Note says in a few words why the point was picked.
	Note string `json:"note,omitempty"`
}

// Suggestion is a point to evaluate.
type Suggestion struct {
	Point   study.Point
	Source  Source
	Reasons Reasons
	// Repeat says that the point was evaluated before and is to be evaluated
	// again, to average out noise. It is only set where evaluations are noisy.
	Repeat bool
}

// State is an optimiser's memory between calls, opaque to everybody else and at
// most MaxStateSize bytes; nil is the state of a study that has none yet. An
// optimiser that cannot read a state (another version's, say) starts afresh.
type State []byte

// Optimizer chooses points.
type Optimizer interface {
	// Suggest returns up to n points, fewer only where a finite space is nearly
	// exhausted, and the state to pass to the next call. It reads no clock,
	// global or map order: the same arguments give the same answer, bit for
	// bit. Where ctx has ended before, it returns the context's error. When ctx
	// ends meanwhile, it answers soon with what it has: points found with less
	// effort, perhaps fewer than n but at least one. That answer depends on when
	// ctx ended. It is safe for concurrent use.
	Suggest(ctx context.Context, p *Problem, state State, n int, rng *rand.Rand) ([]Suggestion, State, error)
}

// Recommender is implemented by an Optimizer that has a model of the objective.
type Recommender interface {
	// Recommend returns the completed evaluation whose posterior mean is best: of a
	// noisy objective, what to take instead of the luckiest value. It returns nil
	// while nothing has completed. State is the study's last one, as for Suggest.
	// The error is that of a context that has ended. It is safe for concurrent use.
	Recommend(ctx context.Context, p *Problem, state State) (*Recommendation, error)
}

// Recommend asks an optimiser for its recommendation; nil if it is no Recommender.
func Recommend(ctx context.Context, o Optimizer, p *Problem, state State) (*Recommendation, error) {
	if r, ok := o.(Recommender); ok {
		return r.Recommend(ctx, p, state)
	}
	return nil, nil
}

// Recommendation is the evaluated point whose posterior mean is best. Mean and SD
// are in the objective's units.
type Recommendation struct {
	Trial int         `json:"trial"`
	Mean  float64     `json:"mean"`
	SD    float64     `json:"sd"`
	Point study.Point `json:"parameters"`
}

// NewRand returns the random source of the suggestion request whose first trial
// is numbered first, in a study seeded with seed: PCG, so that it depends on
// nothing else.
func NewRand(seed uint64, first int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(first)))
}
