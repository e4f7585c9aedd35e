// Package optimizer defines the contract between a study and the algorithm that chooses
// its points. An optimiser is a pure function of its problem, its state and its random
// source.
//
// The rooms below: algorithms has the optimisers that users choose for their work; papers
// those that repeat a paper, with what only papers need; bayes the parts of Bayesian
// optimisation, such as models and acquisition functions; numeric the mathematics that knows
// nothing of optimisers. Package registry lists all optimisers.
package optimizer

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// MaxStateSize is the largest state, in bytes, that an optimiser may return. The state
// is committed together with its suggestions.
const MaxStateSize = 64 << 10

// ErrExhausted means that every point of a finite space is observed or pending. Suggest
// returns it only without suggestions.
var ErrExhausted = errors.New("the search space is exhausted: every point has been evaluated or is being evaluated")

// ErrNoOther is an ErrExhausted of a finite space with constraints that has too many points to be
// looked at one by one: a search found no feasible point that is neither observed nor pending.
var ErrNoOther error = noOther{}

type noOther struct{}

func (noOther) Error() string {
	return "no other point that meets the constraints was found: all that were found have been evaluated or are being evaluated"
}

// ErrNoTime means that no further evaluation is expected to end in the time that is left.
var ErrNoTime = errors.New("no other trial is expected to end in the time that is left")

// Is makes the error an ErrExhausted.
func (noOther) Is(target error) bool { return target == ErrExhausted }

// Outcome is how the evaluation of an observed point ended.
type Outcome string

// The outcomes of evaluations. Only OutcomeCompleted carries a final value.
const (
	OutcomeCompleted  Outcome = "completed"
	OutcomeFailed     Outcome = "failed"
	OutcomeInfeasible Outcome = "infeasible"
	// OutcomePruned is an evaluation that was stopped early, since it did worse than
	// others. Its value, if it has one, is an estimate. An optimiser may ignore it.
	OutcomePruned Outcome = "pruned"
)

// Observation is an ended evaluation that the optimiser is told about.
type Observation struct {
	// Trial is the trial's number, counted from 1; 0 for a point that was told without
	// being asked for.
	Trial int
	// Point is the point; nil if Packed has it. Read it by At.
	Point   study.Point
	Packed  *Packed
	Outcome Outcome
	// Values are the objectives' values as the program reported them, finite. That of
	// OutcomePruned is the value with which the evaluation would probably have ended; if it is
	// missing, the evaluation was only worse than those that went on. Only OutcomeCompleted
	// and OutcomePruned have any.
	Values study.Values
	// Excess is by how much a completed evaluation is outside of each of the problem's
	// limits, in the metric's unit: 0 or less within a limit, and NaN if it is not known. An
	// evaluation that did not complete has that of limits whose metrics were known early, or nil.
	Excess []float64
	// Early are the values of objectives that were known early, of an evaluation that did not
	// complete, among NaN for the others; nil if there are none.
	Early study.Values
	// Step is the step at which a pruned evaluation was stopped.
	Step int64
	// Seconds is how long the evaluation took, finite; 0 if that is not known.
	Seconds float64
	// Cost is what it cost, if the problem has a cost: finite and not negative; 0 if that is not known. Of an evaluation that did
	// not complete it is what it had cost by then.
	Cost float64
}

// Pending is a point that is queued or being evaluated.
type Pending struct {
	Trial int
	Point study.Point
	// Seconds is how long its evaluation had run at the request; 0 if that is not known, or does not matter.
	Seconds float64
	// Likely are the values with which its evaluation will probably end, by what it has reported; nil if that is not
	// known, and if there are several objectives.
	Likely study.Values
}

