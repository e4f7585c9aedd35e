package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// evidence is what is known of a study beside the ledger.
type evidence struct {
	// told are the values of the trials that clients were told to be completed.
	told map[int]float64
	// begun is how often programs began each attempt, ended are the values that they ended
	// with.
	begun map[attempt]int
	ended map[attempt]float64
}

// findings are what is wrong with a study.
type findings struct{ lost, toldTwice, runTwice []error }

func (f *findings) all() []error { return slices.Concat(f.lost, f.toldTwice, f.runTwice) }

// verify holds a study in the ledger against what its programs logged and its clients
// were answered. over says that the study has ended. It returns what is wrong.
func (r *round) verify(ctx context.Context, g *generation, over bool) error {
	known := evidence{told: g.history.completed()} // before the ledger is read, which may have more by then
	records, err := readLedger(ctx, r.fleet, func(ctx context.Context, l *ledger.Ledger) (*ledger.Records, error) {
		id, err := l.ID(ctx, g.study)
		if err != nil {
			return nil, err
		}
		return l.LoadStudy(ctx, id)
	})
	if err == nil {
		err = records.Err
	}
	if err != nil {
		return err
	}
	if known.begun, known.ended, err = g.logged(); err != nil { // what has been committed had been logged
		return err
	}
	wrong := known.against(g, records, over)
	r.report.wronged(wrong)
	problems := wrong.all()
	if over && len(problems) == 0 {
		if err := r.curves(ctx, g, records); err != nil {
			problems = append(problems, err)
		}
		if err := r.front(ctx, g, records, known.ended); err != nil {
			problems = append(problems, err)
		}
		if err := g.history.check(); err != nil {
			problems = append(problems, err)
		}
		if !g.counted && len(problems) == 0 {
			g.counted = true
			r.report.studyEnded(records, g.history.len())
		}
	}
	return errors.Join(problems...)
}

// against returns what is wrong with a study in the ledger, by what is known of it.
func (e evidence) against(g *generation, records *ledger.Records, over bool) (wrong findings) {
	note := func(list *[]error, format string, args ...any) { *list = append(*list, fmt.Errorf(format, args...)) }
	for a, n := range e.begun {
		if n > 1 {
			note(&wrong.runTwice, "attempt %d of trial %d was begun %d times", a.number, a.trial, n)
		}
	}
	positions := map[int64]int{}
	for i := range records.Trials {
		t := &records.Trials[i]
		if t.Number != i+1 {
			note(&wrong.lost, "the trial at place %d has the number %d", i+1, t.Number)
		}
		for _, at := range []int64{t.Created, t.Ended} {
			if other, taken := positions[at]; taken && at != 0 {
				note(&wrong.toldTwice, "trials %d and %d have the position %d", other, t.Number, at)
			}
			positions[at] = t.Number
		}
		if err := e.checkTrial(g, t); err != nil {
			note(&wrong.toldTwice, "trial %d: %w", t.Number, err)
		}
		if over && t.State != study.TrialCompleted {
			note(&wrong.lost, "trial %d is %s: %+v", t.Number, t.State, t.Last())
		}
	}
	if over && g.levels > 0 {
		if err := testcluster.Promotions(records.Trials, g.levels, reduction); err != nil {
			note(&wrong.toldTwice, "%w", err)
		}
	}
	for number, value := range e.told {
		if number > len(records.Trials) {
			note(&wrong.lost, "trial %d, which a client completed, is not in the ledger", number)
		} else if t := &records.Trials[number-1]; t.State != study.TrialCompleted || t.Values.First() != value {
			note(&wrong.lost, "trial %d is %s with %v; a client was answered that it is completed with %v", number, t.State, t.Values, value)
		}
	}
	if n := len(records.Trials); n > g.trials || over && n != g.trials {
		note(&wrong.lost, "there are %d trials, the budget is %d", n, g.trials)
	}
	s := &records.Status
	// The position grows by one with each trial that is created and each that ends.
	if want := int64(len(records.Trials) + s.Counts.Ended()); s.Position != want {
		note(&wrong.toldTwice, "the ledger stands at position %d, want %d: each trial created once and told once", s.Position, want)
	}
	if over && (s.State != study.Completed || s.Counts.Completed != g.trials || s.Counts.Open() != 0) {
		note(&wrong.lost, "the study is %s (%s) with %+v, want exactly %d completed trials", s.State, s.Reason, s.Counts, g.trials)
	}
	return wrong
}

// checkTrial says what is wrong with a trial that has ended.
func (e evidence) checkTrial(g *generation, t *record.Trial) error {
	if !t.State.Terminal() {
		return nil
	}
	completed, found := 0, false
	for _, a := range t.Attempts {
		if a.Outcome == messaging.OutcomeCompleted {
			completed++
		}
		value, ok := e.ended[attempt{t.Number, a.Number}]
		found = found || ok && value == t.Values.First()
	}
	switch {
	case completed > 1:
		return fmt.Errorf("%d of its attempts completed it", completed)
	case t.State == study.TrialCompleted && g.script != "" && !found:
		return fmt.Errorf("it has the value %v, with which no attempt of %d ended", t.Values, len(t.Attempts))
	case t.Ended == 0:
		return errors.New("it has ended without a position")
	}
	return nil
}

