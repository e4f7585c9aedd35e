// Package record defines what the ledger stores: the authoritative state of studies
// and trials, as JSON. The engine writes these records, the ledger stores them, and
// every replica reads them.
package record

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Study is a study's specification; it changes only by an update of the study file.
type Study struct {
	ID         string      `json:"id"`
	Definition study.Study `json:"study"`
	Created    time.Time   `json:"created"`
	// Space is the version of the study's space: see SpaceVersion. It is absent from
	// studies whose space was never edited.
	Space int `json:"space,omitempty"`
	// Resumes is when the study had ended (Status.Ended) if its last update resumed it,
	// zero otherwise. If Status.Ended still is that time, the commit of the update was cut
	// off.
	Resumes time.Time `json:"resumes,omitzero"`
}

// SpaceVersion returns the version of the study's space: 1 when the study was created, and one more
// with each edit.
func (s *Study) SpaceVersion() int { return max(1, s.Space) }

// Status is a study's state and its counts.
type Status struct {
	State study.State `json:"state"`
	// Reason tells users why the study is in its state.
	Reason string `json:"reason,omitempty"`
	// Space is the version of the study's space that the status is of, 0 for 1. If it is
	// not Study.Space, the commit of an edit was cut off.
	Space int `json:"space,omitempty"`
	// Position is the ledger position. It grows by one with each created and each
	// ended trial, and with each edit of the space, the limits or the references. A trial stores both of its positions.
	Position int64 `json:"position"`
	// Trials is how many trials have been created: the last one's number.
	Trials int `json:"trials"`
	// Best is the number of the completed trial within all limits with the best value, 0 for
	// none or if there are several objectives. Trials
	// whose point is not in the study's space now do not count.
	Best int `json:"best,omitempty"`
	// Front is nil in a study of one objective. It MUST NOT be changed in place.
	Front *Front `json:"front,omitempty"`
	// Limits is nil in a study without limits, and until a trial has completed.
	Limits *Limits `json:"limits,omitempty"`
	// Recommended is updated from time to time while the study runs, and once more
	// after it has ended.
	Recommended Recommendation `json:"recommended,omitzero"`
	// Gain is what more trials are expected to gain, in a study that ends once that is little.
	Gain    Gain      `json:"gain,omitzero"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// Idle is the total time between the study's ends and the updates that resumed it.
	Idle time.Duration `json:"idle,omitempty"`
	// Ran is for how long leaders had run the study when this was written, each by its own
	// clock; the budget's duration bounds it.
	Ran time.Duration `json:"ran,omitempty"`
	// Counted is when Ran was last counted while the study ran, and Since when the leader that
	// counted it began to run the study or an update resumed it, both by that leader's clock. They
	// are zero in what earlier versions have written.
	Counted time.Time `json:"counted,omitzero"`
	Since   time.Time `json:"since,omitzero"`
	Counts  Counts    `json:"counts"`
	// Spent is what the ended trials have cost, in the unit of the study's cost: see Trial.Cost.
	Spent float64 `json:"spent,omitempty"`
	// Forgiven is how many failed trials, the first ones, do not count for the study's end, since a user has
	// resumed it after them.
	Forgiven int `json:"forgiven,omitempty"`
	// Occupied holds, by attempt number, the highest trial whose attempt of that
	// number cannot be claimed, because another message had taken the place of its
	// claim before the attempt was opened. The map MUST NOT be changed in place.
	Occupied map[int]int `json:"occupied,omitempty"`
	// Avoided holds the workers that get no more trials of the study, since their
	// evaluations failed while those of others succeeded. It MUST NOT be changed in place.
	Avoided []string `json:"avoided,omitempty"`
}

// Recommendation is the completed trial whose posterior mean was best at a ledger
// position.
type Recommendation struct {
	// Trial is the trial's number; 0 if nothing has been recommended yet.
	Trial int `json:"trial"`
	// Mean and SD are the posterior mean and standard deviation at the trial's point,
	// in the objective's units.
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"`
	// Position is the ledger position of the observations used.
	Position int64 `json:"position"`
	// Front is that of posterior means if there are several objectives, as in
	// optimizer.Recommendation. It MUST NOT be changed in place.
	Front []optimizer.Expected `json:"front,omitempty"`
}