// Problem is everything that an optimiser knows. Neither the caller nor the optimiser
// may change a Problem, its slices or its points after the call.
type Problem struct {
	Space *space.Space
	// Direction is that of the objective, or of the first of several.
	Direction study.Direction
	// Objectives are all objectives, in the order of every observation's values, if there
	// are several; nil for a single one. Only optimisers whose registry.Entry says so are
	// given several.
	Objectives []study.Objective
	// Limits are the study's limits, in the order of every observation's Excess; nil if there
	// are none. Only optimisers whose registry.Entry says so are given any.
	Limits []study.Limit
	// MaxTrials is the study's budget of ended trials, Parallelism the largest number
	// of trials that run at once.
	MaxTrials   int
	Parallelism int
	// Time is the study's budget of time, nil for one of trials. MaxTrials then is how many trials
	// it is expected to have.
	Time *Time
	// Cost says that evaluations have a cost other than their time; nil if they have none.
	Cost *Cost
	// Seed is the study's seed, for sequences that run through a whole study. Draws for
	// a single suggestion come from Suggest's rng.
	Seed uint64
	// First is the number of the first trial of this request: the count of all trials
	// so far, plus 1.
	First int
	// Observations are all ended trials in ledger order. Of a Blind they may be the latest
	// ones only: see BlindObservations.
	Observations []Observation
	// Pending are all points that are queued or handed out and have no observation, by
	// trial number.
	Pending []Pending
	// Taken have further points of a finite space that must not be suggested: they were
	// evaluated, but at another fidelity than the observations. Only their points count.
	Taken []Observation
	// Curves are what trials have reported of the objective, by number, and Last is the step at which they end: nil and 0 if there are
	// none, or if trials do not end with what they report.
	Curves []Curve
	Last   int64
	// Earlier are studies that were made before, whose outcomes may say where good points lie.
	// Only optimisers whose registry.Entry says so are given any.
	Earlier []Earlier
}

// Time is a budget of time.
type Time struct {
	// Budget is the whole time and Left what was left of it at the request, in seconds.
	Budget float64 `json:"budget"`
	Left   float64 `json:"left"`
}

// Cost is the budget of a study whose evaluations have a cost other than their time.
type Cost struct {
	// Metric is what the cost is counted in.
	Metric string `json:"metric"`
	// Budget is the whole budget, 0 for none, and Left what was left of it at the request, without what was expected of the
	// evaluations that ran; both in the unit of the cost.
	Budget float64 `json:"budget"`
	Left   float64 `json:"left"`
}

// Earlier is a study that was made before, of the same metric.
type Earlier struct {
	Name string
	// Points are of its own space: parameters of the problem's may be missing or out of range.
	Points []study.Point
	// Costs has the outcome of each point, finite. Lower is better; the unit may be any.
	Costs []float64
	// Seconds is how long the evaluation of each point took, and Spent what it cost if that is not its time, in any unit. They are finite
	// and not negative, 0 where they are not known, and nil where no point has any.
	Seconds, Spent []float64
}

// EarlierOf returns the earlier studies that a study learns from.
func EarlierOf(spec *study.Spec) []Earlier {
	var all []Earlier
	for i := range spec.LearnFrom {
		from := &spec.LearnFrom[i]
		e := Earlier{Name: from.Study, Costs: from.Costs(spec.FirstObjective().Direction)}
		for _, t := range from.Trials {
			e.Points = append(e.Points, t.Parameters)
		}
		e.Seconds = known(from.Trials, func(t *study.EarlierTrial) float64 { return t.Seconds })
		e.Spent = known(from.Trials, func(t *study.EarlierTrial) float64 { return t.Cost })
		all = append(all, e)
	}
	return all
}

// known returns a number of each trial; nil if all are 0.
func known(trials []study.EarlierTrial, number func(*study.EarlierTrial) float64) []float64 {
	list, some := make([]float64, len(trials)), false
	for i := range trials {
		list[i] = number(&trials[i])
		some = some || list[i] > 0
	}
	if !some {
		return nil
	}
	return list
}

// Best returns the completed observation within all limits with the best value, the first of equal
// ones, as a recommendation without uncertainty, or the front of several objectives; nil if there
// is none.
func (p *Problem) Best() *Recommendation {
	if p.Objectives != nil {
		return p.bestFront()
	}
	values := make([]float64, len(p.Observations))
	for i, o := range p.Observations {
		values[i] = math.NaN()
		if o.Within() {
			values[i] = o.Values.First()
		}
	}
	best := p.Direction.Best(values)
	if best < 0 {
		return nil
	}
	o := p.Observations[best]
	return &Recommendation{Trial: o.Trial, Mean: o.Values.First(), Point: o.At()}
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
	SourceAdded     Source = "added"     // evaluated elsewhere, added with its values
	SourcePromoted  Source = "promoted"  // a trial at the level below was among the best
)

