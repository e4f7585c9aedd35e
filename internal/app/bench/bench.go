// Package bench compares optimisers in virtual time: runs of optimisers on
// objectives, with any number of workers whose evaluations take durations that
// are drawn rather than waited for. A run is a Spec; Play plays one, a Runner
// plays many and keeps them in a file, a Report says what came out.
//
// Everything but measured seconds depends on a run's Spec alone: the same runs
// come out bit for bit in whatever order and however many at once they are played.
package bench

import (
	"encoding/json"
	"fmt"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Mode is how evaluations are handed out to workers.
type Mode string

// The modes.
const (
	// Sequential has one worker: one suggestion after each observation.
	Sequential Mode = "sequential"
	// Synchronous asks for a batch of as many points as there are workers, and
	// waits for the slowest of them.
	Synchronous Mode = "sync"
	// Asynchronous asks for one point whenever a worker is free.
	Asynchronous Mode = "async"
)

// Modes are all the modes, in the order in which they are played and shown.
func Modes() []Mode { return []Mode{Sequential, Synchronous, Asynchronous} }

// Spec is what a run is: its identity. Times are virtual; the unit is the mean
// duration of an evaluation, or a second where durations are measured.
type Spec struct {
	Optimizer string         `json:"optimizer"`
	Settings  map[string]any `json:"settings,omitempty"`
	// Objective is the name of a function or a study, Content a digest of the
	// study's file, Noise the standard deviation of what is added to a function.
	Objective string  `json:"objective"`
	Content   string  `json:"content,omitempty"`
	Noise     float64 `json:"noise,omitempty"`
	// Failing is the probability that a function's evaluation fails by chance.
	Failing float64 `json:"failing,omitempty"`
	Mode    Mode    `json:"mode"`
	// Law is the durations' law, as ParseLaw reads it; "measured" where Durations
	// says so.
	Law       string    `json:"law"`
	Durations Durations `json:"durations"`
	// Charge is what a suggestion costs; see Charge.
	Charge  Charge `json:"charge"`
	Workers int    `json:"workers"`
	Trials  int    `json:"trials"`
	// Horizon is a time until which an asynchronous run goes on beyond Trials, to
	// 16 times as many at most.
	Horizon float64 `json:"horizon,omitempty"`
	Seed    uint64  `json:"seed"`
	// Version is the program's.
	Version string `json:"version"`
}

// Key is equal for equal specs, and only for those.
func (s *Spec) Key() (string, error) {
	key, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("write what a run is: %w", err)
	}
	return string(key), nil
}

// String names the run to people.
func (s *Spec) String() string {
	return fmt.Sprintf("%s %s on %s, %s, seed %d", s.Mode, s.Optimizer, s.Objective, s.Law, s.Seed)
}

// Evaluation is an evaluation of a run. Times are virtual.
type Evaluation struct {
	Trial int `json:"trial"`
	// Made is when the data for the suggestion were taken, Start and End are of
	// the evaluation, Told is when the optimiser heard of it.
	Made  float64 `json:"made"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Told  float64 `json:"told"`
	// Pending is how many points were pending when the suggestion was made,
	// those before it in its batch included; Stale how many observations arrived
	// from then until the evaluation's start, Arrived how many while it ran.
	Pending int `json:"pending"`
	Stale   int `json:"stale,omitempty"`
	Arrived int `json:"arrived"`
	// Outcome says whether there is a Value, which the optimiser was told, and a
	// Loss: the noise-free value, less the function's minimum where that is known,
	// negated where the direction is to maximise.
	Outcome optimizer.Outcome `json:"outcome"`
	Value   float64           `json:"value"`
	Loss    float64           `json:"loss"`
}

// Result is what came of a run; it depends on the run's Spec alone, unless
// something of it is measured.
type Result struct {
	// Evaluations are in the order in which the optimiser was told of them.
	Evaluations []Evaluation `json:"evaluations"`
	// Makespan is when the first Spec.Trials trials had ended, End when the run
	// had: later where it went on until its horizon.
	Makespan float64 `json:"makespan"`
	End      float64 `json:"end"`
	// Idle is the share of the workers' time until End without an evaluation.
	Idle float64 `json:"idle"`
	// Recommended is the loss at the point recommended after the first
	// Spec.Trials observations; nil if the objective is free of noise, or the
	// optimiser recommends nothing.
	Recommended *float64 `json:"recommended,omitempty"`
}

// Run is a run and what came of it.
type Run struct {
	Spec   Spec   `json:"spec"`
	Result Result `json:"result"`
	// Suggest holds the measured seconds of each request for suggestions,
	// Seconds those of the whole run.
	Suggest []float64 `json:"suggest"`
	Seconds float64   `json:"seconds"`
}
