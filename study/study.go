// Package study defines the vocabulary of Fantasia: studies, their search spaces, and
// the states of trials. It imports only the standard library.
package study

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// APIVersion and Kind are the first fields of every study file. Group, Version and Plural name
// the resource of Kubernetes that a study can be.
const (
	Group      = "fantasia.dev"
	Version    = "v1"
	APIVersion = Group + "/" + Version
	Kind       = "Study"
	Plural     = "studies"
)

// Study is a study file: a search space, an objective, a budget, an optimiser
// and its settings, and the program to tune.
type Study struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`
}

// Head returns what a list of studies shows of the study, whose size does not grow with the
// study file: it has no parameters, constraints, initial points, attributes, rule or settings, and only
// tells whether there is a command or a Job.
func (s *Study) Head() *Study {
	head := &Study{APIVersion: s.APIVersion, Kind: s.Kind, Metadata: s.Metadata, Spec: Spec{
		Objective: s.Spec.Objective, Several: s.Spec.Several, Goal: s.Spec.Goal, Limits: s.Spec.Limits, Cost: s.Spec.Cost,
		Algorithm: Algorithm{Name: s.Spec.Algorithm.Name}, Budget: s.Spec.Budget,
		Parallelism: s.Spec.Parallelism, Pool: s.Spec.Pool, Note: s.Spec.Note,
	}}
	if len(s.Spec.Trial.Command) > 0 {
		head.Spec.Trial.Command = []string{""}
	}
	if s.Spec.Trial.Job != nil {
		head.Spec.Trial.Job = &Job{}
	}
	return head
}

// Metadata names a study.
type Metadata struct {
	// Name is a DNS label: lower-case letters, digits and dashes, at most 63.
	Name string `json:"name"`
	// Labels are for people and for filters of lists: see CheckLabels.
	Labels map[string]string `json:"labels,omitempty"`
}

// Spec is the body of a study file.
type Spec struct {
	// Objective is the metric to optimise; zero if there are several. Objectives returns
	// either as a list.
	Objective Objective `json:"objective,omitzero"`
	// Several are the metrics to optimise together, from 2 to MaxObjectives; nil if there
	// is only one.
	Several []Objective `json:"objectives,omitempty"`
	// Goal ends a study of several objectives; nil means no goal. A single objective has its own.
	Goal *FrontGoal `json:"goal,omitempty"`
	// Limits bound metrics, at most MaxLimits; nil means that every completed trial counts.
	Limits []Limit `json:"limits,omitempty"`
	// Cost is what a trial costs, if that is not its time; nil means its time.
	Cost       *Cost       `json:"cost,omitempty"`
	Parameters []Parameter `json:"parameters"`
	// LearnParameters says that clients declare the parameters as they evaluate trials: an update
	// may then add, remove and change parameters in any way.
	LearnParameters bool `json:"learnParameters,omitempty"`
	// Constraints are CEL expressions over numeric and boolean parameters. Every number
	// in them is a double: values of ints, literals, and listed values if all of a
	// parameter's are numbers. Write characters of a name other than letters, digits and
	// dots as underscores; % works on all numbers. Every suggestion meets all constraints; one that mentions an inactive
	// parameter counts as met.
	Constraints []string `json:"constraints,omitempty"`
	// Initial are points that run first and count towards the budget. Values missing in
	// one are sampled, but a conditional parameter must come with those that it depends
	// on.
	Initial   []map[string]any `json:"initial,omitempty"`
	Algorithm Algorithm        `json:"algorithm,omitzero"`
	// LearnFrom are studies that were made before, at most MaxEarlier. The optimiser expects good
	// points where theirs were.
	LearnFrom []Earlier `json:"learnFrom,omitempty"`
	// EarlyStopping stops hopeless trials before their end; nil means that every trial
	// runs to its end.
	EarlyStopping *EarlyStopping `json:"earlyStopping,omitempty"`
	Budget        Budget         `json:"budget"`
	// Parallelism is how many trials may run at once.
	Parallelism int `json:"parallelism,omitempty"`
	// Pool names the workers that evaluate the study.
	Pool  string        `json:"pool,omitempty"`
	Trial TrialTemplate `json:"trial,omitzero"`
	// Note is what people have written about the study, at most MaxNote bytes.
	Note string `json:"note,omitempty"`
	// Attributes are what programs have noted about the study, as JSON has it: see WithAttributes.
	Attributes map[string]any `json:"attributes,omitempty"`
}

// ByClients reports whether clients of the API evaluate the study's trials, rather than
// workers: the study has neither a command nor a Job.
func (s *Spec) ByClients() bool { return len(s.Trial.Command) == 0 && s.Trial.Job == nil }

// Active returns the names of the parameters that have a value at a point, in the study
// file's order.
func (s *Spec) Active(p Point) []string {
	return slices.DeleteFunc(Names(s.Parameters), func(name string) bool { _, ok := p[name]; return !ok })
}

// Cost is a metric of what trials cost, such as dollars. Programs report what their run has cost so far: the
// largest value that an attempt has reported counts, and the attempts of a trial are added up.
type Cost struct {
	Metric string `json:"metric"`
}

// Take selects which of a trial's reports counts as its value.
type Take string

// The reports that can count as a trial's value.
const (
	TakeLast Take = "last"
	TakeBest Take = "best"
)

// Objective is a metric that the study optimises.
type Objective struct {
	Metric string `json:"metric"`
	// Direction has no default: a wrong one would silently spoil the study.
	Direction Direction `json:"direction"`
	// Take is TakeBest for at most one of several objectives: the report in which that one
	// was best then counts for all of them.
	Take Take `json:"take,omitempty"`
	// Goal ends the study as soon as a trial reaches it; nil means no goal. Only a study of
	// one objective has one.
	Goal *float64 `json:"goal,omitempty"`
	// Reference is the worst value of one of several objectives that is still of interest;
	// nil means that it is not known.
	Reference *float64 `json:"reference,omitempty"`
	// Early says that a value which is reported before a trial ends is the final one, so that it
	// also counts of a trial that is stopped early or fails. It is for one of several objectives.
	Early bool `json:"early,omitempty"`
}

// FrontGoal ends a study of 2 to MaxVolume objectives, each of which has a reference.
type FrontGoal struct {
	// Hypervolume is that of the front, in the product of the metrics' units, above 0.
	Hypervolume float64 `json:"hypervolume"`
}

// Algorithm chooses the optimiser.
type Algorithm struct {
	Name string `json:"name,omitempty"`
	// Seed makes every suggestion reproducible.
	Seed uint64 `json:"seed,omitempty"`
	// Wait is the least time that a free slot waits for a suggestion that knows every
	// result; FallbackAfter is how long it waits for any suggestion of the optimiser
	// before it takes a fallback. Parse sets both; nil means not to wait.
	Wait          *Duration `json:"wait,omitempty"`
	FallbackAfter *Duration `json:"fallbackAfter,omitempty"`
	// Settings are the optimiser's own; each optimiser documents and checks its settings.
	Settings map[string]any `json:"settings,omitempty"`
}

// EarlyStopping chooses the rule that stops trials early.
type EarlyStopping struct {
	// Name is the rule's. Parse sets it to file.DefaultRule if it is empty.
	Name string `json:"name,omitempty"`
	// Metric is the metric whose reports the rule compares, in the objective's
	// direction. Parse sets it to the objective's metric if it is empty.
	Metric string `json:"metric,omitempty"`
	// Settings are the rule's own; each rule documents and checks its settings.
	Settings map[string]any `json:"settings,omitempty"`
}

// Budget bounds a study. A study ends at the first bound that it reaches.
type Budget struct {
	// MaxTrials is how many trials to evaluate: completed, failed, infeasible and
	// pruned trials count, cancelled ones do not. 0 means no bound: then MaxDuration or MaxCost is positive.
	MaxTrials int `json:"maxTrials,omitempty"`
	// MaxFailedTrials is the number of failed trials that fails the study; 0 means no
	// bound.
	MaxFailedTrials int      `json:"maxFailedTrials,omitempty"`
	MaxDuration     Duration `json:"maxDuration,omitempty"`
	// MaxCost is what all trials together may cost, in the unit of Spec.Cost, whose metric then is set. No trial is begun once
	// what has been spent, with what is expected of the trials that run, has reached it. 0 means no bound.
	MaxCost float64 `json:"maxCost,omitempty"`
	// StopWhen ends the study once more trials are not worth it; the zero value never does.
	StopWhen StopWhen `json:"stopWhen,omitzero"`
}

// StopWhen says when more trials are not worth it.
type StopWhen struct {
	// Gain is in the objective's unit: the study ends once optimizer.GainTrials more trials are expected to gain no more, as
	// optimizer.Gain.Most has it. It is positive, or 0 in a study that never ends so.
	Gain float64 `json:"gain"`
	// Per says what Gain is counted for. Empty is PerTrials.
	Per Per `json:"per,omitempty"`
}

// Per is what a gain is counted for.
type Per string

// What a gain can be counted for.
const (
	// PerTrials is for optimizer.GainTrials trials, as the empty text is.
	PerTrials Per = "trials"
	// PerHour is for an hour of trials: two that run at once for an hour are two.
	PerHour Per = "hour"
	// PerCost is for a unit of Spec.Cost, which then is set.
	PerCost Per = "cost"
)

// plannedTrials is how many trials a search plans with while nothing tells how many there will be.
const plannedTrials = 100

// OfTime reports whether time bounds the study and no number of trials does, so that its search plans with time.
func (b *Budget) OfTime() bool { return b.MaxTrials == 0 && b.MaxDuration > 0 }

// Planned returns MaxTrials, or how many trials a search plans with if only time or cost bounds them.
func (b *Budget) Planned() int { return cmp.Or(b.MaxTrials, plannedTrials) }

// Mode selects how a program is run.
type Mode string

// The modes of running a program.
const (
	// ModeProcess starts a child process for each trial.
	ModeProcess Mode = "process"
	// ModeStream keeps a long-lived child or Job for each slot and sends it one line a trial.
	ModeStream Mode = "stream"
)

// TrialTemplate describes how to run one evaluation.
type TrialTemplate struct {
	// Command is the argv of the program; see ExpandCommand. Without a command and a Job,
	// clients of the API ask for the trials; then only Retries may be set.
	Command []string `json:"command,omitempty"`
	// Job makes each trial a Job of Kubernetes in the namespace of the study's resource;
	// nil unless the study brings one. It excludes Command, Workdir and Env.
	Job  *Job `json:"job,omitempty"`
	Mode Mode `json:"mode,omitempty"`
	// Metrics is nil if the program reports its metrics itself.
	Metrics *Metrics          `json:"metrics,omitempty"`
	Workdir string            `json:"workdir,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// Timeout ends an attempt that runs longer; 0 means no bound.
	Timeout Duration `json:"timeout,omitempty"`
	// Grace is the time between SIGTERM and SIGKILL, positive.
	Grace   Duration `json:"grace,omitempty"`
	Retries Retries  `json:"retries,omitzero"`
}

