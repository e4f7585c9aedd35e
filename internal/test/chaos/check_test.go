package chaos

import (
	"context"
	"errors"
	"fmt"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// verify holds a study in the ledger against what its programs logged and its clients
// were answered. over says that the study has ended. It returns what is wrong.
func (r *round) verify(ctx context.Context, g *generation, over bool) error {
	told := g.history.completed() // before the ledger is read: it may have more by then
	begun, ended, err := g.logged()
	if err != nil {
		return err
	}
	records, err := read(ctx, r.fleet, func(ctx context.Context, l *ledger.Ledger) (*ledger.Records, error) {
		id, err := l.ID(ctx, g.study)
		if err != nil {
			return nil, err
		}
		return l.LoadStudy(ctx, id)
	})
	if err != nil {
		return err
	}
	if records.Err != nil {
		return records.Err
	}
	var wrong []error
	fail := func(count *int, format string, args ...any) {
		r.report.count(count)
		wrong = append(wrong, fmt.Errorf(format, args...))
	}
	for a, n := range begun {
		if n > 1 {
			fail(&r.report.runTwice, "attempt %d of trial %d was begun %d times", a.number, a.trial, n)
		}
	}
	if g.script != "" { // programs may have ended since they were logged
		if begun, ended, err = g.logged(); err != nil {
			return err
		}
	}
	positions := map[int64]int{}
	for i := range records.Trials {
		t := &records.Trials[i]
		if t.Number != i+1 {
			fail(&r.report.lost, "the trial at place %d has the number %d", i+1, t.Number)
		}
		for _, at := range []int64{t.Created, t.Ended} {
			if other, taken := positions[at]; taken && at != 0 {
				fail(&r.report.toldTwice, "trials %d and %d have the position %d", other, t.Number, at)
			}
			positions[at] = t.Number
		}
		if err := g.checkTrial(t, begun, ended); err != nil {
			fail(&r.report.toldTwice, "trial %d: %w", t.Number, err)
		}
		if over && t.State != study.TrialCompleted {
			fail(&r.report.lost, "trial %d is %s: %+v", t.Number, t.State, t.Last())
		}
	}
	for number, value := range told {
		if number > len(records.Trials) {
			fail(&r.report.lost, "trial %d, which a client completed, is not in the ledger", number)
		} else if t := &records.Trials[number-1]; t.State != study.TrialCompleted || t.Values.First() != value {
			fail(&r.report.lost, "trial %d is %s with %v; a client was answered that it is completed with %v", number, t.State, t.Values, value)
		}
	}
	if n := len(records.Trials); n > g.trials || over && n != g.trials {
		fail(&r.report.lost, "there are %d trials, the budget is %d", n, g.trials)
	}
	s := &records.Status
	// The position grows by one with each trial that is created and each that ends.
	if want := int64(len(records.Trials) + s.Counts.Ended()); s.Position != want {
		fail(&r.report.toldTwice, "the ledger stands at position %d, want %d: each trial created once and told once", s.Position, want)
	}
	if over && (s.State != study.Completed || s.Counts.Completed != g.trials || s.Counts.Open() != 0) {
		fail(&r.report.lost, "the study is %s (%s) with %+v, want exactly %d completed trials", s.State, s.Reason, s.Counts, g.trials)
	}
	if over && len(wrong) == 0 && !g.counted {
		g.counted = true
		r.report.studyEnded(records)
		if err := g.history.check(); err != nil {
			wrong = append(wrong, err)
		} else {
			r.report.ordered(g.history.len())
		}
	}
	return errors.Join(wrong...)
}

// checkTrial says what is wrong with a trial that has ended.
func (g *generation) checkTrial(t *record.Trial, begun map[attempt]int, ended map[attempt]float64) error {
	if !t.State.Terminal() {
		return nil
	}
	completed, found := 0, false
	for _, a := range t.Attempts {
		if a.Outcome == messaging.OutcomeCompleted && a.State != study.AttemptLost {
			completed++
		}
		value, ok := ended[attempt{t.Number, a.Number}]
		found = found || ok && value == t.Values.First()
	}
	if completed > 1 {
		return fmt.Errorf("%d of its attempts completed it", completed)
	}
	if t.State == study.TrialCompleted && g.script != "" && !found {
		return fmt.Errorf("it has the value %v, with which no attempt of %d ended", t.Values, len(t.Attempts))
	}
	if t.Ended == 0 {
		return errors.New("it has ended without a position")
	}
	return nil
}
