package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// checker holds the invariants of a schedule.
type checker struct {
	err      error
	trials   map[int]record.Trial // as last seen in an Output
	position int64
	commits  int
	folded   map[*messaging.Result]bool // by a commit
	earlier  []optimizer.Earlier        // what the optimiser is told of earlier studies
}

func newChecker() checker {
	return checker{trials: map[int]record.Trial{}, folded: map[*messaging.Result]bool{}}
}

// fail keeps the first violation.
func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", errViolation, fmt.Sprintf(format, args...))
	}
}

// leads forgets what an earlier leader did and did not commit.
func (c *checker) leads(w *world) {
	c.trials = map[int]record.Trial{}
	c.position = 0
	for number, data := range w.led.trials {
		var t record.Trial
		decode(data, &t)
		c.trials[number] = t
		c.position = max(c.position, t.Created, t.Ended)
	}
}

// receipt: every result that is read gets one receipt, its own; what was applied
// once is not applied again.
func (c *checker) receipt(r *messaging.Result, out *Output) {
	if len(out.Receipts) != 1 || out.Receipts[0].Attempt != r.AttemptID || out.Receipts[0].Worker != r.Worker {
		c.fail("result of %s for %s: receipts %v", name(r.AttemptID), r.Worker, out.Receipts)
		return
	}
	if c.folded[r] && out.Receipts[0].Disposition == messaging.Folded {
		c.fail("the result of %s for %s is folded twice", name(r.AttemptID), r.Worker)
	}
}

// output checks what a step asks for, before it is committed.
func (c *checker) output(w *world, out *Output) {
	e := w.e
	budget, parallelism := e.spec.Definition.Spec.Budget.MaxTrials, e.spec.parallelism()
	s := e.Status()
	if n := s.Counts.Ended() + s.Counts.Added + s.Counts.Cancelled + s.Counts.Open(); n != s.Trials || n != len(e.trials.all) {
		c.fail("%d trials made, %d counted", s.Trials, n)
	}
	created, opened := false, false
	var first []int
	for i := range out.Trials {
		t := &out.Trials[i]
		before, known := c.trials[t.Number]
		created = created || !known && t.Source != optimizer.SourceAdded && !toEnd(t)
		opened = opened || !known && !byUser(t)
		if !known {
			c.inTime(w, t)
		}
		if len(before.Attempts) == 0 && len(t.Attempts) > 0 {
			first = append(first, t.Number)
		}
		if known {
			c.change(before, *t)
		}
		c.positions(t)
		c.attempts(w, t)
		c.stopped(w, t)
		c.trials[t.Number] = *t
	}
	c.promotions(w, out)
	c.opening(w, first)
	if n := evaluated(c.trials); created && budget > 0 && n+s.Counts.Open() > budget {
		c.fail("%d trials evaluated and %d open, the budget is %d", n, s.Counts.Open(), budget)
	}
	if n := s.Counts.Open() - len(e.trials.wishes); opened && n > parallelism {
		c.fail("%d trials open, parallelism is %d", n, parallelism)
	}
	if s.Position < c.position {
		c.fail("position went from %d to %d", c.position, s.Position)
	}
	c.position = s.Position
	if state, want := e.Model().State, stateOf(e.spec.space); state != nil && !bytes.Equal(state, want) {
		c.fail("the optimiser's state is of the space %s, and the study's is %s", state, want)
	}
	if t := c.trials[s.Recommended.Trial]; t.Number > 0 && !(within(e, t) && isWithin(&e.spec.Definition.Spec, &t)) {
		c.fail("trial %d is recommended and outside of the space or of a limit", t.Number)
	}
	if c.worthless(w) && !s.State.Terminal() {
		c.fail("the study goes on, and more trials are not worth it: %+v", s.Gain)
	}
	if out.Ask != nil && w.asked != nil {
		c.fail("a second request while one is under way")
	}
	if s.State.Terminal() && (len(out.Publish) > 0 || out.Ask != nil) {
		c.fail("an ended study publishes or asks: %v", describe(*out))
	}
	for _, a := range out.Cancels {
		if t := c.trials[a.Attempt.Trial]; a.Prune && t.Stopped == nil {
			c.fail("%s is told to stop early, which is not decided", name(a.Attempt))
		}
	}
	for _, a := range out.Publish {
		t := c.trials[a.Trial]
		if last := t.Last(); last == nil || last.Nonce != a.Nonce || last.State != study.AttemptOpen || last.Worker != "" {
			c.fail("publishes %s, which is %s", name(a.AttemptID), t.State)
		}
	}
}

