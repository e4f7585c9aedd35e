package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// asked makes a study one whose trials clients ask for.
func asked(s *study.Spec) { s.Trial = study.TrialTemplate{} }

// suggest asks for trials and returns their numbers.
func (r *rig) suggest(c *replica, id, client string, count int, wait time.Duration) []int {
	r.t.Helper()
	got, err := c.Suggest(r.ctx(), id, client, count, wait)
	if err != nil {
		r.t.Fatal(err)
	}
	var numbers []int
	for i := range got.Trials {
		numbers = append(numbers, got.Trials[i].Number)
	}
	return numbers
}

// complete tells a value of a trial.
func complete(client string, trial int, value float64) func(time.Time) engine.Event {
	return func(now time.Time) engine.Event {
		return engine.Told{At: now, Client: client, Trial: trial, Outcome: messaging.OutcomeCompleted, Values: study.Values{value}}
	}
}

func TestClientsRunAStudyToItsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	s := r.create(c, "asked", 20, 4, asked)
	var clients sync.WaitGroup
	for _, client := range []string{"a", "b", "c"} {
		clients.Go(func() {
			for {
				got, err := c.Suggest(r.ctx(), s.ID, client, 1, patience)
				if err != nil {
					t.Error(err)
					return
				}
				if got.State.Terminal() {
					return
				}
				for i := range got.Trials {
					n := got.Trials[i].Number
					if _, err := c.Tell(r.ctx(), s.ID, complete(client, n, float64(n))); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	clients.Wait()
	r.ends(s.ID)
	for _, tr := range r.verify(s.ID, 20, 20).Trials {
		if len(tr.Attempts) != 1 || !slices.Contains([]string{"a", "b", "c"}, tr.Attempts[0].Worker) || tr.Values.First() != float64(tr.Number) {
			t.Errorf("trial %d has %v and the attempts %+v", tr.Number, tr.Values, tr.Attempts)
		}
	}
}

// A client that has lost an answer, or was restarted, asks again with its id and gets the
// trials that it holds; others get other trials.
func TestClientGetsItsOwnTrialsBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	s := r.create(c, "asked", 20, 3, asked)
	first := r.suggest(c, s.ID, "a", 2, patience)
	if len(first) != 2 {
		t.Fatalf("got the trials %v, want two", first)
	}
	if again := r.suggest(c, s.ID, "a", 2, patience); !slices.Equal(again, first) {
		t.Errorf("asked again, got the trials %v, want %v", again, first)
	}
	if one := r.suggest(c, s.ID, "a", 1, patience); !slices.Equal(one, first[:1]) {
		t.Errorf("asked for one, got the trials %v, want %v", one, first[:1])
	}
	// The parallelism leaves room for one more.
	if other := r.suggest(c, s.ID, "b", 2, patience); len(other) != 1 || slices.Contains(first, other[0]) {
		t.Errorf("another client got the trials %v, want one that is not in %v", other, first)
	}
	if none := r.suggest(c, s.ID, "c", 1, 50*time.Millisecond); len(none) != 0 {
		t.Errorf("a third client got the trials %v although three are open", none)
	}
	// A waiting client gets the room that another one leaves.
	got := make(chan []int)
	go func() { got <- r.suggest(c, s.ID, "c", 1, patience) }()
	if _, err := c.Tell(r.ctx(), s.ID, complete("a", first[0], 1)); err != nil {
		t.Fatal(err)
	}
	if next := <-got; !slices.Equal(next, []int{4}) {
		t.Errorf("got the trials %v, want trial 4", next)
	}
}

func TestClientTellsTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	s := r.create(c, "asked", 20, 3, asked)
	r.suggest(c, s.ID, "a", 1, patience)
	for range 2 {
		if told, err := c.Tell(r.ctx(), s.ID, complete("a", 1, 0.5)); err != nil || told.State != study.TrialCompleted ||
			told.Values.First() != 0.5 {
			t.Fatalf("told %+v, %v", told, err)
		}
	}
	for what, test := range map[string]struct {
		event func(time.Time) engine.Event
		kind  error
		want  []string
	}{
		"another value":    {complete("a", 1, 0.6), engine.ErrRefused, []string{"trial 1", "COMPLETED", "0.5"}},
		"another client":   {complete("b", 1, 0.5), engine.ErrRefused, []string{"never given to client b", "client a"}},
		"an unknown trial": {complete("a", 7, 0.5), engine.ErrNoTrial, []string{"trial 7"}},
		"no values": {func(now time.Time) engine.Event {
			return engine.Told{At: now, Client: "a", Trial: 1, Outcome: messaging.OutcomeCompleted}
		}, engine.ErrInvalid, []string{"got 0 values"}},
		"pruned": {func(now time.Time) engine.Event {
			return engine.Told{At: now, Client: "a", Trial: 1, Outcome: messaging.OutcomePruned}
		}, engine.ErrRefused, []string{"COMPLETED"}},
	} {
		_, err := c.Tell(r.ctx(), s.ID, test.event)
		if !errors.Is(err, test.kind) {
			t.Errorf("%s: %v, want an error of kind %v", what, err, test.kind)
		} else if err := contains(err.Error(), test.want...); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A client that says nothing about its trial loses it: the trial goes to the next one.
// Heartbeats keep it.
func TestSilentClientLosesItsTrial(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader(func(o *Options) { o.WorkerLease = time.Second })
	s := r.create(c, "asked", 2, 2, asked)
	r.suggest(c, s.ID, "silent", 1, patience)
	r.suggest(c, s.ID, "alive", 1, patience)
	alive := func() {
		list, err := c.Heartbeat(r.ctx(), s.ID, "alive", []HeldAttempt{{Trial: 2}})
		if err != nil || len(list) != 1 || list[0].Do != engine.Continue {
			t.Fatalf("heartbeat: %+v, %v", list, err)
		}
	}
	r.eventually(func() error {
		alive()
		tr, err := r.ledger.Trial(r.ctx(), s.ID, 1)
		if err == nil && tr.Attempts[0].State != study.AttemptLost {
			err = errors.New("the silent client still holds trial 1")
		}
		return err
	})
	if got := r.suggest(c, s.ID, "next", 1, patience); !slices.Equal(got, []int{1}) {
		t.Errorf("the next client got the trials %v, want trial 1", got)
	}
	if list, err := c.Heartbeat(r.ctx(), s.ID, "silent", []HeldAttempt{{Trial: 1}}); err != nil || list[0].Do != engine.Abandon ||
		list[0].Reason == "" {
		t.Errorf("the silent client is told %+v, %v", list, err)
	}
	alive()
	if tr := r.trial(s.ID, 2, func(tr *record.Trial) bool { return tr.State == study.TrialRunning }); len(tr.Attempts) != 1 {
		t.Errorf("the trial of the client that sent heartbeats has the attempts %+v", tr.Attempts)
	}
}

// A leader that takes over knows which client holds which trial, and what was measured.
func TestClientsSurviveTheirLeader(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	a := r.leader()
	s := r.create(a, "asked", 4, 2, asked)
	r.suggest(a, s.ID, "a", 1, patience)
	for step := range int64(3) {
		if next, err := a.Measure(r.ctx(), s.ID, "a", HeldAttempt{Trial: 1},
			[]Report{{Step: step, Metrics: map[string]float64{"loss": float64(10 - step)}}}); err != nil || next.Do != engine.Continue {
			t.Fatalf("measure: %+v, %v", next, err)
		}
	}
	a.stop()
	if _, err := a.Suggest(r.ctx(), s.ID, "a", 1, patience); !errors.Is(err, ErrNotLeader) {
		t.Errorf("asked a replica that does not lead: %v", err)
	}
	b := r.leader(func(o *Options) { o.HandBack = true })
	if got := r.suggest(b, s.ID, "a", 1, patience); !slices.Equal(got, []int{1}) {
		t.Fatalf("after the failover the client got the trials %v, want its trial 1", got)
	}
	for step := range int64(4) { // the first three again
		if _, err := b.Measure(r.ctx(), s.ID, "a", HeldAttempt{Trial: 1},
			[]Report{{Step: step, Metrics: map[string]float64{"loss": float64(10 - step)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Measure(r.ctx(), s.ID, "a", HeldAttempt{Trial: 1},
		[]Report{{Step: 3, Metrics: map[string]float64{"loss": 1}}}); !errors.Is(err,
		engine.ErrRefused) {
		t.Errorf("another value at a step: %v", err)
	}
	if curve, err := r.ledger.Curve(r.ctx(), s.ID, 1); err != nil || len(curve.Series()) != 1 || len(curve.Series()[0].Points) != 4 {
		t.Errorf("the curve is %+v, %v, want 4 points", curve, err)
	}
	if _, err := b.Tell(r.ctx(), s.ID, complete("a", 1, 7)); err != nil {
		t.Error(err)
	}
}

func TestClientsOfAStudyWithACommand(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	s := r.create(c, "commanded", 4, 2)
	if _, err := c.Suggest(r.ctx(), s.ID, "a", 1, patience); !errors.Is(err, engine.ErrRefused) ||
		!strings.Contains(err.Error(), "spec.trial.command") {
		t.Errorf("asked for a trial: %v", err)
	}
	if _, err := c.Suggest(r.ctx(), "nothing", "a", 1, patience); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("asked an unknown study: %v", err)
	}
	if _, err := c.Tell(r.ctx(), s.ID, complete("a", 1, 0.5)); !errors.Is(err, engine.ErrRefused) {
		t.Errorf("told a value: %v", err)
	}
}

// A client of a study that learns its parameters evaluates other points than were suggested,
// adds a parameter that it has found, and another leader goes on from there.
func TestClientsDeclareParameters(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	a := r.leader()
	learns := func(s *study.Spec) { s.LearnParameters = true }
	s := r.create(a, "learns", 20, 4, asked, learns)
	r.suggest(a, s.ID, "a", 3, patience)
	told := func(trial int, p study.Point) (record.Trial, error) {
		return a.Tell(r.ctx(), s.ID, func(now time.Time) engine.Event {
			return engine.Told{At: now, Client: "a", Trial: trial, Outcome: messaging.OutcomeCompleted, Values: study.Values{1}, Point: p}
		})
	}
	if _, err := told(1, study.Point{"x": 7.0}); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("a point outside of the space: %v", err)
	}
	first, err := told(1, study.Point{"x": 0.25})
	if err != nil || first.Point["x"] != 0.25 || first.Suggested["x"] == 0.25 || first.Origin() != optimizer.SourceRequested {
		t.Errorf("another point: %v, %+v", err, first)
	}
	wider := newStudy("learns", 20, 4, asked, learns)
	wider.Spec.Parameters = append(wider.Spec.Parameters, study.Parameter{Name: "y", Type: study.Bool})
	if err := a.Update(r.ctx(), s.ID, wider, 2); !errors.Is(err, ErrIncompatible) ||
		!strings.Contains(err.Error(), "version 1 by now, not 2") {
		t.Errorf("made from another version: %v", err)
	}
	if err := a.Update(r.ctx(), s.ID, wider, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := told(2, study.Point{"x": 0.5}); !errors.Is(err, engine.ErrInvalid) ||
		!strings.Contains(err.Error(), "parameter y is missing") {
		t.Errorf("a point without the new parameter: %v", err)
	}
	if _, err := told(2, study.Point{"x": 0.5, "y": true}); err != nil {
		t.Fatal(err)
	}
	a.stop()
	a = r.leader(func(o *Options) { o.HandBack = true })
	if _, err := told(3, study.Point{"x": 0.75, "y": false}); err != nil {
		t.Fatal(err)
	}
	kept, err := r.ledger.LoadStudy(r.ctx(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []study.Point{{"x": 0.25}, {"x": 0.5, "y": true}, {"x": 0.75, "y": false}}
	for i, tr := range kept.Trials {
		if diff := cmp.Diff(want[i], tr.Point); diff != "" || tr.Suggested == nil {
			t.Errorf("trial %d was suggested %v; its point (-want +got):\n%s", tr.Number, tr.Suggested, diff)
		}
	}
}

// Several reports in one call are kept up to one that is refused.
func TestClientReportsSeveralSteps(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	s := r.create(c, "asked", 5, 1, asked)
	r.suggest(c, s.ID, "a", 1, patience)
	report := func(step int64, loss float64) Report {
		return Report{Step: step, Metrics: map[string]float64{"loss": loss}}
	}
	if _, err := c.Measure(r.ctx(), s.ID, "a", HeldAttempt{Trial: 1}, []Report{report(1, 4), report(2, 3)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Measure(r.ctx(), s.ID, "a", HeldAttempt{Trial: 1}, []Report{report(3, 2), report(2, 9), report(4, 1)}); !errors.Is(err,
		engine.ErrRefused) {
		t.Errorf("another value at a step: %v", err)
	}
	if _, err := c.Measure(r.ctx(), s.ID, "a", HeldAttempt{Trial: 1}, []Report{report(5, 1)}); err != nil { // all before it is durable, too
		t.Fatal(err)
	}
	curve, err := r.ledger.Curve(r.ctx(), s.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	var steps []int64
	for _, p := range curve.Series()[0].Points {
		steps = append(steps, p.Step)
	}
	if !slices.Equal(steps, []int64{1, 2, 3, 5}) {
		t.Errorf("kept the steps %v, want 1, 2, 3 and 5", steps)
	}
}

// What a curve leaves out is said in the answer: a step that does not grow, a metric beyond those that it
// keeps. Values of the same reports that are sent again are not left out. The curve of a trial's next attempt
// is another one: its client may report other values at the same steps.
func TestReportsThatAreLeftOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	c := r.leader()
	s := r.create(c, "asked", 20, 1, asked)
	r.suggest(c, s.ID, "a", 1, patience)
	report := func(step int64, loss float64) Report { return Report{step, map[string]float64{"loss": loss}} }
	measure := func(client string, reports ...Report) []string {
		t.Helper()
		next, err := c.Measure(r.ctx(), s.ID, client, HeldAttempt{Trial: 1}, reports)
		if err != nil {
			t.Fatal(err)
		}
		return next.Ignored
	}
	if got := measure("a", report(1, 4), report(5, 3)); got != nil {
		t.Errorf("growing steps: %q", got)
	}
	if got := measure("a", report(1, 4), report(5, 3)); got != nil {
		t.Errorf("the same ones again: %q", got)
	}
	want := []string{"loss at step 3: step 5 was reported before it, and steps must grow"}
	if got := measure("a", report(3, 2), report(6, 1)); !slices.Equal(got, want) {
		t.Errorf("a step in between: %q, want %q", got, want)
	}
	late := Report{2, map[string]float64{}}
	for i := range 100 {
		late.Metrics[fmt.Sprintf("m%02d", i)] = 1
	}
	got := measure("a", late)
	if len(got) != 10 || !strings.Contains(got[0], "at step 2: at most 64 metrics") || got[9] != "and 28 more values" {
		t.Errorf("37 metrics too many: %q", got)
	}
	if _, err := c.Tell(r.ctx(), s.ID, func(now time.Time) engine.Event {
		return engine.Told{At: now, Client: "a", Trial: 1, Outcome: messaging.OutcomeHandedBack}
	}); err != nil {
		t.Fatal(err)
	}
	if next := r.suggest(c, s.ID, "b", 1, patience); !slices.Equal(next, []int{1}) {
		t.Fatalf("the next client got %v, want trial 1", next)
	}
	if got := measure("b", report(1, 40), report(2, 30)); got != nil {
		t.Errorf("the next attempt: %q", got)
	}
}