// curves checks that what clients were told to be measured is in the ledger, for trials
// with a single attempt: another one begins a new curve.
func (r *round) curves(ctx context.Context, g *generation, records *ledger.Records) error {
	for number, steps := range g.history.measured() {
		if len(records.Trials[number-1].Attempts) != 1 {
			continue
		}
		c, err := readLedger(ctx, r.fleet, func(ctx context.Context, l *ledger.Ledger) (*curve.Curve, error) {
			return l.Curve(ctx, records.Study.ID, number)
		})
		if err != nil {
			return err
		}
		for _, step := range steps {
			if !has(c, step) {
				return fmt.Errorf("step %d of trial %d is not in the ledger, though a client was told that it is", step, number)
			}
		}
	}
	return nil
}

func has(c *curve.Curve, step int64) bool {
	for _, s := range c.Series() {
		if slices.ContainsFunc(s.Points, func(p curve.Point) bool { return p.Step == step }) {
			return true
		}
	}
	return false
}

// TestFindings holds that what must not happen is found.
func TestFindings(t *testing.T) {
	g := &generation{family: family{script: "true"}, trials: 2}
	right := func() (*ledger.Records, evidence) {
		trial := func(number int) record.Trial {
			return record.Trial{
				Number: number, State: study.TrialCompleted, Created: int64(number), Ended: int64(2 + number), Values: study.Values{float64(number)},
				Attempts: []record.Attempt{{Number: 1, Outcome: messaging.OutcomeCompleted}},
			}
		}
		records := &ledger.Records{Trials: []record.Trial{trial(1), trial(2)}}
		records.Status = record.Status{State: study.Completed, Position: 4, Trials: 2, Counts: record.Counts{Completed: 2}}
		return records, evidence{
			told: map[int]float64{1: 1}, begun: map[attempt]int{{1, 1}: 1, {2, 1}: 1}, ended: map[attempt]float64{{1, 1}: 1, {2, 1}: 2},
		}
	}
	records, known := right()
	if wrong := known.against(g, records, true); len(wrong.all()) > 0 {
		t.Fatalf("nothing is wrong, but: %v", wrong.all())
	}
	for name, c := range map[string]struct {
		spoil func(*ledger.Records, evidence)
		of    func(findings) []error
	}{
		"an attempt that was begun twice": {func(_ *ledger.Records, e evidence) { e.begun[attempt{1, 1}]++ },
			func(f findings) []error { return f.runTwice }},
		"a told trial that is not there": {func(_ *ledger.Records, e evidence) { e.told[3] = 1 },
			func(f findings) []error { return f.lost }},
		"a told trial with another value": {func(_ *ledger.Records, e evidence) { e.told[2] = 1 },
			func(f findings) []error { return f.lost }},
		"a value that nobody logged": {func(r *ledger.Records, _ evidence) { r.Trials[1].Values[0] = 7 },
			func(f findings) []error { return f.toldTwice }},
		"a trial too many": {func(r *ledger.Records, _ evidence) { g.trials = 1 },
			func(f findings) []error { return f.lost }},
		"a trial too few": {func(r *ledger.Records, _ evidence) { g.trials = 3 },
			func(f findings) []error { return f.lost }},
		"a trial that did not end": {func(r *ledger.Records, _ evidence) { r.Trials[1].State = study.TrialRunning },
			func(f findings) []error { return f.lost }},
		"two trials at one position": {func(r *ledger.Records, _ evidence) { r.Trials[1].Ended = 3 },
			func(f findings) []error { return f.toldTwice }},
		"a position that counts a trial twice": {func(r *ledger.Records, _ evidence) { r.Status.Position = 5 },
			func(f findings) []error { return f.toldTwice }},
		"a promotion that the rule does not want": {func(r *ledger.Records, _ evidence) {
			g.levels, r.Trials[0].Rung, r.Trials[1].Rung, r.Trials[1].Predecessor = 3, 1, 2, 1
		}, func(f findings) []error { return f.toldTwice }},
		"two attempts that completed a trial": {func(r *ledger.Records, _ evidence) {
			r.Trials[1].Attempts = append(r.Trials[1].Attempts, record.Attempt{Number: 2, Outcome: messaging.OutcomeCompleted})
		}, func(f findings) []error { return f.toldTwice }},
	} {
		records, known := right()
		g.trials, g.levels = 2, 0
		c.spoil(records, known)
		if wrong := known.against(g, records, true); len(c.of(wrong)) == 0 {
			t.Errorf("%s is not found: %v", name, wrong.all())
		}
	}
}
