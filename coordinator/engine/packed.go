package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/codec"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// # Trials in memory
//
// A study may have very many ended trials, and very many that users have enqueued; their records hardly ever
// change. So at the end of the step in which a trial ends or is enqueued, its record is packed: its JSON is
// compressed to about a fifth. A trial that has been handed out and is open has its record at hand in rec. Of
// any other trial, rec MUST NOT be used before restore. The method record returns it to those who only read
// it, and facts what the engine's rules ask of many trials at once.

// trial is what the engine keeps of a trial.
type trial struct {
	*work  // nil while the record is packed
	packed []byte
	kept   facts // of the packed record
	marks
	curve *recent // nil if nothing was reported, or if it is forgotten
}

// facts are the part of a record that the rules ask of many trials at once.
type facts struct {
	number, predecessor, rung int
	state                     study.TrialState
	ended                     int64   // the ledger position; 0 while the trial is open
	value                     float64 // of the first objective; NaN if there is none
	initial                   bool    // the point is from the study file
}

// marks are what the engine notes about a trial beside its record.
type marks struct {
	// outside says that the trial's point is not in the study's space, which was edited.
	outside bool
	// over says that the trial did not complete within all limits.
	over bool
	// promoted says that another trial continues this one at the next level.
	promoted bool
	// forgotten says that the ledger may hold a curve that is not in memory.
	forgotten bool
	// reported says that the curve is in the engine's list of changes.
	reported bool
	// bytes is what the trial counts of trials.bytes.
	bytes int32
}

// facts never unpacks a record, so rules may ask it of all trials.
func (t *trial) facts() facts {
	if t.work == nil {
		return t.kept
	}
	r := &t.rec
	return facts{r.Number, r.Predecessor, r.Rung, r.State, r.Ended, r.Values.First(), r.Source == optimizer.SourceInitial}
}

// wished reports whether a trial waits for its first attempt, as those that users have enqueued do.
func (t *trial) wished() bool {
	return t.work == nil && !t.kept.state.Terminal() || t.work != nil && t.rec.State == study.TrialPending && len(t.rec.Attempts) == 0
}

// record returns the record of any trial, which the caller MUST NOT change. A packed one is unpacked for
// this call: ask facts where they do.
func (t *trial) record() *record.Trial {
	if t.work != nil {
		return &t.rec
	}
	raw, err := compression.Unpack(t.packed)
	r := &record.Trial{}
	if err == nil {
		err = json.Unmarshal(raw, r)
	}
	if err != nil {
		panic(fmt.Sprintf("engine: trial %d was packed and cannot be unpacked: %v", t.kept.number, err))
	}
	return r
}

// copy returns a copy of the record for the caller of the engine, which later steps do not change.
func (t *trial) copy() record.Trial {
	r := *t.record()
	r.Attempts = slices.Clone(r.Attempts)
	return r
}

// compression packs the records of all engines. Its dictionary is a typical record. So the names of fields,
// which are in every record, take hardly any bytes.
var compression = func() *codec.Codec {
	dictionary, err := json.Marshal(typical())
	if err != nil {
		panic(fmt.Sprintf("engine: %v", err))
	}
	return codec.New(dictionary)
}()

// typical has the fields and the texts that most records have.
func typical() *record.Trial {
	at, mean := time.Date(2026, 1, 1, 0, 0, 0, 123456789, time.UTC), 0.5
	attempt := record.Attempt{
		Number: 1, Nonce: "0", State: study.AttemptSucceeded, Worker: "local", Opened: at, Committed: at, Published: at,
		Claimed: at, Started: at, Ended: at, Outcome: messaging.OutcomeCompleted, Logs: "local/",
	}
	failed := attempt
	failed.State, failed.Outcome = study.AttemptFailed, messaging.OutcomeFailed
	failed.Failure = &messaging.Failure{Reason: messaging.ReasonExit, Message: "exit status 1"}
	return &record.Trial{
		Number: 1, State: study.TrialCompleted, Point: study.Point{"x": 0.5}, Source: optimizer.SourceModel,
		Reasons: optimizer.Reasons{Mean: &mean, SD: &mean, Acquisition: map[string]float64{"ei": 0.5}, Pending: 1},
		Request: 1, From: 1, Ask: &record.Ask{N: 1, MaxTrials: 100, Parallelism: 1}, Created: 1, Ended: 2,
		Attempts: []record.Attempt{failed, attempt}, Values: study.Values{0.5}, Metrics: map[string]float64{"loss": 0.5},
		TraceID: "0", SpanID: "0",
		Times: record.Times{Asked: at, Suggested: at, Created: at, Claimed: at, Started: at, Ended: at, Folded: at},
	}
}
