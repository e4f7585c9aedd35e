package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/study"
)

// team is a share of the studies that begin with team-.
func team(l quota.Limits) quota.Share {
	return quota.Share{Holder: "team", Prefixes: []string{"team-"}, Write: true, Limits: l}
}

// bounded is a context of calls that a quota bounds.
func (r *rig) bounded(l quota.Limits) context.Context {
	return quota.With(r.ctx(), []quota.Share{team(l)})
}

// refuses fails the test unless an error is of a quota, with what is used of it.
func (r *rig) refuses(err error, name quota.Name, used int64) {
	r.t.Helper()
	full, ok := errors.AsType[*quota.Exceeded](err)
	if !ok || full.Name != name || full.Used != used {
		r.t.Errorf("got %v, want an error of the quota %s of which %d are used", err, name, used)
	}
}

// used returns what the leader counts.
func (r *rig) used(c *replica) quota.Use {
	r.t.Helper()
	all, err := c.Used(r.ctx(), []quota.Share{team(nil)})
	if err != nil {
		r.t.Fatal(err)
	}
	return all[0]
}

// The number of studies and their bytes hold for a team, ended studies included, also after a change of
// leader, which reads only the heads of ended studies. Other teams go on, and so does what the team has.
func TestQuotasOfStudies(t *testing.T) {
	r := newRig(t, membus.Options{})
	c := r.leader()
	ended, running := r.create(c, "team-ended", 5, 1), r.create(c, "team-running", 5, 1)
	r.create(c, "other", 5, 1)
	if err := c.Stop(r.ctx(), ended.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	r.ends(ended.ID)
	size := ledger.Size(ended) + ledger.Size(running)
	want := quota.Use{quota.Studies: 2, quota.StudyBytes: size, quota.OpenTrials: 1}
	for _, when := range []string{"first leader", "second leader"} {
		used := r.used(c)
		delete(used, quota.TrialBytes) // TestQuotaOfTrialBytes
		if diff := cmp.Diff(want, used); diff != "" {
			t.Errorf("%s: used (-want +got):\n%s", when, diff)
		}
		_, err := c.Create(r.bounded(quota.Limits{quota.Studies: 2}), newStudy("team-new", 1, 1))
		r.refuses(err, quota.Studies, 2)
		_, err = c.Create(r.bounded(quota.Limits{quota.StudyBytes: size + 10}), newStudy("team-new", 1, 1))
		r.refuses(err, quota.StudyBytes, size)
		larger := newStudy("team-running", 5, 1)
		larger.Metadata.Labels = map[string]string{"a": "b"}
		r.refuses(c.Update(r.bounded(quota.Limits{quota.StudyBytes: size}), running.ID, larger, 0), quota.StudyBytes, size)
		if err := c.Update(r.bounded(quota.Limits{quota.Studies: 1, quota.StudyBytes: 1}), running.ID, newStudy("team-running", 5, 1),
			0); err != nil {
			t.Errorf("%s: a change that adds nothing: %v", when, err)
		}
		if _, err := c.Create(r.bounded(quota.Limits{quota.Studies: 2}), newStudy("another"+when[:1], 1, 1)); err != nil {
			t.Errorf("%s: a study of nobody's quota: %v", when, err)
		}
		if when == "first leader" {
			c.stop()
			c = r.leader()
		}
	}
	if err := c.Delete(r.ctx(), ended.ID, false); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(r.bounded(quota.Limits{quota.Studies: 2}), newStudy("team-new", 1, 1)); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}

// Studies with a command count with what they may have evaluated at once, and others with the trials that
// clients hold or wait for.
func TestQuotaOfOpenTrials(t *testing.T) {
	r := newRig(t, membus.Options{})
	c := r.leader(func(o *Options) { o.WorkerLease = time.Minute })
	r.create(c, "team-works", 20, 4)
	asks, other := r.create(c, "team-asks", 20, 10, asked), r.create(c, "other", 20, 4, asked)
	limits := quota.Limits{quota.OpenTrials: 6}
	suggest := func(id, client string, count int) error {
		_, err := c.Suggest(r.bounded(limits), id, client, count, patience)
		return err
	}
	if err := suggest(asks.ID, "a", 2); err != nil {
		t.Fatal(err)
	}
	if used := r.used(c)[quota.OpenTrials]; used != 6 {
		t.Fatalf("%d open trials, want 4 of the study with a command and 2 of client a", used)
	}
	r.refuses(suggest(asks.ID, "b", 1), quota.OpenTrials, 6)
	_, err := c.Create(r.bounded(limits), newStudy("team-new", 1, 1))
	r.refuses(err, quota.OpenTrials, 6)
	r.refuses(c.Update(r.bounded(limits), "team-works", newStudy("team-works", 20, 5), 0), quota.OpenTrials, 6)
	enqueue := func(request string) error {
		_, err := c.Tell(r.bounded(limits), asks.ID, func(now time.Time) engine.Event {
			return engine.Enqueue{At: now, Point: study.Point{"x": 0.5}, RequestID: request}
		})
		return err
	}
	r.refuses(enqueue("one"), quota.OpenTrials, 6)
	if err := errors.Join(suggest(asks.ID, "a", 2), suggest(other.ID, "a", 4)); err != nil {
		t.Errorf("what the client holds already, and another team's study: %v", err)
	}
	if _, err := c.Tell(r.bounded(limits), asks.ID, complete("a", 1, 7)); err != nil {
		t.Errorf("a result: %v", err)
	}
	if err := enqueue("one"); err != nil {
		t.Errorf("once a trial has ended: %v", err)
	}
	if err := errors.Join(enqueue("one"), suggest(asks.ID, "b", 1)); err != nil {
		t.Errorf("a repeated request, and the trial that waits for a client: %v", err)
	}
	if err := c.Update(r.bounded(limits), "team-works", newStudy("team-works", 20, 3), 0); err != nil {
		t.Errorf("a change to fewer: %v", err)
	}
}

// Calls that wait for trials count before they have them.
func TestWaitingCallsCountAsOpenTrials(t *testing.T) {
	r := newRig(t, membus.Options{})
	c := r.leader(func(o *Options) { o.WorkerLease = time.Minute })
	asks := r.create(c, "team-asks", 50, 50, asked)
	limits := quota.Limits{quota.OpenTrials: 3}
	const callers = 12
	errs := make(chan error, callers)
	for i := range callers {
		ctx := r.bounded(limits)
		go func() {
			_, err := c.Suggest(ctx, asks.ID, fmt.Sprint("client-", i), 1, patience)
			errs <- err
		}()
	}
	admitted := 0
	for range callers {
		if err := <-errs; err == nil {
			admitted++
		} else if full := new(quota.Exceeded); !errors.As(err, &full) {
			t.Error(err)
		}
	}
	if admitted != 3 {
		t.Errorf("%d of %d clients were given trials, want 3", admitted, callers)
	}
}

// What callers store with trials counts in bytes, whichever call stores it and also for the next leader: points,
// notes, labels, attributes and reports. What adds nothing goes on, and so do results.
func TestQuotaOfTrialBytes(t *testing.T) {
	r := newRig(t, membus.Options{})
	c := r.leader(func(o *Options) { o.WorkerLease = time.Minute })
	asks := r.create(c, "team-asks", 100, 10, asked)
	if _, err := c.Suggest(r.ctx(), asks.ID, "a", 1, patience); err != nil {
		t.Fatal(err)
	}
	note := strings.Repeat("n", 3000)
	tell := func(l quota.Limits, ev engine.Event) error {
		_, err := c.Tell(r.bounded(l), asks.ID, func(time.Time) engine.Event { return ev })
		return err
	}
	enqueue := func(request string) engine.Event {
		return engine.Enqueue{At: time.Now(), Point: study.Point{"x": 0.5}, RequestID: request, Remarks: engine.Remarks{Note: note}}
	}
	before := r.used(c)[quota.TrialBytes]
	if err := tell(quota.Limits{quota.TrialBytes: before + 5000}, enqueue("one")); err != nil {
		t.Fatal(err)
	}
	used := r.used(c)[quota.TrialBytes]
	if used < before+3000 || used > before+5000 {
		t.Fatalf("a queued point with a note of 3,000 bytes counts as %d bytes", used-before)
	}
	for _, when := range []string{"first leader", "second leader"} {
		limits := quota.Limits{quota.TrialBytes: used}
		longer, shorter := note+"n", "short"
		for name, ev := range map[string]engine.Event{
			"queued":     enqueue("two"),
			"added":      engine.Add{At: time.Now(), Point: study.Point{"x": 0.25}, Values: study.Values{1}},
			"note":       engine.Annotate{At: time.Now(), Trial: 2, Note: &longer},
			"label":      engine.Annotate{At: time.Now(), Trial: 1, Labels: map[string]string{"a": "b"}},
			"attributes": engine.Annotate{At: time.Now(), Trial: 1, Attributes: map[string]any{"a": "b"}},
		} {
			t.Log(when, name)
			r.refuses(tell(limits, ev), quota.TrialBytes, used)
		}
		_, err := c.Measure(r.bounded(limits), asks.ID, "a", HeldAttempt{Trial: 1}, []Report{{Step: 1, Metrics: map[string]float64{"loss": 1}}})
		r.refuses(err, quota.TrialBytes, used)
		_, err = c.Suggest(r.bounded(limits), asks.ID, "b", 5, patience) // the queued one and four others
		r.refuses(err, quota.TrialBytes, used)
		if err := tell(limits, enqueue("one")); err != nil {
			t.Errorf("%s: a request that is repeated: %v", when, err)
		}
		if when == "second leader" {
			if err := tell(limits, engine.Annotate{At: time.Now(), Trial: 2, Note: &shorter}); err != nil {
				t.Errorf("a shorter note: %v", err)
			}
			if now := r.used(c)[quota.TrialBytes]; now > used-2900 {
				t.Errorf("%d bytes are used after the note was shortened, and %d before", now, used)
			}
			if _, err := c.Tell(r.bounded(quota.Limits{quota.TrialBytes: 1}), asks.ID, complete("a", 1, 7)); err != nil {
				t.Errorf("a result: %v", err)
			}
			return
		}
		c.stop()
		c = r.leader(func(o *Options) { o.WorkerLease = time.Minute })
	}
}
