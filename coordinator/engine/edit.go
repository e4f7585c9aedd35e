package engine

import (
	"reflect"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// # Editing a study
//
// An update replaces the study's specification with a compatible one: see
// study.Compatible. If it changes ranges or values of parameters, the space gets a new
// version, and every trial is in the new space or outside of it.
//
//   - Ended trials in the space are the optimiser's observations. Those outside are not, but
//     stay in the ledger, and count against the budget as before.
//   - Open trials outside run on, and count against budget and parallelism. The optimiser is
//     not told that they are pending.
//   - The best and the recommended trial are trials in the space. A goal that only a trial
//     outside has reached does not end the study.
//   - The optimiser starts without a state. Answers that were made for an earlier space are
//     dropped, and so are the suggestions that were ready.
//   - Ended trials outside are in no rung, and are not promoted.
//   - The rule for early stopping goes on comparing with all trials, since it compares
//     curves, not points.
//
// A trial outside that a later edit takes in again counts again.
//
// If an update changes the limits, the space stays, but the history and the best trial are made
// anew, and the recommendation is void. If it changes references, the history and the front are
// made anew.
//
// The record of the study is committed before the trials that follow from an update, and
// the status after them. If a leader dies in between, the next one sees in the status that
// the update is not finished, and finishes it: see catchUp.

// update replaces the specification with a compatible one. An ended study resumes unless the new
// specification ends it too. An edit of the space, the limits or the references changes what the
// history means, so that is made anew before anything is decided by it. Resumes is stored with the
// specification, since the status may be committed later: see catchUp.
func (e *Engine) update(spec record.Study) {
	spec.Space, spec.Resumes = e.spec.Space, time.Time{}
	edited := study.NewSpace(&e.spec.Definition, &spec.Definition)
	if edited {
		spec.Space = e.spec.SpaceVersion() + 1
	}
	noted := onlyAttributes(&e.spec.Definition, &spec.Definition)
	old, new := &e.spec.Definition.Spec, &spec.Definition.Spec
	limited := !reflect.DeepEqual(old.Limits, new.Limits)
	referred := !reflect.DeepEqual(old.Several, new.Several) // only their references can change
	if err := e.spec.set(spec); err != nil {
		e.step.out.warn("refused the new specification: %v", err)
		return
	}
	e.step.changed.study = true
	if noted { // a note about an ended study does not resume it
		return
	}
	if edited {
		e.enterSpace()
	} else if limited || referred {
		e.history.learnAgain()
	}
	if limited {
		e.history.setRecommended(record.Recommendation{})
	}
	e.suggestions.exhaustion.restart(e.trials.position)
	if ended := e.life.ended; e.resume() {
		e.spec.Resumes = ended
	}
}

func onlyAttributes(old, new *study.Study) bool {
	same := *new
	same.Spec.Attributes = old.Spec.Attributes
	return reflect.DeepEqual(*old, same) && !reflect.DeepEqual(old.Spec.Attributes, new.Spec.Attributes)
}

// goOn continues an ended study at a user's request, who has seen why its trials failed. A study that runs
// stays as it is.
func (e *Engine) goOn() {
	if e.running() {
		e.step.reply(nil, nil)
		return
	}
	before := e.trials.forgiven
	e.trials.forgiven = e.trials.counts.Failed
	e.suggestions.exhaustion.restart(e.trials.position)
	if !e.resume() {
		e.trials.forgiven = before
		e.step.reply(nil, refusef("the study stays %s: %s", e.life.state, e.life.reason))
		return
	}
	e.step.reply(nil, nil)
}

// enqueue also continues a trial of a study that has ended, if the study ended because it had no more trials to make.
// The study then runs this trial alone, and ends again.
func (e *Engine) enqueue(ev Enqueue) {
	resumes := ev.Continues != 0 && !e.running() && !e.Requested(ev.RequestID)
	if resumes {
		if state, _ := e.verdict(); !state.Terminal() {
			e.step.reply(nil, refusef("the study has ended: %s. It would begin other trials too if it went on: resume it first", e.life.state))
			return
		}
		if state, reason := e.verdictIf(func() bool { return true }); state.Terminal() {
			e.step.reply(nil, refusef("the study has ended, and would end again at once: %s", reason))
			return
		}
	}
	if e.users.enqueue(ev, resumes); resumes && e.users.finishing() {
		e.life.resume()
	}
}

// resume continues an ended study unless its specification, with the trials so far, ends it too: the reason is then the
// present one. It reports whether it does.
func (e *Engine) resume() bool {
	if e.running() {
		return false
	}
	if state, reason := e.verdict(); state.Terminal() {
		if state == e.life.state { // an edit may have changed why, such as which trials are within the limits
			e.life.say(clip(reason))
		}
		return false
	}
	e.life.resume()
	return true
}

// catchUp finishes an update whose commit was cut off after the study's record. It does what update
// would have done, and nothing if the status is of the same version.
func (e *Engine) catchUp() {
	if max(1, e.history.space) != e.spec.SpaceVersion() {
		e.enterSpace()
	}
	if r := e.spec.Resumes; !r.IsZero() && r.Equal(e.life.ended) {
		e.resume()
	}
}

// enterSpace makes anew what depends on the space, which has just become another one. The
// recommendation stays if its trials are in the new space.
func (e *Engine) enterSpace() {
	e.history.learnAgain()
	e.history.forgetOutside()
	e.suggestions.forgetModel()
}
