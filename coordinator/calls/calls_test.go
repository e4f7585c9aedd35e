package calls

import (
	"errors"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/commit"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/coordinator/studies/studiestest"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// callers are calls for the trials of a study, without a leader that commits: one trial may be open,
// and the client holder has it.
type callers struct {
	t       *testing.T
	group   *commit.Group
	studies *studies.Studies
	calls   *Calls
	r       *studies.Study
	now     time.Time
	asks    []commit.Ask // not answered yet
	answers []Answer
}

func newCallers(t *testing.T) *callers {
	t.Helper()
	all, group := studiestest.New(t)
	c := &callers{t: t, group: group, studies: all, calls: New(all, group), now: time.Now()}
	asked := func(s *study.Spec) { s.Trial = study.TrialTemplate{} }
	c.r = studiestest.Start(t, all, studiestest.Definition("team-a", 100, 1, asked), c.now)
	c.call("holder", time.Hour)
	c.suggest()
	c.answer()
	if len(c.answers) != 1 || len(c.answers[0].Trials) != 1 {
		t.Fatalf("the first client is answered %+v, want the only trial that there may be", c.answers)
	}
	return c
}

// call lets a client wait for two trials.
func (c *callers) call(client string, wait time.Duration) {
	c.t.Helper()
	share := quota.Share{Holder: "team", Prefixes: []string{"team-"}, Write: true, Limits: quota.Limits{quota.OpenTrials: 10}}
	a := &Call{Study: c.r, Client: client, Count: 2, Until: c.now.Add(wait), Reply: func(s Answer, err error) {
		if err != nil {
			c.t.Error(err)
		}
		c.answers = append(c.answers, s)
	}}
	if err := errors.Join(c.calls.AdmitCall([]quota.Share{share}, a), c.calls.Add(a, c.now)); err != nil {
		c.t.Fatal(err)
	}
}

// suggest answers what the engine asks of an optimiser.
func (c *callers) suggest() {
	for _, a := range c.commit() {
		c.studies.Step(c.r, engine.Suggested{At: c.now, Ask: a.Ask, Suggestions: []optimizer.Suggestion{{Point: study.Point{"x": 0.5}}}})
	}
}

// answer answers the calls that need not wait.
func (c *callers) answer() {
	c.calls.Answer(c.now)
	c.asks = c.commit()
}

// commit answers the calls, and returns what the engine asks of the optimiser.
func (c *callers) commit() []commit.Ask {
	released, err := c.group.Commit(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	c.group.Reply(nil)
	asks := append(c.asks, released.Asks...)
	c.asks = nil
	return asks
}

// What a call for trials costs the leader's loop does not grow with the calls that wait beside it,
// though it looks how many trials its quota leaves and which calls can be answered.
func TestCallsCostNoMoreBesideOthers(t *testing.T) {
	c := newCallers(t)
	for range 500 {
		c.call("other", time.Hour)
	}
	cost := func(calls int) float64 { // of each of several calls that the holder makes at once
		return testing.AllocsPerRun(5, func() {
			for range calls {
				c.call("holder", time.Hour)
			}
			c.answer()
			c.answers = c.answers[:0]
		}) / float64(calls)
	}
	if one, many := cost(1), cost(200); many > 1.5*one {
		t.Errorf("each of 200 calls allocates %.0f times, a single one %.0f times", many, one)
	}
	if n := len(c.calls.waiting[c.r]); n != 500 {
		t.Errorf("%d calls wait, want the 500 of the other client", n)
	}
}

// When a call ends without trials, another call of its client goes on to wait, and gets the next one.
func TestAnotherCallOfAClientGoesOn(t *testing.T) {
	c := newCallers(t)
	c.call("other", time.Second)
	c.call("other", time.Hour)
	c.now = c.now.Add(time.Minute)
	c.answer()
	if len(c.answers) != 2 || len(c.answers[1].Trials) != 0 || len(c.calls.waiting[c.r]) != 1 {
		t.Fatalf("answered %+v, and %d calls wait; want one without trials, and one that waits", c.answers, len(c.calls.waiting[c.r]))
	}
	c.studies.Step(c.r, engine.Told{At: c.now, Client: "holder", Trial: 1, Outcome: messaging.OutcomeCompleted, Values: study.Values{0.5}})
	c.suggest()
	c.answer()
	if len(c.answers) != 3 || len(c.answers[2].Trials) != 1 {
		t.Errorf("answered %+v; want the next trial", c.answers)
	}
}
