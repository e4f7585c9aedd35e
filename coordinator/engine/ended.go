package engine

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/compact"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// # Ended trials in memory
//
// A study may have very many ended trials, and their records hardly ever change. So at the
// end of the step in which a trial ends, its record is packed. A trial in e.open has its
// record at hand in rec. Of any other trial, rec MUST NOT be used before restore: look
// returns the record to those who only read it.
//
// The engine's rules ask a few things of many ended trials at once. The methods of trial
// answer these for every trial, from the record or from a digest that is made with the pack.

// digest is what the rules ask of ended trials. All but the marks are set when the record is
// packed.
type digest struct {
	packed      compact.Packed
	ended       int64
	value       float64 // of the first objective; NaN if there is none
	number      int32
	predecessor int32
	rung        uint8
	state       uint8 // in endStates
	initial     bool
	marks
}

// marks are what the engine notes about a trial beside its record.
type marks struct {
	// outside says that the trial's point is not in the study's space, which was edited.
	outside bool
	// promoted says that another trial continues this one at the next level.
	promoted bool
	// forgotten says that the ledger may hold a curve that is not in memory.
	forgotten bool
	// reported says that the curve is in the engine's list of changes.
	reported bool
}

// endStates are the terminal states.
var endStates = []study.TrialState{
	study.TrialCompleted, study.TrialFailed, study.TrialInfeasible, study.TrialPruned, study.TrialCancelled,
}

// pack packs the records of trials that have ended, at the end of a step that had them at
// hand.
func (e *Engine) pack() {
	for _, t := range e.dirty.whole {
		if t.work == nil || !t.rec.State.Terminal() {
			continue
		}
		r := &t.rec
		t.digest = digest{
			packed: e.codec.Pack(r), ended: r.Ended, value: r.Values.First(),
			number: int32(r.Number), predecessor: int32(r.Predecessor), rung: uint8(r.Rung),
			state: uint8(slices.Index(endStates, r.State)), initial: r.Source == optimizer.SourceInitial,
			marks: t.marks,
		}
		t.work = nil
	}
}

// restore brings back a trial's record until the end of the step.
func (e *Engine) restore(t *trial) {
	if t.work != nil {
		return
	}
	t.work = &work{rec: e.unpack(t)}
	e.dirty.whole = append(e.dirty.whole, t)
}

// look returns a trial's record, which the caller MUST NOT change.
func (e *Engine) look(t *trial) *record.Trial {
	if t.work != nil {
		return &t.rec
	}
	r := e.unpack(t)
	return &r
}

// copyOf returns a copy of a trial's record that later steps do not change.
func (e *Engine) copyOf(t *trial) record.Trial {
	if t.work != nil {
		return snapshot(t)
	}
	return e.unpack(t)
}

// unpack returns the record of a packed trial.
func (e *Engine) unpack(t *trial) record.Trial {
	r := record.Trial{Number: int(t.digest.number)}
	e.codec.Unpack(t.digest.packed, &r)
	return r
}

// number returns the trial's number.
func (t *trial) number() int {
	if t.work != nil {
		return t.rec.Number
	}
	return int(t.digest.number)
}

// state returns the trial's state.
func (t *trial) state() study.TrialState {
	if t.work != nil {
		return t.rec.State
	}
	return endStates[t.digest.state]
}

// ended returns the ledger position of the trial's end; 0 while it is open.
func (t *trial) ended() int64 {
	if t.work != nil {
		return t.rec.Ended
	}
	return t.digest.ended
}

// value returns the value of the first objective; NaN if the trial has none.
func (t *trial) value() float64 {
	if t.work != nil {
		return t.rec.Values.First()
	}
	return t.digest.value
}

// rung returns the level of the study's fidelity, from 1; 0 if it has none.
func (t *trial) rung() int {
	if t.work != nil {
		return t.rec.Rung
	}
	return int(t.digest.rung)
}

// predecessor returns the number of the trial that this one continues; 0 for none.
func (t *trial) predecessor() int {
	if t.work != nil {
		return t.rec.Predecessor
	}
	return int(t.digest.predecessor)
}

// initial reports whether the trial's point is from the study file.
func (t *trial) initial() bool {
	if t.work != nil {
		return t.rec.Source == optimizer.SourceInitial
	}
	return t.digest.initial
}

// tell adds an observation to a list for the optimiser. Of a blind one it keeps the latest.
func (e *Engine) tell(list []optimizer.Observation, o optimizer.Observation) []optimizer.Observation {
	const most = 2 * optimizer.BlindObservations
	if e.settings.Blind && !e.discrete && len(list) >= most {
		latest := list[len(list)-optimizer.BlindObservations:]
		list = append(make([]optimizer.Observation, 0, most), latest...) // snapshots share the old one
	}
	return append(list, o)
}