// Reasons explain why a point was suggested. Fields that do not apply are nil.
type Reasons struct {
	// Mean and SD are the model's posterior mean and standard deviation at the
	// point, in the objective's own units and direction.
	Mean *float64 `json:"mean,omitempty"`
	SD   *float64 `json:"sd,omitempty"`
	// Acquisition holds the values of the acquisition functions by name; larger is
	// better. Where failures are modelled, "feasible" is the probability that the evaluation
	// completes.
	Acquisition map[string]float64 `json:"acquisition,omitempty"`
	// Pending is the number of pending points when the suggestion was made, including
	// earlier members of its batch.
	Pending int `json:"pending"`
	// Note explains in a few words why the point was chosen.
	Note string `json:"note,omitempty"`
}

// Suggestion is a point to evaluate.
type Suggestion struct {
	Point   study.Point
	Source  Source
	Reasons Reasons
	// Repeat marks a point that was evaluated before and is evaluated again to average
	// out noise. It is only set if evaluations are noisy.
	Repeat bool
	// Seconds is how long the evaluation is expected to take; 0 if that is not known, or does not matter.
	Seconds float64
	// Cost is what it is expected to cost; 0 if that is not known, or does not matter.
	Cost float64
}

// State is an optimiser's memory between calls, at most MaxStateSize bytes and opaque
// to others. It is nil for a new study. An optimiser that cannot read a state, for
// example of another version, starts afresh.
type State []byte

// Optimizer chooses points.
type Optimizer interface {
	// Suggest returns up to n points, fewer only if a finite space is nearly exhausted,
	// and the state to pass to the next call. It reads no clock, global variable or map
	// order: the same arguments give the same answer, bit for bit. If ctx has ended
	// before the call, it returns the context's error. If ctx ends during the call, it
	// answers soon with what it has: points found with less effort, possibly fewer than
	// n but at least one. That answer depends on when ctx ended. Suggest is safe for
	// concurrent use.
	Suggest(ctx context.Context, p *Problem, state State, n int, rng *rand.Rand) ([]Suggestion, State, error)
}

// Recommender is implemented by an Optimizer that learns from its observations.
type Recommender interface {
	// Recommend returns the completed evaluation whose posterior mean is best: of a
	// noisy objective, what to take instead of the luckiest value. Of several objectives it
	// returns the front of posterior means. Without a model of
	// the objective it returns the best value. It returns nil while nothing has
	// completed. State is the study's last one, as for Suggest.
	// The error is that of a context that has ended. It is safe for concurrent use.
	Recommend(ctx context.Context, p *Problem, state State) (*Recommendation, error)
}

// BestValue is the Recommender of optimisers without a model of noise: they recommend the best
// value, or the front of the values.
type BestValue struct{}

// Recommend implements Recommender.
func (BestValue) Recommend(_ context.Context, p *Problem, _ State) (*Recommendation, error) {
	return p.Best(), nil
}

// Recommend asks an optimiser for its recommendation; nil if it is no Recommender.
func Recommend(ctx context.Context, o Optimizer, p *Problem, state State) (*Recommendation, error) {
	if r, ok := o.(Recommender); ok {
		return r.Recommend(ctx, p, state)
	}
	return nil, nil
}

// Blind is an Optimizer whose suggestions do not depend on what was observed: results
// that arrive after a request do not make its answer any worse. Points that were observed
// matter in a finite space, where none is suggested twice. In any other space they only help
// to find points that meet the constraints, so a Blind gives the same answer if its problem has
// just the latest BlindObservations observations.
type Blind interface {
	Optimizer
	// Blind does nothing: it marks the type.
	Blind()
}

// BlindObservations is how many observations, the latest ones, a Blind needs of a space that is
// not finite.
const BlindObservations = repairSeeds

// Recommendation is the evaluated point whose posterior mean is best. Mean and SD
// are in the objective's units. Of several objectives it is the knee of the front of posterior
// means or, without a knee, the first on that front, with Mean and SD of the first objective.
type Recommendation struct {
	Trial int         `json:"trial"`
	Mean  float64     `json:"mean"`
	SD    float64     `json:"sd"`
	Point study.Point `json:"parameters"`
	// Front is the front of posterior means, the best in the first objective first; nil if there
	// is one objective.
	Front []Expected `json:"front,omitempty"`
}

// NewRand returns the random source for the suggestion request whose first trial has
// the number first, in a study with the given seed. It is PCG and depends on nothing
// else.
func NewRand(seed uint64, first int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(first)))
}