// Recommended returns what an optimiser recommended at a ledger position.
func Recommended(r *optimizer.Recommendation, position int64) Recommendation {
	return Recommendation{Trial: r.Trial, Mean: r.Mean, SD: r.SD, Position: position, Front: r.Front}
}

// At returns the recommendation with its trial's point.
func (r Recommendation) At(point study.Point) *optimizer.Recommendation {
	return &optimizer.Recommendation{Trial: r.Trial, Mean: r.Mean, SD: r.SD, Point: point, Front: r.Front}
}

// Gain is what more trials were expected to gain once some had completed.
type Gain struct {
	optimizer.Gain
	// Completed is how many had; 0 if nothing has been expected yet.
	Completed int `json:"completed"`
}

// Worth reports whether more trials are worth it, by when a budget ends a study, and returns the most that they are expected to gain
// in its unit. They are if it says nothing, or if that is not known.
func (g *Gain) Worth(enough study.StopWhen) (most float64, worth bool) {
	most, ok := g.MostPer(enough.Per)
	return most, enough.Gain <= 0 || g.Completed == 0 || !ok || most > enough.Gain
}

// RecommendedOfAll reports whether the recommendation uses all observations.
func (s *Status) RecommendedOfAll() bool {
	return s.Recommended.Trial != 0 && s.Recommended.Position == s.Position
}

// Aside is a message that changes nothing and that the dead-letter queue has refused. It
// is kept until the queue takes it.
type Aside struct {
	// Study is the id of the study that the message names; empty if there is no such
	// study.
	Study string `json:"study,omitempty"`
	// Subject, Reason and Raw are those of the dead letter; Refused is why the queue
	// refused it.
	Subject string    `json:"subject"`
	Reason  string    `json:"reason"`
	Refused string    `json:"refused"`
	At      time.Time `json:"at"`
	Raw     []byte    `json:"raw"`
}

// Counts are the numbers of trials by state.
type Counts struct {
	Pending    int `json:"pending"`
	Queued     int `json:"queued"`
	Running    int `json:"running"` // claimed and running
	Completed  int `json:"completed"`
	Failed     int `json:"failed"`
	Infeasible int `json:"infeasible"`
	Pruned     int `json:"pruned"`
	Cancelled  int `json:"cancelled"`
	// Added is how many of the completed trials were evaluated elsewhere.
	Added int `json:"added,omitempty"`
}

// Of returns the count of the trials in a state; nil if there is no such state.
func (c *Counts) Of(s study.TrialState) *int {
	switch s {
	case study.TrialPending:
		return &c.Pending
	case study.TrialQueued:
		return &c.Queued
	case study.TrialClaimed, study.TrialRunning:
		return &c.Running
	case study.TrialCompleted:
		return &c.Completed
	case study.TrialFailed:
		return &c.Failed
	case study.TrialInfeasible:
		return &c.Infeasible
	case study.TrialPruned:
		return &c.Pruned
	case study.TrialCancelled:
		return &c.Cancelled
	default:
		return nil
	}
}

// Count counts trials by state. It reports false if a trial has an unknown state.
func Count(trials []Trial) (c Counts, ok bool) {
	for i := range trials {
		of := c.Of(trials[i].State)
		if of == nil {
			return c, false
		}
		*of++
		if trials[i].Source == optimizer.SourceAdded {
			c.Added++
		}
	}
	return c, true
}

// String lists the counts that are not 0.
func (c Counts) String() string {
	var parts []string
	for _, one := range []struct {
		n    int
		name string
	}{
		{c.Pending, "pending"}, {c.Queued, "queued"}, {c.Running, "running"}, {c.Completed, "completed"},
		{c.Failed, "failed"}, {c.Infeasible, "infeasible"}, {c.Pruned, "pruned"}, {c.Cancelled, "cancelled"}, {c.Added, "added"},
	} {
		if one.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.name))
		}
	}
	return strings.Join(parts, ", ")
}

