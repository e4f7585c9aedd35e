// Package study is the vocabulary of Fantasia: what a study is, what its search
// space holds, and which states a trial passes through. It imports the standard
// library only.
package study

import "time"

// APIVersion and Kind are what every study file states first.
const (
	APIVersion = "fantasia.dev/v1"
	Kind       = "Study"
)

// Study is a study file: a search space, an objective, a budget, an optimiser
// and its settings, and the program to tune.
type Study struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`
}

// Metadata names a study.
type Metadata struct {
	// Name is a DNS label: lower-case letters, digits and dashes, at most 63.
	Name string `json:"name"`
}

// Spec is the body of a study file.
type Spec struct {
	Objective  Objective   `json:"objective"`
	Parameters []Parameter `json:"parameters"`
	// Constraints are CEL expressions over numeric and boolean parameters, in which every
	// number is a double: those of ints, the literals, and the listed values
	// where all of a parameter's are numbers. A dash in a name is written as an
	// underscore, and % works on all numbers. Every suggestion meets them; one
	// that mentions an inactive parameter holds.
	Constraints []string `json:"constraints,omitempty"`
	// Initial are points that are run first and counted. What is missing in one
	// is sampled; a conditional parameter comes with those that it depends on.
	Initial   []map[string]any `json:"initial,omitempty"`
	Algorithm Algorithm        `json:"algorithm,omitzero"`
	Budget    Budget           `json:"budget"`
	// Parallelism is how many trials may run at once.
	Parallelism int `json:"parallelism,omitempty"`
	// Pool is the workers that evaluate the study.
	Pool  string        `json:"pool,omitempty"`
	Trial TrialTemplate `json:"trial"`
}

// Take says which of a trial's reports counts as its value.
type Take string

// The reports that can count as a trial's value.
const (
	TakeLast Take = "last"
	TakeBest Take = "best"
)

// Objective is the metric that the study optimises.
type Objective struct {
	Metric string `json:"metric"`
	// Direction has no default: whichever it were, it would spoil a study that
	// forgets to state the other.
	Direction Direction `json:"direction"`
	Take      Take      `json:"take,omitempty"`
	// Goal ends the study as soon as a trial reaches it; nil means no goal.
	Goal *float64 `json:"goal,omitempty"`
}

// Algorithm chooses the optimiser.
type Algorithm struct {
	Name string `json:"name,omitempty"`
	// Seed makes every suggestion reproducible.
	Seed uint64 `json:"seed,omitempty"`
	// Wait is how long a free slot waits for a suggestion that knows every result, at
	// least; FallbackAfter how long it waits for any suggestion of the optimiser before
	// it takes a fallback. Parse sets both; nil is no wait.
	Wait          *Duration `json:"wait,omitempty"`
	FallbackAfter *Duration `json:"fallbackAfter,omitempty"`
	// Settings are the optimiser's own; each optimiser documents and checks its settings.
	Settings map[string]any `json:"settings,omitempty"`
}

// Budget bounds a study. A study ends at the first bound that it reaches.
type Budget struct {
	// MaxTrials is how many trials to evaluate: completed, failed, infeasible and
	// pruned ones count, cancelled ones do not.
	MaxTrials int `json:"maxTrials"`
	// MaxFailedTrials fails the study once that many trials have failed; 0 means no bound.
	MaxFailedTrials int      `json:"maxFailedTrials,omitempty"`
	MaxDuration     Duration `json:"maxDuration,omitempty"`
}

// Mode says how a program is run.
type Mode string

// The modes of running a program.
const (
	// ModeProcess starts one child process a trial.
	ModeProcess Mode = "process"
	// ModeStream keeps one long-lived child a slot and sends it a line a trial.
	ModeStream Mode = "stream"
)

// TrialTemplate says how one evaluation is run.
type TrialTemplate struct {
	// Command is the argv of the program; see ExpandCommand.
	Command []string `json:"command"`
	Mode    Mode     `json:"mode,omitempty"`
	// Metrics is nil where the program reports its metrics itself.
	Metrics *Metrics          `json:"metrics,omitempty"`
	Workdir string            `json:"workdir,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// Timeout ends an attempt that runs longer; 0 means no bound.
	Timeout Duration `json:"timeout,omitempty"`
	// Grace is the time between SIGTERM and SIGKILL, positive.
	Grace   Duration `json:"grace,omitempty"`
	Retries Retries  `json:"retries,omitzero"`
}

// Metrics reads metrics from a program that cannot be changed. Exactly one of
// its fields is set.
type Metrics struct {
	// Pattern is a regular expression (RE2) whose named groups are metrics,
	// matched against each line of stdout and stderr.
	Pattern string `json:"pattern,omitempty"`
	// File is the path, relative to the trial's directory, of a JSON object of metrics.
	File string `json:"file,omitempty"`
}

// Retries bounds, for each kind of failure, how many further attempts a trial gets.
type Retries struct {
	Lost    *int `json:"lost,omitempty"`
	Timeout *int `json:"timeout,omitempty"`
	Failed  *int `json:"failed,omitempty"`
}

// Type is the type of a parameter.
type Type string

// The types of parameters.
const (
	Float       Type = "float"
	Int         Type = "int"
	Categorical Type = "categorical"
	Ordinal     Type = "ordinal"
	Bool        Type = "bool"
	Fixed       Type = "fixed"
)

// Scale is the scale on which a numeric parameter is searched.
type Scale string

// The scales of numeric parameters.
const (
	Linear Scale = "linear"
	Log    Scale = "log"
	Logit  Scale = "logit"
)

// Parameter is one dimension of the search space.
type Parameter struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	// Min and Max bound a float or an int, both included. Those of an int are
	// whole numbers, at most 2^53 from 0.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// Step is the distance of neighbouring values, counted from Min.
	Step *float64 `json:"step,omitempty"`
	// Scale needs a range above 0 if it is Log, and inside of (0,1) if it is
	// Logit; an int on the scale Logit is searched by its place in its range.
	Scale Scale `json:"scale,omitempty"`
	// Values are those of a categorical or an ordinal: strings, numbers or
	// booleans, in order for an ordinal.
	Values []any `json:"values,omitempty"`
	// Value is that of a fixed parameter.
	Value any `json:"value,omitempty"`
	// Prior is what is believed of where its best value lies; nil means nothing.
	Prior *Prior `json:"prior,omitempty"`
	// When makes the parameter active only where each named parameter has one
	// of the listed values (and is itself active).
	When map[string][]any `json:"when,omitempty"`
}

// Point is an assignment of values to the active parameters of a space. A value
// is a float64 (float), an int64 (int), a bool (bool), or what the space lists
// (categorical, ordinal, fixed: string, bool, int64 or float64). A Point is
// shared once made: nobody changes it. It is read in the space's order, never
// the map's.
type Point map[string]any

// Duration is a time.Duration that reads and writes as "10m" in JSON and YAML.
type Duration time.Duration
