// Package messaging is the wire contract between the coordinator and its
// workers: envelopes, subjects, and what a bus must do. It knows no broker;
// natsbus carries it over JetStream, membus in memory.
//
// # A worker in another language
//
// Any client of NATS JetStream can be a worker. Envelopes are JSON objects of at
// most MaxEnvelope bytes, with the fields of the types here; times are RFC 3339,
// durations text such as "1m30s", plain JSON numbers are accepted everywhere,
// unknown fields are ignored, a null metric or NaN is refused, and so is a text
// beyond its bound (see MaxReason, MaxReference and MaxMetrics). Names (study,
// nonce, worker, pool) are valid tokens: see ValidToken. A worker
//
//  1. fetches one message from the consumer pool_<shard>_<pool> of the stream
//     FANTASIA_ASSIGN: an Assignment;
//  2. publishes a Claim on its subject (see Subject) with a Nats-Msg-Id that no
//     other delivery has had, and waits for the stream's acknowledgement. Error
//     10077, "maximum messages per subject exceeded", means that another was
//     first. After a time-out it sends the same message again;
//  3. acknowledges the assignment, whether it won or not;
//  4. runs it if it won, publishing a Measurement for each report and a Heartbeat
//     every 5 s, and listening to Control on its own subject;
//  5. publishes the Result until the stream acknowledges it, and again from time
//     to time until a Control of kind receipt comes for it.
//
// The headers traceparent and tracestate of the assignment go on with what the
// worker publishes about it.
package messaging

import (
	"cmp"
	"strconv"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
)

// SchemaVersion is the version of every envelope in this package. A reader refuses an
// unknown version and moves the message to the dead-letter queue.
const SchemaVersion = 1

// AttemptID names one attempt of one trial.
type AttemptID struct {
	// Study is the study's id, not its name: a study created again under the same name
	// must not see its predecessor's claims.
	Study   string `json:"study"`
	Trial   int    `json:"trial"`
	Attempt int    `json:"attempt"`
	// Nonce is drawn when the attempt is opened. Messages with another nonce are
	// buried: they go to the dead-letter queue.
	Nonce string `json:"nonce"`
}

// TraceContext is a W3C trace context. Buses carry it in the headers
// traceparent and tracestate.
type TraceContext struct {
	Traceparent string `json:"-"`
	Tracestate  string `json:"-"`
}

// Assignment offers one attempt to the workers of a pool; the first that claims it runs
// it.
type Assignment struct {
	Version int `json:"version"`
	AttemptID
	Pool      string `json:"pool"`
	StudyName string `json:"studyName"`
	// Seed is the trial's seed, the same in every attempt.
	Seed uint64 `json:"seed"`
	// Parameters are the values of the active parameters. In JSON a float always has a
	// decimal point or an exponent, and an integer has neither, which distinguishes 3.0
	// from 3. Programs that read plain JSON numbers can ignore this.
	Parameters study.Point `json:"parameters"`
	// Objective is zero if there are several: Objectives returns either as a list.
	Objective study.Objective   `json:"objective,omitzero"`
	Several   []study.Objective `json:"objectives,omitempty"`
	// Limits are the study's limits, whose metrics a completed evaluation reports.
	Limits []study.Limit `json:"limits,omitempty"`
	// Run describes how to evaluate; the leader handles its retries.
	Run study.TrialTemplate `json:"run"`
	// ParameterOrder lists the active parameters in the study file's order.
	ParameterOrder []string `json:"parameterOrder"`
	Checkpoint     string   `json:"checkpoint,omitempty"`
	// Reached is what earlier attempts have reported; nil for nothing. It counts if this attempt
	// continues from a checkpoint.
	Reached *Reached `json:"reached,omitempty"`
	// Configuration is the number of the trial that began the trial's configuration, whose
	// directory of checkpoints it uses; 0 means Trial.
	Configuration int `json:"configuration,omitempty"`
	TraceContext
}

// Objectives returns the objectives of the study, in the order of a result's values.
func (a *Assignment) Objectives() []study.Objective {
	return a.spec().Objectives()
}

// LimitMetrics returns the metrics that the study's limits bound and no objective has.
func (a *Assignment) LimitMetrics() []string { return a.spec().LimitMetrics() }

// MetricNames returns the metrics that a completed evaluation reports: those of the objectives
// and of the limits.
func (a *Assignment) MetricNames() []string {
	return append(study.MetricNames(a.Objectives()), a.LimitMetrics()...)
}