// evaluated is how many trials use the budget up: those that were evaluated to an end
// of their own.
func evaluated(trials map[int]record.Trial) (n int) {
	for _, t := range trials {
		if t.Source == optimizer.SourceAdded {
			continue
		}
		switch t.State {
		case study.TrialCompleted, study.TrialFailed, study.TrialInfeasible, study.TrialPruned:
			n++
		}
	}
	return n
}

// byUser reports whether a user asked for a trial, which may repeat a point.
func byUser(t *record.Trial) bool {
	return t.Source == optimizer.SourceRequested || t.Source == optimizer.SourceAdded
}

// toEnd reports whether a trial is to run a stopped one to its end, so that it is never stopped early itself.
func toEnd(t *record.Trial) bool { return t.Source == optimizer.SourceRequested && t.Predecessor > 0 }

// change checks one trial's step: what has ended does not change.
func (c *checker) change(before, after record.Trial) {
	if before.State.Terminal() && !bytes.Equal(encode(before), encode(after)) {
		c.fail("trial %d was %s and changed to %s", after.Number, before.State, after.State)
	}
	if s := before.Stopped; s != nil && (!bytes.Equal(encode(s), encode(after.Stopped)) || len(after.Attempts) > len(before.Attempts)) {
		c.fail("trial %d was to be stopped early, and is %s after %d attempts", after.Number, after.State, len(after.Attempts))
	}
	if len(after.Attempts) < len(before.Attempts) {
		c.fail("trial %d lost an attempt", after.Number)
		return
	}
	for i, a := range before.Attempts {
		b := after.Attempts[i]
		answered := b.State == study.AttemptSucceeded && after.State.Terminal()
		if a.Worker != "" && a.Worker != b.Worker && !answered {
			c.fail("attempt %d/%d was claimed by %s and then by %s", after.Number, b.Number, a.Worker, b.Worker)
		}
		if a.State != study.AttemptOpen && a.State != b.State && !answered {
			c.fail("attempt %d/%d was %s and is %s", after.Number, b.Number, a.State, b.State)
		}
		if a.Nonce != b.Nonce {
			c.fail("attempt %d/%d changed its nonce", after.Number, b.Number)
		}
	}
}

// positions: each is used once, and they grow.
func (c *checker) positions(t *record.Trial) {
	before, known := c.trials[t.Number]
	if !known && t.Created <= c.position {
		c.fail("trial %d was created at %d, after %d", t.Number, t.Created, c.position)
	}
	if t.Ended != 0 && before.Ended == 0 && t.Ended <= max(c.position, t.Created) {
		c.fail("trial %d ended at %d, after %d", t.Number, t.Ended, c.position)
	}
	for number, other := range c.trials {
		if number != t.Number && (t.Created == other.Created || t.Ended != 0 && (t.Ended == other.Ended || t.Ended == other.Created)) {
			c.fail("trials %d and %d share a position", number, t.Number)
		}
	}
}

// stopped: a trial is stopped early for what it reported, ends so or with an answer
// that came first, and keeps a value that it had reached.
func (c *checker) stopped(w *world, t *record.Trial) {
	s := t.Stopped
	if s == nil {
		if t.State == study.TrialPruned {
			c.fail("trial %d is pruned, which was not decided", t.Number)
		}
		return
	}
	if toEnd(t) {
		c.fail("trial %d is to be stopped early, and it was to run trial %d to its end", t.Number, t.Predecessor)
	}
	a := t.Attempts[s.Attempt-1]
	id := messaging.AttemptID{Study: studyID, Trial: t.Number, Attempt: a.Number, Nonce: a.Nonce}
	above := slices.ContainsFunc(w.measured[id], func(p curve.Point) bool { return p.Step == s.Step && p.Value > simLimit })
	reached := slices.ContainsFunc(w.measured[id], func(p curve.Point) bool {
		return (p.Step == s.Step || w.judged && p.Step > s.Step) && p.Value == s.Values.First()
	})
	if !above || !reached || !w.isWhole(s.Values) {
		c.fail("trial %d is to be stopped at step %d with %v, which was not reported", t.Number, s.Step, s.Values)
	}
	switch t.State {
	case study.TrialFailed, study.TrialPending:
		c.fail("trial %d was to be stopped early and is %s", t.Number, t.State)
	case study.TrialPruned:
		if v := t.Values.First(); !w.isWhole(t.Values) || v != s.Values.First() && !slices.Contains(w.reported[report{a.Worker, id}], v) {
			c.fail("trial %d is pruned with the values %v, which it had not reached", t.Number, t.Values)
		}
	}
}

