package engine

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/judge"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Judge asks whether an attempt goes on that the study's rule leaves to a model. It is to be answered by
// Judged.
type Judge struct {
	judge.Question
	Attempt messaging.AttemptID
	// Step is that of the report that led to the question.
	Step int64
}

// judging asks a model whether trials go on, one question at a time: the answer to one may change the next.
// A trial waits once, with its latest report. Nothing of it is stored: a leader that dies leaves its
// questions unanswered, and the next reports ask again.
type judging struct {
	*pruning
	waiting []waiting
	asked   *Judge // in flight
	memory  judge.Memory
	// foreseen are the costs with which trials that run are expected to end, by number, as of the last answer.
	foreseen map[int]float64
}

// waiting is a trial whose attempt is to be judged.
type waiting struct {
	trial   *trial
	attempt messaging.AttemptID
	step    int64
}

// measured adds a report, and has the trial judged if the rule says so.
func (j *judging) measured(m *messaging.Measurement) {
	if t, ask := j.pruning.measured(m); ask && t.rec.Stopped == nil {
		j.waiting = slices.DeleteFunc(j.waiting, func(w waiting) bool { return w.trial == t })
		j.waiting = append(j.waiting, waiting{t, m.AttemptID, m.Step})
	}
}

// ask asks the next question, unless one is in flight. problem returns where all trials are.
func (j *judging) ask(problem func() *optimizer.Problem) {
	for j.asked == nil && len(j.waiting) > 0 {
		w := j.waiting[0]
		if j.waiting = j.waiting[1:]; w.trial.facts().state.Terminal() || w.trial.rec.Stopped != nil {
			continue
		}
		j.asked = &Judge{
			Question: judge.Question{
				Trial: w.trial.rec.Number, Problem: problem(), Curves: j.rule.pruner.Curves(), Last: j.rule.pruner.Length(),
				Direction: j.rule.direction, Memory: j.memory,
			},
			Attempt: w.attempt, Step: w.step,
		}
		j.step.out.Judge = j.asked
	}
}

// judged carries out an answer. The attempt may have ended since, or another one may have begun.
func (j *judging) judged(ev Judged) {
	if j.asked == nil || ev.Judge != j.asked {
		return
	}
	j.asked = nil
	if ev.Err != nil {
		j.step.out.warn("trial %d goes on, because it could not be judged: %v", ev.Judge.Trial, ev.Err)
		return
	}
	j.memory, j.foreseen = ev.Answer.Memory, map[int]float64{}
	for _, f := range ev.Answer.Running {
		j.foreseen[f.Trial] = f.Cost
	}
	if t, _ := j.trials.find(ev.Judge.Attempt); t != nil && ev.Answer.Stop {
		j.prune(t, &messaging.Measurement{AttemptID: ev.Judge.Attempt, Step: ev.Judge.Step}, ev.Answer.Reason, ev.Answer.Expected,
			j.likely(ev.Answer.Cost))
	}
}

// likely returns the value with which a trial would probably have ended that is expected to end at a cost. If
// what trials report is what they end with, it is that; otherwise only its rank counts.
func (j *judging) likely(cost float64) study.Values {
	completed, better, same := j.rule.pruner.Ends(cost)
	if same && j.rule.objective == 0 && len(j.spec.Definition.Spec.Several) == 0 {
		return study.Values{j.rule.direction.Cost(cost)}
	}
	return j.pruning.likely(completed, better)
}

// expected adds to pending points the values with which their trials are expected to end.
func (j *judging) expected(pending []optimizer.Pending) {
	if len(j.foreseen) == 0 || j.rule.looks == nil || !j.rule.tells() {
		return
	}
	for i := range pending {
		if cost, ok := j.foreseen[pending[i].Trial]; ok && study.Finite(cost) {
			pending[i].Likely = study.Values{j.rule.direction.Cost(cost)}
		}
	}
}

// end drops what waits, and the question of this step, which nobody has yet.
func (j *judging) end() {
	if j.waiting = nil; j.step.out.Judge != nil {
		j.step.out.Judge, j.asked = nil, nil
	}
}
