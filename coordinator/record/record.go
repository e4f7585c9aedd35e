// Package record is what the ledger stores: the authoritative state of studies
// and trials, as JSON. The engine writes these records, the ledger keeps them,
// every replica reads them.
package record

import (
	"encoding/json"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Study is a study's specification; it changes only by an update of the study file.
type Study struct {
	ID         string      `json:"id"`
	Definition study.Study `json:"study"`
	Created    time.Time   `json:"created"`
}

// Status is a study's state and its counts.
type Status struct {
	State study.State `json:"state"`
	// Reason says, for people, why the study is in its state.
	Reason string `json:"reason,omitempty"`
	// Position is the ledger position: it grows by one with each created and
	// each ended trial. A trial stores the positions of both.
	Position int64 `json:"position"`
	// Trials is how many trials have been created: the last one's number.
	Trials int `json:"trials"`
	// Best is the number of the completed trial with the best value, 0 for none.
	Best int `json:"best,omitempty"`
	// Recommended is made now and then while the study runs, and once more when it
	// has ended.
	Recommended Recommendation `json:"recommended,omitzero"`
	Started     time.Time      `json:"started"`
	Ended       time.Time      `json:"ended,omitzero"`
	// Idle is how long the study lay ended before an update let it go on: it
	// does not count against the budget's duration.
	Idle   time.Duration `json:"idle,omitempty"`
	Counts Counts        `json:"counts"`
	// Occupied says, by an attempt's number, up to which trial the attempts of that
	// number cannot be claimed when they are opened: messages that are no claims of
	// them were in the place of their claims before. It is never changed in place.
	Occupied map[int]int `json:"occupied,omitempty"`
}

// Recommendation is the completed trial whose posterior mean was best at a ledger
// position.
type Recommendation struct {
	// Trial is its number, 0 where nothing was recommended yet.
	Trial int `json:"trial"`
	// Mean and SD are the posterior's, in the objective's units.
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"`
	// Position is the ledger position of what the recommendation was made from.
	Position int64 `json:"position"`
}

// At is the recommendation with its trial's point.
func (r Recommendation) At(point study.Point) *optimizer.Recommendation {
	return &optimizer.Recommendation{Trial: r.Trial, Mean: r.Mean, SD: r.SD, Point: point}
}

// RecommendedOfAll reports whether what is recommended is of all that has happened.
func (s *Status) RecommendedOfAll() bool {
	return s.Recommended.Trial != 0 && s.Recommended.Position == s.Position
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
}

// Ended is the number of trials whose evaluation has ended: those that use the
// budget up. A cancelled trial was not evaluated to its end and does not count.
func (c Counts) Ended() int {
	return c.Completed + c.Failed + c.Infeasible + c.Pruned
}

// Open is the number of trials in no terminal state.
func (c Counts) Open() int { return c.Pending + c.Queued + c.Running }

// Model is an optimiser's state, committed with the suggestions that it made.
type Model struct {
	// Request is the number that seeded the request that made the state.
	Request int             `json:"request"`
	State   optimizer.State `json:"state"`
}

// Trial is one trial and its attempts: under 1 KiB as JSON but for long points
// and messages, and many attempts.
type Trial struct {
	Number int              `json:"number"`
	State  study.TrialState `json:"state"`
	Point  study.Point      `json:"point"`
	Source optimizer.Source `json:"source"`
	// Reasons say why the point was suggested.
	Reasons optimizer.Reasons `json:"reasons"`
	// Request is the number that seeded the suggestion request, Place the
	// suggestion's place in its answer, From the ledger position of the problem
	// that it was made from: observations are the trials ended at or before
	// From, pending points those created at or before and not yet ended.
	Request int   `json:"request"`
	Place   int   `json:"place"`
	From    int64 `json:"from"`
	// Staleness is how many observations arrived after From and before the
	// trial was created.
	Staleness int `json:"staleness"`
	// Created and Ended are ledger positions; Ended is 0 while the trial is open.
	Created  int64     `json:"created"`
	Ended    int64     `json:"ended,omitempty"`
	Attempts []Attempt `json:"attempts"`
	// Values and Metrics are those of the attempt that succeeded. A single value
	// is stored as "value" too: see MarshalJSON.
	Values  study.Values       `json:"values,omitempty"`
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Checkpoint is the last reference reported by any attempt.
	Checkpoint string `json:"checkpoint,omitempty"`
	// TraceID and SpanID are the trial's trace and its root span, in hex.
	TraceID string `json:"traceId,omitempty"`
	SpanID  string `json:"spanId,omitempty"`
	Times   Times  `json:"times"`
}

// MarshalJSON writes a trial. A single value is there twice, also as earlier
// versions read it: their replicas serve, and may lead, while a cluster is
// updated.
func (t Trial) MarshalJSON() ([]byte, error) {
	type plain Trial
	v := struct {
		plain
		Value *float64 `json:"value,omitempty"`
	}{plain: plain(t)}
	if len(t.Values) == 1 {
		v.Value = &t.Values[0]
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads a trial, also one that an earlier version stored.
func (t *Trial) UnmarshalJSON(data []byte) error {
	type plain Trial
	var v struct {
		plain
		Value *float64 `json:"value"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	*t = Trial(v.plain)
	if len(t.Values) == 0 && v.Value != nil {
		t.Values = study.Values{*v.Value}
	}
	return nil
}

// Times are when a trial passed each stage, by the clock of whoever did it.
type Times struct {
	// Asked is when the suggestion was asked for, Suggested when it was
	// answered, Created when the trial was made.
	Asked     time.Time `json:"asked,omitzero"`
	Suggested time.Time `json:"suggested,omitzero"`
	Created   time.Time `json:"created,omitzero"`
	Claimed   time.Time `json:"claimed,omitzero"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Folded    time.Time `json:"folded,omitzero"`
}

// Attempt is one hand-out of a trial.
type Attempt struct {
	Number int                `json:"number"`
	Nonce  string             `json:"nonce"`
	State  study.AttemptState `json:"state"`
	Worker string             `json:"worker,omitempty"`
	Opened time.Time          `json:"opened"`
	// Committed is when the ledger had the attempt, Published when the broker had
	// its assignment: stored with the next change of the trial, so that a leader
	// that dies before it leaves them zero.
	Committed time.Time         `json:"committed,omitzero"`
	Published time.Time         `json:"published,omitzero"`
	Claimed   time.Time         `json:"claimed,omitzero"`
	Started   time.Time         `json:"started,omitzero"`
	Ended     time.Time         `json:"ended,omitzero"`
	Outcome   messaging.Outcome `json:"outcome,omitempty"`
	// Failure's message and Logs are kept of a trial's first and last few
	// attempts alone, so that the record of hundreds fits the ledger.
	Failure *messaging.Failure `json:"failure,omitempty"`
	Logs    string             `json:"logs,omitempty"`
}

// Last returns the trial's last attempt, nil if it has none.
func (t *Trial) Last() *Attempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}