func (a *Assignment) spec() *study.Spec {
	return &study.Spec{Objective: a.Objective, Several: a.Several, Limits: a.Limits}
}

// First returns the number of the trial that began the trial's configuration: its own,
// unless it was promoted.
func (a *Assignment) First() int {
	if a.Configuration > 0 {
		return a.Configuration
	}
	return a.Trial
}

// CheckpointKey returns where the trial's checkpoints belong below a directory or a bucket that
// studies share, as STUDY-ID/NUMBER. It is the same in every attempt, and for all trials of
// a configuration that is promoted.
func (a *Assignment) CheckpointKey() string { return a.Study + "/" + strconv.Itoa(a.First()) }

// Claim announces that a worker takes an attempt.
type Claim struct {
	Version int `json:"version"`
	AttemptID
	Pool   string    `json:"pool"`
	Worker string    `json:"worker"`
	Slot   int       `json:"slot"`
	At     time.Time `json:"at"`
	// Site is where the attempt will run, as far as the worker knows; nil if it knows nothing.
	Site *Site `json:"site,omitempty"`
	TraceContext
}

// Site is where an attempt runs, in the words of the system that schedules it. A text is empty if it is not
// known.
type Site struct {
	// Job is the id of Slurm's job, or the name of the resource in Kubernetes.
	Job string `json:"job,omitempty"`
	// Node is the name of the node; several have commas between.
	Node string `json:"node,omitempty"`
	// Devices are what the program was given, such as 0,1 or nvidia.com/gpu=2.
	Devices string `json:"devices,omitempty"`
}

// MaxSite is the largest length of each text of a Site, in bytes.
const MaxSite = 512

func (s *Site) validate() error {
	if s == nil {
		return nil
	}
	return cmp.Or(checkLength("site.job", s.Job, MaxSite), checkLength("site.node", s.Node, MaxSite),
		checkLength("site.devices", s.Devices, MaxSite))
}

// With returns the site with the texts of another one, where that knows them; nil if nothing is known.
func (s Site) With(other Site) *Site {
	all := Site{Job: cmp.Or(other.Job, s.Job), Node: cmp.Or(other.Node, s.Node), Devices: cmp.Or(other.Devices, s.Devices)}
	for _, text := range []*string{&all.Job, &all.Node, &all.Devices} {
		*text = (*text)[:min(len(*text), MaxSite)]
	}
	if all == (Site{}) {
		return nil
	}
	return &all
}

// Withdrawal returns the claim by which a leader takes an assignment back.
func (a *Assignment) Withdrawal() *Claim {
	return &Claim{AttemptID: a.AttemptID, Pool: a.Pool, Worker: LeaderName, At: time.Now().UTC(), TraceContext: a.TraceContext}
}

// Outcome is how an attempt ended.
type Outcome string

// The outcomes of attempts.
const (
	OutcomeCompleted  Outcome = "completed"
	OutcomeFailed     Outcome = "failed"
	OutcomeTimeout    Outcome = "timeout"
	OutcomeInfeasible Outcome = "infeasible"
	OutcomeHandedBack Outcome = "handed-back"
	OutcomeCancelled  Outcome = "cancelled"
	// OutcomePruned means that the leader has stopped the attempt early.
	OutcomePruned Outcome = "pruned"
)

// Result ends an attempt. It is published until JetStream acknowledges it, and
// again until the leader's receipt.
type Result struct {
	Version int `json:"version"`
	AttemptID
	Worker  string  `json:"worker"`
	Outcome Outcome `json:"outcome"`
	// Values are the objectives' values after Objective.Take, in order. A pruned attempt
	// has the values that it had reached. Only completed and pruned attempts have values.
	Values study.Values `json:"values,omitempty"`
	// Metrics are the final values of every finite metric that was reported; of the metrics of
	// the study's limits, those of the report that counts for Values.
	Metrics Metrics `json:"metrics,omitempty"`
	// Failure describes what went wrong; nil if nothing did. With OutcomeCompleted it is a
	// warning.
	Failure *Failure `json:"failure,omitempty"`
	// Checkpoint is the last reference that the program reported.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Reached is what the next attempt continues, if this one has not ended its trial.
	Reached *Reached `json:"reached,omitempty"`
	Logs    string   `json:"logs,omitempty"`
	// Site is where the attempt ran; nil if the worker knows nothing beyond its claim.
	Site *Site `json:"site,omitempty"`
	// Stages are when the attempt passed each stage of a Job; nil if nothing but Started and Ended is known.
	Stages *Stages `json:"stages,omitempty"`
	// Claimed is the time when the worker claimed the attempt, if the worker sends it:
	// the leader may read a quick result before its claim.
	Claimed time.Time `json:"claimed,omitzero"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	TraceContext
}

// Failure describes why an attempt did not complete.
type Failure struct {
	Reason   string `json:"reason"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Signal   string `json:"signal,omitempty"`
	// Message is for people: what was observed, the program's last output, where its
	// log is. At most MaxMessage bytes.
	Message string `json:"message,omitempty"`
}

