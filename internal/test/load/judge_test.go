package load

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// findings are what is wrong with studies.
type findings struct{ lost, toldTwice, runTwice []error }

func (f *findings) all() []error { return slices.Concat(f.lost, f.toldTwice, f.runTwice) }

// judge holds a study in the ledger against what its workers did.
func (f *findings) judge(s planned, records *ledger.Records, events []event) {
	note := func(list *[]error, format string, args ...any) {
		*list = append(*list, fmt.Errorf("%s: %w", s.name, fmt.Errorf(format, args...)))
	}
	type attempt struct{ trial, number int }
	begun, ended := map[attempt]int{}, map[attempt]float64{}
	for i := range events {
		e := &events[i]
		if e.Study != s.id {
			continue
		}
		a := attempt{e.Trial, e.Attempt}
		if begun[a]++; begun[a] > 1 {
			note(&f.runTwice, "attempt %d of trial %d was begun %d times", e.Attempt, e.Trial, begun[a])
		}
		if e.Ended == 0 {
			continue
		}
		ended[a] = e.Value
		if e.Trial > len(records.Trials) {
			note(&f.lost, "trial %d, which was evaluated, is not in the ledger", e.Trial)
			continue
		}
		// Who stops a study gives up what runs.
		state := records.Trials[e.Trial-1].State
		if state != study.TrialCompleted && (records.Status.State != study.Stopped || state != study.TrialCancelled) {
			note(&f.lost, "trial %d, which was evaluated, is %s", e.Trial, state)
		}
	}
	positions := map[int64]int{}
	for i := range records.Trials {
		t := &records.Trials[i]
		for _, at := range []int64{t.Created, t.Ended} {
			if other, taken := positions[at]; taken && at != 0 {
				note(&f.toldTwice, "trials %d and %d have the position %d", other, t.Number, at)
			}
			positions[at] = t.Number
		}
		if t.State != study.TrialCompleted {
			continue
		}
		var completed []record.Attempt
		for _, a := range t.Attempts {
			if a.Outcome == messaging.OutcomeCompleted {
				completed = append(completed, a)
			}
		}
		if len(completed) != 1 {
			note(&f.toldTwice, "trial %d is completed by %d attempts", t.Number, len(completed))
		} else if value, ok := ended[attempt{t.Number, completed[0].Number}]; !ok || value != t.Values.First() {
			note(&f.toldTwice, "trial %d has the value %v, its evaluation ended with %v", t.Number, t.Values, value)
		}
	}
	status := &records.Status
	// The position grows by one with each trial that is created and each that ends.
	if want := int64(len(records.Trials) + status.Counts.Ended() + status.Counts.Cancelled); status.Position != want {
		note(&f.toldTwice, "the ledger stands at position %d, want %d: each trial created once and told once", status.Position, want)
	}
	if status.State == study.Completed && (status.Counts.Completed != s.trials || len(records.Trials) != s.trials) {
		note(&f.lost, "the study has %d trials and %+v, want exactly %d completed", len(records.Trials), status.Counts, s.trials)
	}
}

// TestFindings holds that what must not happen is found.
func TestFindings(t *testing.T) {
	s := planned{name: "s", id: "s1", trials: 2}
	right := func() (*ledger.Records, []event) {
		trial := func(number int) record.Trial {
			return record.Trial{
				Number: number, State: study.TrialCompleted, Created: int64(number), Ended: int64(2 + number), Values: study.Values{float64(number)},
				Attempts: []record.Attempt{{Number: 1, Outcome: messaging.OutcomeCompleted}},
			}
		}
		records := &ledger.Records{Trials: []record.Trial{trial(1), trial(2)}}
		records.Status = record.Status{State: study.Completed, Position: 4, Trials: 2, Counts: record.Counts{Completed: 2}}
		return records, []event{
			{Study: "s1", Trial: 1, Attempt: 1, Ended: 1, Value: 1}, {Study: "s1", Trial: 2, Attempt: 1, Ended: 1, Value: 2},
			{Study: "other", Trial: 1, Attempt: 1, Ended: 1, Value: 7},
		}
	}
	records, events := right()
	var none findings
	if none.judge(s, records, events); len(none.all()) > 0 {
		t.Fatalf("nothing is wrong, but: %v", none.all())
	}
	for name, c := range map[string]struct {
		spoil func(*ledger.Records, []event) []event
		of    func(findings) []error
	}{
		"an attempt that was begun twice": {func(_ *ledger.Records, e []event) []event { return append(e, e[0]) },
			func(f findings) []error { return f.runTwice }},
		"an evaluated trial that is not there": {func(r *ledger.Records, e []event) []event {
			r.Trials = r.Trials[:1]
			return e
		}, func(f findings) []error { return f.lost }},
		"an evaluated trial that failed": {func(r *ledger.Records, e []event) []event {
			r.Trials[1].State = study.TrialFailed
			return e
		}, func(f findings) []error { return f.lost }},
		"a value that no evaluation had": {func(r *ledger.Records, e []event) []event {
			r.Trials[1].Values[0] = 7
			return e
		}, func(f findings) []error { return f.toldTwice }},
		"a trial that nobody evaluated": {func(_ *ledger.Records, e []event) []event { return e[:1] },
			func(f findings) []error { return f.toldTwice }},
		"two attempts that completed a trial": {func(r *ledger.Records, e []event) []event {
			r.Trials[1].Attempts = append(r.Trials[1].Attempts, record.Attempt{Number: 2, Outcome: messaging.OutcomeCompleted})
			return e
		}, func(f findings) []error { return f.toldTwice }},
		"two trials at one position": {func(r *ledger.Records, e []event) []event {
			r.Trials[1].Ended = 3
			return e
		}, func(f findings) []error { return f.toldTwice }},
		"a position that counts a trial twice": {func(r *ledger.Records, e []event) []event {
			r.Status.Position = 5
			return e
		}, func(f findings) []error { return f.toldTwice }},
		"a trial too few": {func(r *ledger.Records, e []event) []event {
			r.Status.Counts.Completed = 1
			r.Status.Position = 3
			return e
		}, func(f findings) []error { return f.lost }},
	} {
		records, events := right()
		var wrong findings
		if wrong.judge(s, records, c.spoil(records, events)); len(c.of(wrong)) == 0 {
			t.Errorf("%s is not found: %v", name, wrong.all())
		}
	}
}