// Ended returns the number of trials that count against the budget: those whose
// evaluation has ended. Trials that were cancelled, or evaluated elsewhere, do not count.
func (c Counts) Ended() int {
	return c.Completed + c.Failed + c.Infeasible + c.Pruned - c.Added
}

// Open returns the number of trials that are not in a terminal state.
func (c Counts) Open() int { return c.Pending + c.Queued + c.Running }

// Model is an optimiser's state. It is committed with the first trial made from its
// answer.
type Model struct {
	// Request is the seed number of the request whose answer had the state.
	Request int             `json:"request"`
	State   optimizer.State `json:"state"`
}

// Trial is one trial and its attempts. As JSON it takes under 1 KiB unless it has many
// attempts, a long point or long messages.
type Trial struct {
	Number int              `json:"number"`
	State  study.TrialState `json:"state"`
	Point  study.Point      `json:"point"`
	Source optimizer.Source `json:"source"`
	// Suggested is the point that was suggested, if a client has evaluated another one; nil
	// otherwise.
	Suggested study.Point `json:"suggested,omitempty"`
	// Rung is the level of the study's fidelity, from 1; 0 if it has none. Predecessor is the trial whose
	// configuration this one continues: the one at the level below or, if a user asked for this one, one that was
	// stopped early; 0 for none.
	Rung        int `json:"rung,omitempty"`
	Predecessor int `json:"predecessor,omitempty"`
	// Reasons say why the point was suggested.
	Reasons optimizer.Reasons `json:"reasons"`
	// Request is the seed number of the request for the suggestion, and Place the
	// suggestion's place in the answer. From is the ledger position of the request's
	// problem: its observations are the trials that ended at or before From, its
	// pending points those of trials created at or before From that had not ended.
	Request int   `json:"request"`
	Place   int   `json:"place"`
	From    int64 `json:"from"`
	// Ask is what else the request for the suggestion said; nil if a person or a program
	// asked for the trial. The trials of an answer may share it, so it MUST NOT be changed
	// in place.
	Ask *Ask `json:"ask,omitempty"`
	// Staleness is how many observations arrived after From and before the
	// trial was created.
	Staleness int `json:"staleness"`
	// Created and Ended are ledger positions; Ended is 0 while the trial is open.
	Created  int64     `json:"created"`
	Ended    int64     `json:"ended,omitempty"`
	Attempts []Attempt `json:"attempts"`
	// Stopped is set once it is decided to stop the trial early; nil before. It stays if
	// the trial completes nevertheless.
	Stopped *Stopped `json:"stopped,omitempty"`
	// Cancelled is why a user has cancelled the trial; empty if none has.
	Cancelled string `json:"cancelled,omitempty"`
	// Values and Metrics come from the attempt that succeeded, or are what a pruned
	// trial had reached. Any other trial has those metrics that the study calls early, as far
	// as an attempt has reported them.
	Values  study.Values       `json:"values,omitempty"`
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Expected is what the evaluation was expected to cost when the trial was made, in the unit of the study's cost; 0 if no
	// model said it. Of a trial that has ended without a report of its cost, it is what counts in its place.
	Expected float64 `json:"expected,omitempty"`
	// Looks are those at the curve of a trial that has ended, which the optimiser learns from; nil if it does not.
	Looks []optimizer.Look `json:"looks,omitempty"`
	// Checkpoint is the last reference to a checkpoint that any attempt reported.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Reached is what the ended attempts of an open trial have reported, for the attempts that
	// continue them.
	Reached *messaging.Reached `json:"reached,omitempty"`
	// TraceID and SpanID identify the trial's trace and its root span, in hex.
	TraceID string `json:"traceId,omitempty"`
	SpanID  string `json:"spanId,omitempty"`
	// Labels and Note are what people say of the trial; they may change after its end.
	Labels map[string]string `json:"labels,omitempty"`
	Note   string            `json:"note,omitempty"`
	// Attributes are what programs have noted about the trial, as JSON has it.
	Attributes map[string]any `json:"attributes,omitempty"`
	// RequestID is the id of the user's request that made the trial, if it had one.
	RequestID string `json:"requestId,omitempty"`
	Times     Times  `json:"times"`
}