// GracePeriod returns Grace, or its default if it is 0.
func (t *TrialTemplate) GracePeriod() time.Duration {
	return time.Duration(cmp.Or(t.Grace, DefaultGrace))
}

// Metrics reads metrics from a program that cannot be changed. Exactly one of its
// fields must be set.
type Metrics struct {
	// Pattern is a regular expression (RE2) whose named groups are metrics,
	// matched against each line of stdout and stderr. See GroupName.
	Pattern string `json:"pattern,omitempty"`
	// File is the path of a JSON object of metrics, relative to the trial's directory.
	File string `json:"file,omitempty"`
	// Events is the folder of TensorFlow's event files, relative to the trial's directory. In a
	// Job it may be an absolute path in the program's container.
	Events string `json:"events,omitempty"`
}

// GroupName returns the name of the group that stands for a metric in Metrics.Pattern: the
// metric's own name, with underscores for characters that RE2 does not allow in it.
func GroupName(metric string) string {
	return strings.Map(func(c rune) rune {
		if c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
			return c
		}
		return '_'
	}, metric)
}

// Retries limits the further attempts of a trial, for each kind of failure.
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
	// Fidelity is how thoroughly a trial is evaluated, such as a number of epochs. It is not
	// searched: trials start at its lowest level, and the best of each level are promoted.
	Fidelity Type = "fidelity"
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
	// Min and Max bound a float, an int or a fidelity, both inclusive. Those of an int are
	// whole numbers within ±(2^53-1), those of a fidelity between 1 and 2^53-1.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// Step is the distance between neighbouring values, counted from Min.
	Step *float64 `json:"step,omitempty"`
	// Scale Log needs a range above 0, and Logit one inside (0,1). On the scale Logit,
	// an int is searched by its position in its range.
	Scale Scale `json:"scale,omitempty"`
	// Reduction is the factor between the levels of a fidelity, 2 or more; nil means
	// DefaultReduction. One trial in this many goes on to the next level.
	Reduction *int `json:"reduction,omitempty"`
	// Values are those of a categorical or an ordinal: strings, numbers or booleans.
	// Those of an ordinal are in order.
	Values []any `json:"values,omitempty"`
	// Value is the value of a fixed parameter.
	Value any `json:"value,omitempty"`
	// Prior is the belief about the best value; nil means none.
	Prior *Prior `json:"prior,omitempty"`
	// When makes the parameter active only if each named parameter is active and has
	// one of the listed values.
	When map[string][]any `json:"when,omitempty"`
}

