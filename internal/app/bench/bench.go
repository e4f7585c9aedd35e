// Package bench compares optimisers in virtual time: it runs optimisers on objectives
// with any number of workers, and draws the durations of evaluations instead of waiting
// for them. A run is described by a Spec. Play plays one run, a Runner plays many and
// keeps them in a file, and a Summary evaluates them.
//
// Everything but measured seconds depends only on a run's Spec: runs give the same
// results, bit for bit, in any order and for any number of concurrent runs.
package bench

import (
	"encoding/json"
	"fmt"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Mode is the way in which evaluations are handed out to workers.
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

// Modes returns all modes, in the order in which they are played and shown.
func Modes() []Mode { return []Mode{Sequential, Synchronous, Asynchronous} }

// Spec identifies a run. Times are virtual; the unit is the mean duration of an
// evaluation, or a second if durations are measured.
type Spec struct {
	Optimizer string         `json:"optimizer"`
	Settings  map[string]any `json:"settings,omitempty"`
	// Objective is the name of a function or a study, Content a digest of the study's
	// file, Noise the standard deviation of the noise added to a function.
	Objective string  `json:"objective"`
	Content   string  `json:"content,omitempty"`
	Noise     float64 `json:"noise,omitempty"`
	// Failing is the probability that a function's evaluation fails.
	Failing float64 `json:"failing,omitempty"`
	Mode    Mode    `json:"mode"`
	// Law is the distribution of durations, as for ParseLaw, or "measured" if Durations
	// says so.
	Law       string    `json:"law"`
	Durations Durations `json:"durations"`
	// Charge is the time that a suggestion takes; see Charge.
	Charge  Charge `json:"charge"`
	Workers int    `json:"workers"`
	Trials  int    `json:"trials"`
	// Horizon is a time until which an asynchronous run continues beyond Trials, up to
	// 16 times as many.
	Horizon float64 `json:"horizon,omitempty"`
	Seed    uint64  `json:"seed"`
	// Version is the version of the program.
	Version string `json:"version"`
}

// Key returns a key that is equal exactly for equal specs.
func (s *Spec) Key() (string, error) {
	key, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encode a run: %w", err)
	}
	return string(key), nil
}

// String describes the run for people.
func (s *Spec) String() string {
	return fmt.Sprintf("%s %s on %s, %s, seed %d", s.Mode, s.Optimizer, s.Objective, s.Law, s.Seed)
}

// Evaluation is an evaluation of a run. Times are virtual.
type Evaluation struct {
	Trial int `json:"trial"`
	// Made is when the data for the suggestion were taken, Start and End are those of
	// the evaluation, Told is when the optimiser was told.
	Made  float64 `json:"made"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Told  float64 `json:"told"`
	// Pending is the number of pending points when the suggestion was made, including
	// earlier members of its batch. Stale is the number of observations that arrived
	// from then until the evaluation's start, Arrived the number during the evaluation.
	Pending int `json:"pending"`
	Stale   int `json:"stale,omitempty"`
	Arrived int `json:"arrived"`
	// Outcome determines whether there is a Value, which the optimiser was told, and a
	// Loss: the noise-free value, minus the function's minimum if known, negated if the
	// objective is maximised.
	Outcome optimizer.Outcome `json:"outcome"`
	Value   float64           `json:"value"`
	Loss    float64           `json:"loss"`
}

// Result is the result of a run; it depends only on the run's Spec unless something is
// measured.
type Result struct {
	// Evaluations are in the order in which the optimiser was told of them.
	Evaluations []Evaluation `json:"evaluations"`
	// Makespan is the time when the first Spec.Trials trials had ended, End the end of
	// the run, which is later if it continued until its horizon.
	Makespan float64 `json:"makespan"`
	End      float64 `json:"end"`
	// Idle is the share of the workers' time until End that was spent without an
	// evaluation.
	Idle float64 `json:"idle"`
	// Recommended is the loss at the point recommended after the first Spec.Trials
	// observations; nil if the objective has no noise, or the optimiser recommends
	// nothing.
	Recommended *float64 `json:"recommended,omitempty"`
}

// Run is a run with its result.
type Run struct {
	Spec   Spec   `json:"spec"`
	Result Result `json:"result"`
	// Suggest holds the measured seconds of each request for suggestions,
	// Seconds those of the whole run.
	Suggest []float64 `json:"suggest"`
	Seconds float64   `json:"seconds"`
}