// Ask is what package replay needs to make a request again, beside the observations and the
// pending points at its position.
type Ask struct {
	// N is how many suggestions were asked for.
	N int `json:"n"`
	// MaxTrials and Parallelism are those of the study then; an update changes them.
	MaxTrials   int `json:"maxTrials"`
	Parallelism int `json:"parallelism"`
	// Time is the budget of time and what was left of it; nil for a budget of trials.
	Time *optimizer.Time `json:"time,omitempty"`
	// Cost is the budget in the study's cost and what was left of it; nil if the study's cost is time.
	Cost *optimizer.Cost `json:"cost,omitempty"`
	// Ran is how many seconds each pending trial had run, by its number; empty if the optimiser was not told. Whoever replays the
	// request has only this to go by: it depends on when the leader heard of a program's start, and on the leader's clock.
	Ran map[int]float64 `json:"ran,omitempty"`
	// Likely are the values with which pending trials were expected to end, by their numbers; empty if the optimiser was not told any.
	Likely map[int]study.Values `json:"likely,omitempty"`
	// Last is the step at which trials end, 0 if the optimiser was not told what they had reported. Looks is how many looks at its
	// curve each pending trial had, by its number.
	Last  int64       `json:"last,omitempty"`
	Looks map[int]int `json:"looks,omitempty"`
	// Limits are the limits that the study had when the request was made.
	Limits []study.Limit `json:"limits,omitempty"`
	// References are those that several objectives had when the request was made, nil for one
	// without a reference. It is empty if there is one objective.
	References []*float64 `json:"references,omitempty"`
	// Space is the version of the study's space, 0 for 1: see Study.Space.
	Space int `json:"space,omitempty"`
	// Fallback says that the request was for fallbacks, which another optimiser makes.
	Fallback bool `json:"fallback,omitempty"`
	// Cut says that the time for the answer was over, so that it depends on the machine.
	Cut bool `json:"cut,omitempty"`
}

