package coordinator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// measuring is a study whose only trial is claimed by a worker that evaluates it
// until it is told to answer.
type measuring struct {
	*rig
	id      string
	h       *hand
	attempt messaging.AttemptID
	answer  chan float64
}

func newMeasuring(r *rig, c *replica) *measuring {
	r.t.Helper()
	m := &measuring{rig: r, id: r.create(c, "curves", 1, 1).ID, answer: make(chan float64, 1)}
	m.h = r.hand("w", 1, func(*messaging.Assignment) *messaging.Result {
		select {
		case value := <-m.answer:
			return &messaging.Result{Outcome: messaging.OutcomeCompleted, Values: []float64{value}}
		case <-r.t.Context().Done():
			return nil
		}
	})
	t := r.trial(m.id, 1, func(t *record.Trial) bool { return t.State == study.TrialClaimed || t.State == study.TrialRunning })
	m.attempt = named(m.id, &t, 1)
	return m
}

// report publishes steps.
func (m *measuring) report(from, to int64) {
	m.t.Helper()
	for step := from; step <= to; step++ {
		err := m.h.bus.PublishMeasurement(m.ctx(), &messaging.Measurement{
			AttemptID: m.attempt, Worker: m.h.name, Step: step, Metrics: map[string]float64{"loss": 1 / float64(step)}, At: time.Now(),
		})
		if err != nil {
			m.t.Fatal(err)
		}
	}
}

// stored waits until the curve in the ledger ends with a step, and returns its points.
func (m *measuring) stored(last int64) (points []curve.Point) {
	m.t.Helper()
	m.eventually(func() error {
		c, err := m.ledger.Curve(m.t.Context(), m.id, 1)
		if err != nil {
			return err
		}
		if c == nil {
			return fmt.Errorf("no step is stored")
		}
		points = c.Series()[0].Points
		if end := points[len(points)-1].Step; end != last {
			return fmt.Errorf("the last step is %d, not yet %d", end, last)
		}
		return nil
	})
	return points
}

// every checks that no step is missing.
func (m *measuring) every(last int64) {
	m.t.Helper()
	for i, p := range m.stored(last) {
		if p.Step != int64(i+1) || p.Value != 1/float64(p.Step) {
			m.t.Fatalf("point %d is %+v", i, p)
		}
	}
}

func TestALeaderThatDiesInMidCurveLosesNoStep(t *testing.T) {
	r := newRig(t, membus.Options{})
	first := r.leader()
	m := newMeasuring(r, first)
	m.report(1, 40)
	m.stored(40)
	m.report(41, 60) // perhaps read, and not committed
	first.stop()
	m.report(61, 80)
	second := r.leader()
	m.report(81, 100)
	m.every(100)
	m.answer <- 0.5
	m.ends(m.id)
	second.stop()
	m.report(101, 110) // read after the trial and its study have ended, by another leader
	r.leader()
	m.every(110)
}

func TestLongCurvesAreThinned(t *testing.T) {
	r := newRig(t, membus.Options{})
	m := newMeasuring(r, r.leader())
	m.report(1, 2500)
	points := m.stored(2500)
	// Every fourth of 2,500 reports, from the first on, is at most 1,000; every second is not.
	if len(points) != 626 || points[1].Step != 5 || points[625].Step != 2500 {
		t.Errorf("%d points, the second of step %d", len(points), points[1].Step)
	}
}

func TestACancelledTrialKeepsItsValues(t *testing.T) {
	r := newRig(t, membus.Options{})
	c := r.leader()
	m := newMeasuring(r, c)
	m.report(1, 20)
	if err := c.Stop(r.ctx(), m.id, "enough"); err != nil {
		t.Fatal(err)
	}
	m.report(21, 25) // before the worker hears of it
	trial := m.trial(m.id, 1, func(t *record.Trial) bool { return t.State == study.TrialCancelled })
	if m.every(25); trial.State != study.TrialCancelled {
		t.Errorf("the trial is %s", trial.State)
	}
}

func TestADeletedStudyLeavesNoCurve(t *testing.T) {
	r := newRig(t, membus.Options{})
	c := r.leader()
	m := newMeasuring(r, c)
	m.report(1, 100)
	m.stored(100)
	m.report(101, 110)
	if err := c.Delete(r.ctx(), m.id, true); err != nil {
		t.Fatal(err)
	}
	m.report(111, 120)
	r.create(c, "another", 3, 1) // its commit is after all of these
	r.eventually(func() error {
		resp, err := r.etcd.Get(t.Context(), "/fantasia/v1/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		for _, kv := range resp.Kvs {
			if strings.Contains(string(kv.Key), m.id) {
				return fmt.Errorf("%s is left", kv.Key)
			}
		}
		return nil
	})
}

// A leader that is told to stop stores the measurements that it has read.
func TestCurvesAreStoredAtTheEnd(t *testing.T) {
	r := newRig(t, membus.Options{})
	c := r.leader()
	m := newMeasuring(r, c)
	m.report(1, 1)
	m.stored(1)
	m.report(2, 30)
	term := c.term.Load()
	r.eventually(func() error { // the leader has read them all
		read := make(chan int, 1)
		term.inbox.Post(t.Context(), func(context.Context, time.Time) error {
			read <- len(term.studies.Get(m.id).Engine.Curve(1)[0].Points)
			return nil
		})
		if n := <-read; n != 30 {
			return fmt.Errorf("%d steps are read", n)
		}
		return nil
	})
	c.stop()
	stored, err := r.ledger.Curve(r.ctx(), m.id, 1)
	if err != nil || len(stored.Series()[0].Points) != 30 {
		t.Errorf("stored is %+v, %v", stored, err)
	}
}

// Reports alone cause one commit a second, not one per report.
func TestReportsAreCommittedTogether(t *testing.T) {
	r := newRig(t, membus.Options{})
	m := newMeasuring(r, r.leader())
	commits := func() int64 {
		resp, err := r.etcd.Get(t.Context(), "/fantasia/v1/commits/0")
		if err != nil || len(resp.Kvs) != 1 {
			t.Fatal(resp, err)
		}
		return resp.Kvs[0].Version
	}
	r.trial(m.id, 1, func(t *record.Trial) bool { return t.State == study.TrialRunning })
	before, start := commits(), time.Now()
	m.report(1, 500)
	m.every(500)
	if n, seconds := commits()-before, time.Since(start).Seconds(); float64(n) > 2+2*seconds {
		t.Errorf("%d commits in %.1f s", n, seconds)
	}
}
