package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// checker holds what must be true. It is safe for concurrent use.
type checker struct {
	w *world

	mu        sync.Mutex
	failures  int
	began     map[string]string    // who evaluated an attempt, by its nonce
	values    map[string][]float64 // what an evaluation has found, by the attempt's nonce
	committed map[string]bool      // nonces of the attempts that the ledger has, or had before it was replaced
	replaced  time.Time            // when that was last
	lenient   bool                 // claims were lost, so attempts may run twice
	epoch     int64
	knowledge
}

// knowledge is what the checks know of the ledger.
type knowledge struct {
	trials   map[string]map[int]record.Trial
	statuses map[string]record.Status
	told     map[string]map[int]float64 // of trials that clients were told to be completed, by study's name
}

// clone returns a copy. Records are not changed.
func (k knowledge) clone() knowledge {
	c := knowledge{map[string]map[int]record.Trial{}, maps.Clone(k.statuses), map[string]map[int]float64{}}
	for id, trials := range k.trials {
		c.trials[id] = maps.Clone(trials)
	}
	for name, values := range k.told {
		c.told[name] = maps.Clone(values)
	}
	return c
}

func newChecker(w *world) *checker {
	return &checker{
		w: w, began: map[string]string{}, values: map[string][]float64{}, committed: map[string]bool{},
		knowledge: knowledge{map[string]map[int]record.Trial{}, map[string]record.Status{}, map[string]map[int]float64{}},
	}
}

// recall returns what is known now.
func (c *checker) recall() knowledge {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.knowledge.clone()
}

// stored notes the attempts of a trial that the ledger gets.
func (c *checker) stored(key string, value []byte) {
	if !strings.HasPrefix(key, ledger.DefaultPrefix+"studies/") || !strings.Contains(key, "/trials/") {
		return
	}
	var t struct {
		Attempts []struct {
			Nonce string `json:"nonce"`
		} `json:"attempts"`
	}
	value, err := seal.Open(key, value)
	if err == nil {
		err = json.Unmarshal(value, &t)
	}
	if err != nil {
		c.fail("%s is %q: %v", key, value, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range t.Attempts {
		c.committed[a.Nonce] = true
	}
}

// restored says that the ledger was replaced by one of which this was known.
func (c *checker) restored(k knowledge) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.knowledge, c.epoch, c.replaced = k.clone(), 0, time.Now()
}

// fail reports a violation, and the first few after it.
func (c *checker) fail(format string, args ...any) {
	c.mu.Lock()
	c.failures++
	few := c.failures <= 5
	c.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	c.w.logs.note("VIOLATION: " + text)
	if few {
		c.w.t.Errorf("seed %d: %s", c.w.seed, text)
	}
}

// forgive says that claims were lost.
func (c *checker) forgive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lenient = true
}

// begin notes that a worker evaluates an attempt: as long as the broker keeps its claims, once.
func (c *checker) begin(worker string, id messaging.AttemptID) {
	if other, twice, lenient := c.give(worker, id); twice && !lenient {
		c.fail("%s is evaluated by %s, and was by %s", name(id), worker, other)
	}
}

// hold notes that a client was given an attempt. It may ask again for what it has.
func (c *checker) hold(client string, id messaging.AttemptID) {
	if other, twice, lenient := c.give(client, id); twice && !lenient && other != client {
		c.fail("%s is given to %s, and was to %s", name(id), client, other)
	}
}

// give notes who has an attempt, which the ledger must have. It returns who had it before, and
// whether claims were lost.
func (c *checker) give(who string, id messaging.AttemptID) (other string, twice, lenient bool) {
	c.mu.Lock()
	other, twice = c.began[id.Nonce]
	c.began[id.Nonce] = who
	lenient, committed := c.lenient, c.committed[id.Nonce]
	c.mu.Unlock()
	if !committed {
		c.fail("%s is evaluated by %s, and not in the ledger", name(id), who)
	}
	return other, twice, lenient
}

// found notes what an evaluation has found.
func (c *checker) found(id messaging.AttemptID, value float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[id.Nonce] = append(c.values[id.Nonce], value)
}