// Stopped is the decision to stop a trial early. It is committed before the worker is
// told, and never changes.
type Stopped struct {
	// Attempt and Step are those of the report that led to it.
	Attempt int   `json:"attempt"`
	Step    int64 `json:"step"`
	// Values are the objectives' values by then, after Objective.Take; nil if the
	// objective had not been reported.
	Values study.Values `json:"values,omitempty"`
	// Likely is what the optimiser is told: the value with which the trial would probably have ended. It is nil
	// while too little was known of how reports relate to values.
	Likely study.Values `json:"likely,omitempty"`
	// Expected is what a model expected of the trial; nil for a rule without one.
	Expected *Expected `json:"expected,omitempty"`
	// Reason tells people why.
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Expected is what a model expected of a trial when it was stopped early, in values of the metric that it was
// judged by.
type Expected struct {
	// Steps are some of those that the trial would have had, its last one at the end. At each, Values are the best
	// value that it would have reported by then, and Low and High the bounds between which that is with a
	// probability of 90%.
	Steps  []int64   `json:"steps"`
	Values []float64 `json:"values"`
	Low    []float64 `json:"low"`
	High   []float64 `json:"high"`
	// Level is what the trial would have had to be likely to reach at its last step: where a new trial may end.
	Level float64 `json:"level"`
}

// Times are when a trial passed each stage, by the clock of whoever did it.
type Times struct {
	// Asked is when the suggestion was requested, Suggested when the optimiser
	// answered, and Created when the trial was made.
	Asked     time.Time `json:"asked,omitzero"`
	Suggested time.Time `json:"suggested,omitzero"`
	Created   time.Time `json:"created,omitzero"`
	Claimed   time.Time `json:"claimed,omitzero"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Folded    time.Time `json:"folded,omitzero"`
}

// Attempt is one attempt to evaluate a trial.
type Attempt struct {
	Number int                `json:"number"`
	Nonce  string             `json:"nonce"`
	State  study.AttemptState `json:"state"`
	Worker string             `json:"worker,omitempty"`
	Opened time.Time          `json:"opened"`
	// Committed is when the ledger had the attempt, and Published when the broker had
	// its assignment. Both are stored with the trial's next change, so they are zero
	// if the leader dies before.
	Committed time.Time `json:"committed,omitzero"`
	Published time.Time `json:"published,omitzero"`
	Claimed   time.Time `json:"claimed,omitzero"`
	Started   time.Time `json:"started,omitzero"`
	// Begun is when the leader heard that the program of an attempt in a job had started; zero if it has not, if its worker does not
	// say that, and outside of jobs, where it is Started.
	Begun   time.Time         `json:"begun,omitzero"`
	Ended   time.Time         `json:"ended,omitzero"`
	Outcome messaging.Outcome `json:"outcome,omitempty"`
	// Cost is the largest cost that its program has reported, in the unit of the study's cost; nil if it has reported none. It is
	// not changed in place. That of an open attempt may be a little less than what was reported last.
	Cost *float64 `json:"cost,omitempty"`
	// Failure's message and Logs are kept only for a trial's first and last few
	// attempts, so that the record of hundreds of attempts fits into the ledger.
	Failure *messaging.Failure `json:"failure,omitempty"`
	Logs    string             `json:"logs,omitempty"`
	// Site is where it ran, kept as Logs is; nil if its worker has not said, as in older records.
	Site *messaging.Site `json:"site,omitempty"`
	// Stages are when it passed each stage of a Job, kept as Logs is; nil if nothing but the times above is known.
	Stages *messaging.Stages `json:"stages,omitempty"`
	// Waiting is why the program of an open attempt has not started, as its worker said last.
	// It is not stored.
	Waiting string `json:"-"`
}

// InJob reports whether the attempt runs in a job of Slurm or Kubernetes.
func (a *Attempt) InJob() bool { return a.Site != nil && a.Site.Job != "" }

// Phases returns the parts of an attempt's evaluation that has ended, if it was in a Job; otherwise nil.
func (a *Attempt) Phases() []messaging.Phase { return a.Stages.Phases(a.Started, a.Ended) }

// Cost returns what a trial has cost so far: the costs that its attempts have reported, added up. The study must have a cost. If no
// attempt has reported one, reported is false, and the cost is the expected one.
func (t *Trial) Cost() (cost float64, reported bool) {
	for i := range t.Attempts {
		if c := t.Attempts[i].Cost; c != nil {
			cost, reported = cost+*c, true
		}
	}
	if !reported {
		return t.Expected, false
	}
	return cost, true
}

// Last returns the trial's last attempt; nil if it has none.
func (t *Trial) Last() *Attempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// Asked returns the point that was suggested.
func (t *Trial) Asked() study.Point {
	if t.Suggested != nil {
		return t.Suggested
	}
	return t.Point
}

// Origin says where the trial's point came from.
func (t *Trial) Origin() optimizer.Source {
	if t.Suggested != nil {
		return optimizer.SourceRequested
	}
	return t.Source
}

// NewID returns an id for a study that is created at the given time. It is a ULID
// (https://github.com/ulid/spec) in lower case: 26 letters and digits, which fit into
// one token of a NATS subject and one segment of an etcd key. Ids of different
// milliseconds sort by time. NewID reads ten bytes from entropy, which is
// crypto/rand.Reader outside tests. It panics if entropy fails, and for times before
// 1970 or after 10889. It is as safe for concurrent use as entropy is.
func NewID(entropy io.Reader, at time.Time) string {
	return strings.ToLower(ulid.MustNew(ulid.Timestamp(at), entropy).String())
}

// ResourceID returns the id of the study of a Kubernetes resource: like one of NewID at the time that
// the resource was created, with bits of its UID in place of random ones.
func ResourceID(uid string, created time.Time) string {
	bits := sha256.Sum256([]byte(uid))
	return NewID(bytes.NewReader(bits[:]), created)
}