// MaxMessage is the largest size of Failure.Message in bytes.
const MaxMessage = 4 << 10

// Measurement is a report while an attempt runs.
type Measurement struct {
	Version int `json:"version"`
	AttemptID
	Worker  string  `json:"worker"`
	Step    int64   `json:"step"`
	Metrics Metrics `json:"metrics"`
	// Diverged are the metrics whose values are NaN or infinite, which JSON cannot hold.
	Diverged []string  `json:"diverged,omitempty"`
	At       time.Time `json:"at"`
	TraceContext
}

// Heartbeat renews all leases of a worker at once.
type Heartbeat struct {
	Version int    `json:"version"`
	Worker  string `json:"worker"`
	Pool    string `json:"pool"`
	// Instance changes whenever the worker's process starts.
	Instance string `json:"instance"`
	Slots    int    `json:"slots"`
	Free     int    `json:"free"`
	// Running are the attempts that the worker evaluates, Spooled those whose result is
	// not yet acknowledged.
	Running []AttemptID `json:"running,omitempty"`
	Spooled []AttemptID `json:"spooled,omitempty"`
	// Waiting says why programs of running attempts have not started yet: see SetWaiting.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Begun are the places in Running of attempts whose programs have started. A worker of an earlier version does not say it.
	Begun []int `json:"begun,omitempty"`
	// Leaving means that the worker takes no more attempts and hands back those that it
	// runs.
	Leaving  bool      `json:"leaving,omitempty"`
	At       time.Time `json:"at"`
	Host     string    `json:"host,omitempty"`
	Software string    `json:"software,omitempty"`
	// OwnCommand means that the worker evaluates every study with its own program,
	// StudyCommands that it runs the commands that studies contain.
	OwnCommand    bool `json:"ownCommand,omitempty"`
	StudyCommands bool `json:"studyCommands"`
	// StudyJobs means that the worker creates the Jobs that studies bring. Without
	// OwnCommand it evaluates no other studies.
	StudyJobs bool `json:"studyJobs,omitempty"`
	// Runs says, for people, what evaluates the trials: one of the constants below, or
	// another token. It is empty if the worker does not say it.
	Runs string `json:"runs,omitempty"`
}

// What Heartbeat.Runs can be. Other workers may have other words.
const (
	// RunsCommand is a program that the worker starts, for each trial or for each slot.
	RunsCommand = "command"
	// RunsSidecar is training code that asks for trials over HTTP.
	RunsSidecar = "sidecar"
	// RunsJobs is a Job, or another resource of Kubernetes, for each attempt.
	RunsJobs = "kubejob"
)

// ControlKind is the kind of a control message.
type ControlKind string

// The kinds of control messages.
const (
	// ControlReceipt confirms that the leader has committed (or buried) a result.
	ControlReceipt ControlKind = "receipt"
	// ControlCancel ends an attempt, whose result is no longer needed.
	ControlCancel ControlKind = "cancel"
	// ControlPrune stops an attempt early: the worker stops the program and sends a
	// result with OutcomePruned, unless the program has completed before.
	ControlPrune ControlKind = "prune"
	// ControlAvoid asks a worker to take no more attempts of a study.
	ControlAvoid ControlKind = "avoid"
	// ControlLogs asks for a part of an attempt's log: Logs says which. Any replica of
	// the coordinator sends it. A worker that keeps no logs may ignore it.
	ControlLogs ControlKind = "logs"
)

// Control is a message from the leader to one worker.
type Control struct {
	Version int         `json:"version"`
	Kind    ControlKind `json:"kind"`
	Worker  string      `json:"worker"`
	AttemptID
	// Disposition is, in a receipt, what was done with the result: folded, duplicate,
	// late, unknown, poison.
	Disposition Disposition `json:"disposition,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	// Logs is the request of a message of kind logs.
	Logs *LogRequest `json:"logs,omitempty"`
}
