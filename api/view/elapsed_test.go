package view_test

import (
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// clocked is a study whose stored status is that of its last leader, and a true clock. Each leader's own
// clock is off by some time.
type clocked struct {
	t      *testing.T
	spec   record.Study
	engine *engine.Engine
	status record.Status
	trials []record.Trial
	now    time.Time
	off    time.Duration
}

// step lets time pass, and applies an event at the leader's time.
func (c *clocked) step(after time.Duration, event func(at time.Time) engine.Event) {
	c.now = c.now.Add(after)
	c.commit(c.engine.Step(event(c.now.Add(c.off))))
}

func (c *clocked) commit(out engine.Output) {
	if out.Status != nil {
		c.status = *out.Status
	}
	for _, trial := range out.Trials {
		c.trials = append(c.trials[:trial.Number-1], trial) // this test changes only the last one
	}
	if out.Study != nil {
		c.spec = *out.Study
	}
}

// lead lets time pass without a leader. Then another one leads, whose clock is off.
func (c *clocked) lead(after, off time.Duration) {
	c.now, c.off = c.now.Add(after), off
	e, out, err := engine.Load(c.spec, c.status, record.Model{}, c.trials, drive.IDs{}, engine.Settings{Space: celspace.Of}, c.now.Add(off))
	if err != nil {
		c.t.Fatal(err)
	}
	c.engine = e
	c.commit(out)
	c.step(0, tick)
}

// shows fails the test unless somebody with the leader's clock sees that the study has run for some time.
func (c *clocked) shows(when string, want time.Duration) {
	c.t.Helper()
	if got := view.Elapsed(c.status, c.now.Add(c.off)); got != want {
		c.t.Errorf("%s, the study is said to have run for %v, want %v", when, got, want)
	}
}

func tick(at time.Time) engine.Event { return engine.Tick{At: at} }

// The time that is shown is that for which leaders have run the study: while it runs, after pauses and
// failovers, when it has ended, and when an edit makes it go on.
func TestElapsedIsOfTheLeaders(t *testing.T) {
	low, high := 0.0, 1.0
	definition := study.Study{Metadata: study.Metadata{Name: "clocked"}, Spec: study.Spec{
		Objective: study.Objective{Metric: "loss", Direction: study.Minimize}, Pool: study.DefaultPool,
		Parameters: []study.Parameter{{Name: "x", Type: study.Float, Min: &low, Max: &high}},
		Budget:     study.Budget{MaxTrials: 1}, Parallelism: 1,
	}}
	c := &clocked{t: t, spec: record.Study{ID: "id", Definition: definition, Created: begin}, now: begin}
	e, out, err := engine.New(c.spec, drive.IDs{}, engine.Settings{Space: celspace.Of}, begin)
	if err != nil {
		t.Fatal(err)
	}
	c.engine = e
	c.commit(out)
	enqueue := func(at time.Time) engine.Event { return engine.Enqueue{At: at, Point: study.Point{"x": 0.5}} }
	seek := func(at time.Time) engine.Event { return engine.Seek{At: at, Client: "me", Want: 1} }
	c.step(time.Second, enqueue)
	c.step(time.Second, seek)
	c.now = c.now.Add(time.Minute)
	c.shows("while a long trial is evaluated", 62*time.Second)
	c.step(0, tick) // a leader looks at it every minute, so that little is lost with it
	c.lead(3*time.Hour, 0)
	c.shows("after a pause", 62*time.Second)
	c.now = c.now.Add(8 * time.Second)
	c.shows("running again", 70*time.Second)
	c.step(0, seek)
	c.step(0, tick)
	c.lead(time.Hour, -48*time.Hour)
	c.shows("after a failover to a clock that is two days late", 62*time.Second) // nothing was stored for 8 s
	c.step(10*time.Second, func(at time.Time) engine.Event {
		return engine.Told{At: at, Client: "me", Trial: 1, Outcome: "completed", Values: study.Values{1}}
	})
	c.now = c.now.Add(time.Hour)
	c.shows("ended", 72*time.Second)
	if !c.status.State.Terminal() {
		t.Fatalf("the study is %s", c.status.State)
	}
	c.step(time.Hour, func(at time.Time) engine.Event {
		more := c.spec
		more.Definition.Spec.Budget.MaxTrials = 2
		return engine.Update{At: at, Study: more}
	})
	c.shows("as an edit continues it", 72*time.Second)
	c.now = c.now.Add(5 * time.Second)
	c.shows("continued by an edit", 77*time.Second)
}