// attempts: at most one is open, kinds stay within their retries, and a value
// is what its own worker reported.
func (c *checker) attempts(w *world, t *record.Trial) {
	open, lost, timeout, failed, back, spoiled := 0, 0, 0, 0, 0, 0
	for i, a := range t.Attempts {
		if a.Number != i+1 {
			c.fail("attempt %d/%d is at place %d", t.Number, a.Number, i)
		}
		switch {
		case a.State == study.AttemptOpen:
			open++
		case a.State == study.AttemptLost:
			lost++
		case a.State == study.AttemptHandedBack:
			back++
		case a.State == study.AttemptCancelled:
			spoiled++
		case a.State == study.AttemptFailed && a.Outcome == messaging.OutcomeTimeout:
			timeout++
		case a.State == study.AttemptFailed:
			failed++
		case a.State == study.AttemptSucceeded && t.State == study.TrialCompleted:
			id := messaging.AttemptID{Study: studyID, Trial: t.Number, Attempt: a.Number, Nonce: a.Nonce}
			if !w.isWhole(t.Values) || !slices.Contains(w.reported[report{a.Worker, id}], t.Values.First()) {
				c.fail("trial %d has a value that %s never reported", t.Number, a.Worker)
			}
			if !w.kept(t) {
				c.fail("trial %d has the values %v with the metrics %v", t.Number, t.Values, t.Metrics)
			}
		}
	}
	handedOut := t.State == study.TrialQueued || t.State == study.TrialClaimed || t.State == study.TrialRunning
	if open > 1 || handedOut != (open == 1) {
		c.fail("trial %d is %s with %d open attempts", t.Number, t.State, open)
	}
	if !w.e.spec.on(safetyRetries) || !t.State.Terminal() {
		r := w.e.spec.Definition.Spec.Trial.Retries
		if lost > *r.Lost || timeout > *r.Timeout || failed > *r.Failed || max(back, spoiled) > study.MaxHandBacks {
			c.fail("trial %d is %s after %d lost, %d timed out, %d failed, %d handed back, %d not claimable", t.Number, t.State, lost, timeout,
				failed, back, spoiled)
		}
	}
}

// committed checks the whole of the state, after each commit, and now and then
// that a restart would give the same.
func (c *checker) committed(w *world) {
	c.commits++
	c.told(w.e)
	c.tally(w.e)
	c.paid(w)
	c.limited(w.e)
	if w.e.Status().State.Terminal() {
		c.verdict(w)
	}
	if c.commits%40 == 0 {
		c.reload(w)
	}
}

// within reports whether a trial's point is in the study's space.
func within(e *Engine, t record.Trial) bool { return e.spec.space.Check(t.Point) == nil }

