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
	"time"

	"github.com/fantasia-hpo/fantasia/study"
)

// SchemaVersion is the version of every envelope here. A reader refuses a
// version that it does not know: the message goes to the dead-letter queue.
const SchemaVersion = 1

// AttemptID names one attempt of one trial.
type AttemptID struct {
	// Study is the study's id, never its name: a recreated name must not meet
	// the claims of the study that it replaces.
	Study   string `json:"study"`
	Trial   int    `json:"trial"`
	Attempt int    `json:"attempt"`
	// Nonce is drawn when the attempt is opened; whatever carries another is
	// archived.
	Nonce string `json:"nonce"`
}

// TraceContext is a W3C trace context. Buses carry it in the headers
// traceparent and tracestate.
type TraceContext struct {
	Traceparent string `json:"-"`
	Tracestate  string `json:"-"`
}

// Assignment hands one attempt to whichever worker of the pool claims it.
type Assignment struct {
	Version int `json:"version"`
	AttemptID
	Pool      string `json:"pool"`
	StudyName string `json:"studyName"`
	// Seed is the trial's own, the same in every attempt.
	Seed uint64 `json:"seed"`
	// Parameters are the values of the active parameters. In JSON a float always
	// has a decimal point or an exponent, and a number without either is an
	// integer, so that 3.0 and 3 stay apart; programs that read plain JSON
	// numbers need not care.
	Parameters study.Point     `json:"parameters"`
	Objective  study.Objective `json:"objective"`
	// Run says how to evaluate; its retries are the leader's business.
	Run study.Trial `json:"run"`
	// ParameterOrder lists the active parameters in the study file's order.
	ParameterOrder []string `json:"parameterOrder"`
	Checkpoint     string   `json:"checkpoint,omitempty"`
	TraceContext
}

// Claim says that a worker takes an attempt.
type Claim struct {
	Version int `json:"version"`
	AttemptID
	Pool   string    `json:"pool"`
	Worker string    `json:"worker"`
	Slot   int       `json:"slot"`
	At     time.Time `json:"at"`
	TraceContext
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
)

// Result ends an attempt. It is published until JetStream acknowledges it, and
// again until the leader's receipt.
type Result struct {
	Version int `json:"version"`
	AttemptID
	Worker  string  `json:"worker"`
	Outcome Outcome `json:"outcome"`
	// Values are the objectives' values after Objective.Take, in their order; none
	// unless completed. A result with a single one carries it as "value" too, and
	// one that has only that is read as well: so it is with results of workers,
	// and leaders, of before there were values.
	Values study.Values `json:"values,omitempty"`
	// Metrics are the final values of every finite metric that was reported.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Failure says what went wrong; nil where nothing did.
	Failure *Failure `json:"failure,omitempty"`
	// Checkpoint is the last reference that the program reported.
	Checkpoint string `json:"checkpoint,omitempty"`
	Logs       string `json:"logs,omitempty"`
	// Claimed is when the worker claimed the attempt, where it says so: the leader
	// may read a quick result before its claim.
	Claimed time.Time `json:"claimed,omitzero"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	TraceContext
}

// Failure says why an attempt did not complete.
type Failure struct {
	Reason   string `json:"reason"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Signal   string `json:"signal,omitempty"`
	// Message is for people: what was seen, the program's last words, where
	// its log is. At most MaxMessage bytes.
	Message string `json:"message,omitempty"`
}

// MaxMessage bounds Failure.Message in bytes.
const MaxMessage = 4 << 10

// Measurement is a report while an attempt runs.
type Measurement struct {
	Version int `json:"version"`
	AttemptID
	Worker  string             `json:"worker"`
	Step    int64              `json:"step"`
	Metrics map[string]float64 `json:"metrics"`
	At      time.Time          `json:"at"`
	TraceContext
}

// Heartbeat renews all of a worker's leases at once.
type Heartbeat struct {
	Version int    `json:"version"`
	Worker  string `json:"worker"`
	Pool    string `json:"pool"`
	// Instance changes whenever the worker's process starts.
	Instance string `json:"instance"`
	Slots    int    `json:"slots"`
	Free     int    `json:"free"`
	// Running are the attempts that it evaluates, Spooled those whose result
	// waits for a receipt.
	Running []AttemptID `json:"running,omitempty"`
	Spooled []AttemptID `json:"spooled,omitempty"`
	// Leaving says that the worker takes no more and hands back what it runs.
	Leaving  bool      `json:"leaving,omitempty"`
	At       time.Time `json:"at"`
	Host     string    `json:"host,omitempty"`
	Software string    `json:"software,omitempty"`
	// OwnCommand says whether it evaluates every study with a program of its own;
	// StudyCommands whether it runs the commands that studies bring.
	OwnCommand    bool `json:"ownCommand,omitempty"`
	StudyCommands bool `json:"studyCommands"`
}

// ControlKind is what a control message tells a worker.
type ControlKind string

// The kinds of control messages.
const (
	// ControlReceipt says that the leader has committed (or archived) a result.
	ControlReceipt ControlKind = "receipt"
	// ControlCancel ends an attempt: its result is wanted no more.
	ControlCancel ControlKind = "cancel"
	// ControlAvoid asks a worker to take no more attempts of a study.
	ControlAvoid ControlKind = "avoid"
)

// Control is a message of the leader to one worker.
type Control struct {
	Version int         `json:"version"`
	Kind    ControlKind `json:"kind"`
	Worker  string      `json:"worker"`
	AttemptID
	// Disposition says, in a receipt, what became of the result: folded,
	// duplicate, late, unknown, poison.
	Disposition Disposition `json:"disposition,omitempty"`
	Reason      string      `json:"reason,omitempty"`
}