// Point is an assignment of values to the active parameters of a space. A value is a
// float64 (float), an int64 (int, fidelity), a bool (bool), or a listed value (categorical,
// ordinal, fixed: string, bool, int64 or float64). Points are shared: do not change one
// once it is made. Read its values in the space's order, never the map's.
type Point map[string]any

// Duration is a time.Duration that reads and writes as "10m" in JSON and YAML.
type Duration time.Duration

// The defaults of a study file, except for its algorithm and the scales of its
// parameters.
const (
	DefaultTake = TakeLast
	// DefaultReduction is the default of a fidelity's Reduction.
	DefaultReduction   = 3
	DefaultPool        = "default"
	DefaultParallelism = 1
	// DefaultClientParallelism is the default of a study without a command, whose clients
	// decide how many trials they evaluate at once.
	DefaultClientParallelism = 100
	DefaultMode              = ModeProcess
	DefaultGrace             = Duration(30 * time.Second)
	// DefaultWait and DefaultFallbackAfter are the defaults of Algorithm.Wait and
	// FallbackAfter. They matter for programs that answer at once and are negligible
	// for those that train.
	DefaultWait          = Duration(250 * time.Millisecond)
	DefaultFallbackAfter = Duration(5 * time.Second)
	// DefaultRetriesLost is the number of times that a lost attempt is replaced.
	// Attempts that time out or fail are not replaced by default.
	DefaultRetriesLost = 2
)