// told: the optimiser is told each ended trial in the space once, in ledger order, and
// nothing else, or those of one level; a finite space's points are never tried twice. The best trial is in the space.
func (c *checker) told(e *Engine) {
	p := e.Problem()
	if c.earlier != nil && !reflect.DeepEqual(p.Earlier, c.earlier) {
		c.fail("of earlier studies the optimiser is told %v, want %v", p.Earlier, c.earlier)
	}
	var position int64
	for _, o := range p.Observations {
		if err := p.Space.Check(o.Point); err != nil {
			c.fail("trial %d is told: %v", o.Trial, err)
		}
		t, ok := c.trials[o.Trial]
		if !ok || !t.State.Terminal() || t.State == study.TrialCancelled {
			c.fail("trial %d is told and %s", o.Trial, t.State)
		}
		if t.Ended <= position {
			c.fail("trial %d is told out of order, or twice", o.Trial)
		}
		position = t.Ended
		if pruned := o.Outcome == optimizer.OutcomePruned; pruned != (t.State == study.TrialPruned) {
			c.fail("trial %d is %s and told as %s", o.Trial, t.State, o.Outcome)
		}
		if o.Outcome == optimizer.OutcomeCompleted && (t.State != study.TrialCompleted || !slices.Equal(o.Values, t.Values)) {
			c.fail("trial %d is %s and told as completed", o.Trial, t.State)
		}
	}
	ended, open, best := 0, 0, record.Trial{}
	for n := 1; n <= len(c.trials); n++ {
		switch t := c.trials[n]; {
		case !within(e, t) || t.State == study.TrialCancelled:
		case !t.State.Terminal():
			open++
		default:
			ended++
			better := best.Number == 0 || t.Rung > best.Rung ||
				t.Rung == best.Rung && (t.Values.First() < best.Values.First() || t.Values.First() == best.Values.First() && t.Ended < best.Ended)
			if t.State == study.TrialCompleted && better && isWithin(&e.spec.Definition.Spec, &t) && len(e.spec.Definition.Spec.Several) == 0 {
				best = t
			}
		}
	}
	if ended != len(p.Observations) && e.ladder.rungs == nil {
		c.fail("%d trials in the space have ended, %d are told", ended, len(p.Observations))
	}
	if open != len(p.Pending) {
		c.fail("%d trials in the space are open, %d are pending", open, len(p.Pending))
	}
	if got := e.Status().Best; got != best.Number {
		c.fail("trial %d is the best of the space within all limits, and the status says %d", best.Number, got)
	}
	if !e.tried.countable {
		return
	}
	seen := map[string]int{}
	for number, t := range c.trials {
		if byUser(&t) || t.Source == optimizer.SourcePromoted { // users repeat points, which are then promoted
			continue
		}
		key := e.spec.space.Key(t.Point)
		if other, twice := seen[key]; twice && t.State != study.TrialCancelled && c.trials[other].State != study.TrialCancelled {
			c.fail("trials %d and %d are the same point of a finite space", number, other)
		}
		seen[key] = number
	}
}

// verdict: a study ends for a reason that its trials bear out.
func (c *checker) verdict(w *world) {
	s, spec := w.e.Status(), &w.e.spec.Definition.Spec
	if s.Counts.Open() != 0 {
		c.fail("the study is %s with %d open trials", s.State, s.Counts.Open())
	}
	best := w.e.history.best // its facts need no unpacking
	goal := best != nil && spec.Objective.Goal != nil && best.facts().value <= *spec.Objective.Goal
	if f := s.Front; spec.Goal != nil && f != nil && f.Hypervolume != nil { // see front, which checks it
		goal = *f.Hypervolume >= spec.Goal.Hypervolume
	}
	budget := spec.Budget.MaxTrials > 0 && evaluated(c.trials) >= spec.Budget.MaxTrials || c.late(w, &s) || c.outlay(w) || c.worthless(w)
	expired := spec.Budget.MaxDuration > 0 && !s.Ended.Before(s.Started.Add(time.Duration(spec.Budget.MaxDuration)))
	points, finite := w.e.spec.space.Searched().Size()
	exhausted := finite && c.points(w.e) == points
	failures := spec.Budget.MaxFailedTrials > 0 && s.Counts.Failed >= spec.Budget.MaxFailedTrials || s.Counts.Failed >= firstFailures ||
		c.unheard(w)
	spent := budget || expired || exhausted
	switch s.State {
	case study.Completed:
		if !goal && (!spent || s.Counts.Completed == 0) {
			c.fail("completed, but: %s", describeStatus(s))
		}
	case study.Failed:
		if !failures && (!spent || s.Counts.Completed > 0) {
			c.fail("failed, but: %s", describeStatus(s))
		}
	}
}

// points is how many points of a finite space were evaluated.
func (c *checker) points(e *Engine) int {
	keys := map[string]bool{}
	for _, t := range c.trials {
		if t.State.Terminal() && t.State != study.TrialCancelled && within(e, t) {
			keys[e.spec.space.Searched().Key(e.spec.space.Configuration(t.Point))] = true
		}
	}
	return len(keys)
}