// completed notes that a client was told that a trial is completed.
func (c *checker) completed(name string, value float64, asked time.Time, t *record.Trial) {
	if t.State != study.TrialCompleted || t.Values.First() != value {
		c.fail("a client has told the value %g of trial %d of %s, and was answered that it is %s with %v", value, t.Number, name, t.State,
			t.Values)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if asked.After(c.replaced) {
		if c.told[name] == nil {
			c.told[name] = map[int]float64{}
		}
		c.told[name][t.Number] = value
	}
}

// follow checks each change of the ledger.
func (c *checker) follow(ctx context.Context, l *ledger.Ledger) {
	err := l.Watch(ctx, "", 0, func(change ledger.Change) error {
		switch {
		case change.Trial != nil:
			c.trial(change.ID, change.Trial)
		case change.Status != nil:
			c.status(change.ID, change.Status)
		case change.Deleted:
			c.fail("study %s is gone", change.ID)
		}
		return nil
	})
	if ctx.Err() == nil {
		c.fail("the watch of the ledger has ended: %v", err)
	}
}

// trial checks a record of a trial against the one before it.
func (c *checker) trial(id string, t *record.Trial) {
	c.mu.Lock()
	if c.trials[id] == nil {
		c.trials[id] = map[int]record.Trial{}
	}
	before, known := c.trials[id][t.Number]
	c.trials[id][t.Number] = *t
	c.mu.Unlock()
	if known {
		c.change(id, &before, t)
	}
	open := 0
	for _, a := range t.Attempts {
		if a.State == study.AttemptOpen {
			open++
		}
		if a.State != study.AttemptSucceeded || t.State != study.TrialCompleted {
			continue
		}
		attempt := messaging.AttemptID{Study: id, Trial: t.Number, Attempt: a.Number, Nonce: a.Nonce}
		c.mu.Lock()
		found := slices.Contains(c.values[attempt.Nonce], t.Values.First())
		c.mu.Unlock()
		if !found || !slices.Equal(t.Values, valuesOf(len(t.Values), t.Values.First())) || !keptMemory(t) {
			c.fail("trial %d of %s has the values %v and the metrics %v, which %s has not found", t.Number, id, t.Values, t.Metrics, name(attempt))
		}
	}
	if open > 1 || open == 1 && t.State.Terminal() {
		c.fail("trial %d of %s is %s with %d open attempts", t.Number, id, t.State, open)
	}
}

// change checks one step of a trial: an end stays, and so do attempts.
func (c *checker) change(id string, before, after *record.Trial) {
	if before.State.Terminal() && !bytes.Equal(encode(before), encode(after)) {
		c.fail("trial %d of %s was %s and has changed:\n%s\n%s", after.Number, id, before.State, encode(before), encode(after))
	}
	if len(after.Attempts) < len(before.Attempts) {
		c.fail("trial %d of %s has lost an attempt", after.Number, id)
		return
	}
	for i := range before.Attempts {
		a, b := &before.Attempts[i], &after.Attempts[i]
		// The first valid result wins, also one of a worker whose claim was lost.
		answered := b.State == study.AttemptSucceeded && after.State.Terminal()
		if a.Nonce != b.Nonce || a.Worker != "" && a.Worker != b.Worker && !answered {
			c.fail("attempt %d of trial %d of %s was of %s (%s) and is of %s (%s)", a.Number, after.Number, id, a.Worker, a.Nonce, b.Worker, b.Nonce)
		}
	}
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// status checks a study's status against the one before it.
func (c *checker) status(id string, s *record.Status) {
	c.mu.Lock()
	before, known := c.statuses[id]
	c.statuses[id] = *s
	c.mu.Unlock()
	if !known {
		return
	}
	if s.Position < before.Position || s.Trials < before.Trials {
		c.fail("study %s went back from position %d to %d, from %d trials to %d", id, before.Position, s.Position, before.Trials, s.Trials)
	}
	if before.State.Terminal() && s.State != before.State {
		c.fail("study %s was %s and is %s", id, before.State, s.State)
	}
}

// commits checks that each commit, from a revision on, is of whoever holds the leader's key
// at that moment.
func (c *checker) commits(ctx context.Context, client *clientv3.Client, l *ledger.Ledger, revision int64) {
	dir := ledger.DefaultPrefix + "commits/"
	for ctx.Err() == nil {
		for resp := range client.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(revision)) {
			revision = max(revision, resp.CompactRevision)
			for _, e := range resp.Events {
				revision = e.Kv.ModRevision + 1
				c.commit(ctx, client, l, e.Kv)
			}
		}
	}
}

func (c *checker) commit(ctx context.Context, client *clientv3.Client, l *ledger.Ledger, kv *mvccpb.KeyValue) {
	var commit struct {
		Epoch int64 `json:"epoch"`
	}
	raw, err := seal.Open(string(kv.Key), kv.Value)
	if err == nil {
		err = json.Unmarshal(raw, &commit)
	}
	if err != nil {
		c.fail("a commit is %q: %v", kv.Value, err)
		return
	}
	if commit.Epoch < c.epoch {
		c.fail("a commit of epoch %d comes after one of %d", commit.Epoch, c.epoch)
	}
	c.epoch = max(c.epoch, commit.Epoch)
	resp, err := client.Get(ctx, l.LeaderKey(), clientv3.WithRev(kv.ModRevision))
	if err != nil {
		return // it was compacted, or etcd is away
	}
	if len(resp.Kvs) != 1 || resp.Kvs[0].CreateRevision != commit.Epoch {
		c.fail("a commit of epoch %d is stored while the leader's key is %v", commit.Epoch, resp.Kvs)
	}
}

// final checks the ledger at the end.
func (c *checker) final(l *ledger.Ledger) {
	for _, defined := range c.w.studies {
		name := defined.Metadata.Name
		id, err := l.ID(c.w.t.Context(), name)
		if err != nil {
			continue // reported as one that has not ended
		}
		s, err := l.LoadStudy(c.w.t.Context(), id)
		if err != nil {
			c.fail("study %s: %v", name, err)
			continue
		}
		c.study(s)
		c.promotions(s)
		c.answers(s)
		c.front(s)
		c.replay(s)
	}
}

// promotions checks which trials of a study with a fidelity were promoted.
func (c *checker) promotions(s *ledger.Records) {
	if !hasFidelity(&s.Study.Definition) || s.Status.Counts.Cancelled > 0 {
		return
	}
	if err := testcluster.Promotions(s.Trials, levels, reduction); err != nil {
		c.fail("study %s: %v", s.Study.ID, err)
	}
}

// answers checks that the ledger has what clients were told.
func (c *checker) answers(s *ledger.Records) {
	for number, value := range c.recall().told[s.Study.Definition.Metadata.Name] {
		if number > len(s.Trials) {
			c.fail("trial %d of %s, which a client was told to be completed, is not there", number, s.Study.ID)
		} else if t := &s.Trials[number-1]; t.State != study.TrialCompleted || t.Values.First() != value {
			c.fail("trial %d of %s is %s with %v; a client was told that it is completed with %g", number, s.Study.ID, t.State, t.Values, value)
		}
	}
}

func (c *checker) study(s *ledger.Records) {
	id, counts, budget := s.Study.ID, s.Status.Counts, s.Study.Definition.Spec.Budget.MaxTrials
	ended, used := 0, map[int64]int{}
	for i := range s.Trials {
		t := &s.Trials[i]
		if t.State.Terminal() && t.State != study.TrialCancelled {
			ended++
		}
		for _, p := range []int64{t.Created, t.Ended} {
			if other, twice := used[p]; p != 0 && twice {
				c.fail("trials %d and %d of %s share position %d", other, t.Number, id, p)
			}
			used[p] = t.Number
		}
	}
	if len(s.Trials) != s.Status.Trials || ended != counts.Ended() {
		c.fail("study %s has %d trials, of which %d have ended, and its status says %d and %+v", id, len(s.Trials), ended, s.Status.Trials,
			counts)
	}
	switch {
	case !s.Status.State.Terminal():
	case counts.Open() != 0:
		c.fail("study %s is %s with %d open trials", id, s.Status.State, counts.Open())
	case s.Status.State == study.Completed && ended != budget:
		c.fail("study %s is completed after %d trials; its budget is %d", id, ended, budget)
	case s.Status.State == study.Failed && ended > budget:
		c.fail("study %s has failed after %d trials; its budget is %d", id, ended, budget)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var missed []string
	for i := range s.Trials {
		t := &s.Trials[i]
		if watched := c.trials[id][t.Number]; !bytes.Equal(encode(&watched), encode(t)) {
			missed = append(missed, fmt.Sprint(t.Number))
		}
	}
	if len(missed) > 0 {
		c.w.t.Errorf("seed %d: a watch of study %s has missed changes of the trials %s", c.w.seed, id, strings.Join(missed, ", "))
	}
}