// curves: when all is over, the ledger has of each trial every step that was
// reported by the attempt that answered, or by the last one that reported anything.
func (c *checker) curves(w *world) {
	for number, data := range w.led.trials {
		var t record.Trial
		decode(data, &t)
		var want messaging.AttemptID // whose reports are to be there
		answered := false
		for _, a := range t.Attempts {
			id := messaging.AttemptID{Study: studyID, Trial: number, Attempt: a.Number, Nonce: a.Nonce}
			if a.State == study.AttemptSucceeded {
				answered, want = true, id
			} else if !answered && len(w.measured[id]) > 0 {
				want = id
			}
		}
		stored := w.led.curve(number)
		switch {
		case len(w.measured[want]) == 0: // what an earlier attempt reported may be there
		case stored == nil || stored.Attempt < want.Attempt:
			c.fail("the curve of %s is not stored, though it reported %d steps", name(want), len(w.measured[want]))
		case stored.Attempt > want.Attempt || w.measurers[want] == "?": // it was replaced, or several evaluated it
		case !slices.Equal(stored.Series()[0].Points, w.measured[want]):
			c.fail("the curve of %s holds\n%v, but reported was\n%v", name(want), stored.Series()[0].Points, w.measured[want])
		}
	}
}

// reload: an engine made of the ledger's records is the live one.
func (c *checker) reload(w *world) {
	e, out, err := w.led.load(&counterIDs{}, w.set, w.now)
	if err != nil {
		c.fail("load: %v", err)
		return
	}
	if len(out.Trials) > 0 || out.Status != nil {
		c.fail("a load of whole commits mends %v, %v", out.Trials, out.Status)
	}
	c.front(w)
	for number, stored := range w.led.trials {
		if t := recordText(w.e.trials.all[number-1]); !bytes.Equal(t, stored) {
			c.fail("trial %d is %s in memory and %s in the ledger", number, t, stored)
		}
	}
	if live, loaded := fingerprint(w.e), fingerprint(e); live != loaded {
		c.fail("a restart gives another engine (-live +loaded):\n%s", cmp.Diff(live, loaded))
	}
}

// stateText is a trial's record as JSON. That of an ended trial is not decoded to be encoded
// again: simulations look at all trials very often.
func recordText(t *trial) json.RawMessage {
	if t.work != nil {
		return encode(t.rec)
	}
	text, err := compression.Unpack(t.packed)
	if err != nil {
		panic(err)
	}
	return text
}

// fingerprint is all that two engines of one ledger have in common.
func fingerprint(e *Engine) string {
	type state struct {
		Status       record.Status
		Spec         record.Study
		Model        record.Model
		Trials       []json.RawMessage
		Open         []OpenAttempt
		Queued       []messaging.AttemptID
		Pending      []int
		Wishes       []int
		Requests     map[string]int
		Observations []optimizer.Observation
		Excess       []string // of the observations: JSON has no NaN
		Points       []optimizer.Pending
		Best         int
		Evaluations  [2]int64
		Taken        []string
		Rungs        []string
		Workers      []string
	}
	p := e.Problem()
	s := state{
		Status: e.Status(), Spec: e.Spec(), Model: e.Model(), Open: e.Open(), Queued: e.Queued(),
		Observations: append([]optimizer.Observation(nil), p.Observations...), Points: p.Pending,
		Evaluations: [2]int64{int64(e.evaluations.sum), int64(e.evaluations.n)},
	}
	for i := range s.Open {
		s.Open[i].Claimed = time.Time{} // by this leader's clock
	}
	for i := range s.Observations {
		s.Excess, s.Observations[i].Excess = append(s.Excess, fmt.Sprint(s.Observations[i].Excess)), nil
	}
	if s.Status.State == study.Running { // says how the optimiser fares, which is not loaded
		s.Status.Reason = ""
	}
	for _, t := range e.trials.all {
		s.Trials = append(s.Trials, recordText(t))
	}
	if e.history.best != nil {
		s.Best = e.history.best.facts().number
	}
	for _, t := range e.trials.pending {
		if t.facts().state == study.TrialPending {
			s.Pending = append(s.Pending, t.facts().number)
		}
	}
	slices.Sort(s.Pending)
	for _, t := range e.trials.wishes {
		s.Wishes = append(s.Wishes, t.facts().number)
	}
	s.Requests = e.trials.requests
	for key, p := range e.tried.points {
		s.Taken = append(s.Taken, fmt.Sprint(key, " ", p.trials))
	}
	slices.Sort(s.Taken)
	for k := range e.ladder.rungs {
		for _, t := range e.ladder.rungs[k].ranked {
			s.Rungs = append(s.Rungs, fmt.Sprint(k, " ", t.facts().number, " ", t.promoted))
		}
	}
	for name, h := range e.health.workers {
		if h.answered {
			s.Workers = append(s.Workers, name)
		}
	}
	slices.Sort(s.Workers)
	return string(encode(s))
}
