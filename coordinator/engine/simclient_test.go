package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Clients of the simulated world, that evaluate the trials of a study without a command.
// A call fails if no leader is there or if the leader dies before it answers. The client
// then calls again, so a call can be applied without an answer.

// simClient is one of them.
type simClient struct {
	w         *world
	name      string
	want      int  // how many trials it holds at most
	names     bool // it says which attempt it means
	life      int  // grows with each start: what an earlier process planned is void
	dead      bool
	until     time.Time // of the partition
	running   map[messaging.AttemptID]bool
	tells     []Told                                // what no answer has confirmed
	confirmed map[messaging.AttemptID][]curve.Point // measurements that were answered
}

// newClientWorld draws a study without a command and its clients from a seed.
func newClientWorld(seed uint64, off safety) *world {
	w := newWorld(seed, off)
	var spec record.Study
	decode(w.led.study, &spec)
	spec.Definition.Spec.Trial.Command = nil
	w.led, w.workers, w.heard = newLedger(spec), nil, map[messaging.AttemptID]time.Time{}
	for i := range 1 + w.rng.IntN(4) {
		w.clients = append(w.clients, &simClient{
			w: w, name: fmt.Sprintf("c%d", i), want: 1 + w.rng.IntN(3), names: w.chance(2), confirmed: map[messaging.AttemptID][]curve.Point{},
		})
	}
	return w
}

// begin starts the client's process, which has forgotten everything but its name.
func (s *simClient) begin() {
	s.life++
	s.dead, s.running, s.tells = false, map[messaging.AttemptID]bool{}, nil
	s.poll(s.life)
	s.beat(s.life)
}

// die kills the process; another one starts in a while.
func (s *simClient) die() {
	s.life++
	s.dead = true
	life := s.life
	s.w.after(s.w.between(0, 2*simLease), func() {
		if life == s.life {
			s.begin()
		}
	})
}

// cut reports whether the client reaches no leader.
func (s *simClient) cut() bool { return s.w.e == nil || s.w.faults && s.w.now.Before(s.until) }

// poll asks for trials, and tells again what was not answered.
func (s *simClient) poll(life int) {
	w := s.w
	w.after(w.between(5*time.Millisecond, 150*time.Millisecond), func() {
		if life != s.life {
			return
		}
		defer s.poll(life)
		for len(s.tells) > 0 && !s.cut() {
			if !s.tell(s.tells[0]) {
				return
			}
			s.tells = s.tells[1:]
		}
		if s.cut() {
			return
		}
		w.step(Seek{At: w.now, Client: s.name, Want: s.want})
		if s.cut() {
			return
		}
		held, _ := w.e.Held(s.name, s.want+1)
		if len(held) > s.want {
			w.check.fail("client %s holds %d trials and wanted %d", s.name, len(held), s.want)
		}
		if w.chance(4) { // the call ends
			w.step(Seek{At: w.now, Client: s.name})
		}
		for i := range held {
			s.evaluate(life, &held[i])
		}
	})
}

// evaluate starts an evaluation, unless it runs.
func (s *simClient) evaluate(life int, t *record.Trial) {
	w := s.w
	a := t.Last()
	id := messaging.AttemptID{Study: studyID, Trial: t.Number, Attempt: a.Number, Nonce: a.Nonce}
	w.heard[id] = w.now
	if s.running[id] || slices.ContainsFunc(s.tells, func(told Told) bool { return told.Trial == t.Number }) {
		return
	}
	s.running[id] = true
	s.measure(life, id, 0)
	w.after(w.between(10*time.Millisecond, 1500*time.Millisecond), func() {
		if life == s.life && s.running[id] {
			s.ends(id)
		}
	})
}

// measure adds what an evaluation has reached, until it ends.
func (s *simClient) measure(life int, id messaging.AttemptID, step int64) {
	w := s.w
	w.after(w.between(0, 300*time.Millisecond), func() {
		if life != s.life || !s.running[id] {
			return
		}
		next := step + 1 + w.rng.Int64N(3)
		p := curve.Point{Step: step, Value: w.rng.Float64()}
		defer func() { s.measure(life, id, next) }()
		if s.cut() || !s.instructed(id) {
			return
		}
		if w.e.Forgotten(id) {
			w.step(Recalled{At: w.now, Trial: id.Trial, Curve: w.led.curve(id.Trial)})
			if w.e == nil {
				return
			}
		}
		for _, known := range w.e.Curve(id.Trial) { // of an earlier process of the client
			if n := len(known.Points); id.Attempt == w.e.curveAttempt(id.Trial) && known.Points[n-1].Step >= p.Step {
				return
			}
		}
		w.measured[id] = append(w.measured[id], p)
		out := w.e.Step(Measured{At: w.now, Measurement: &messaging.Measurement{
			AttemptID: id, Worker: s.name, Step: p.Step, Metrics: w.charged(id.Trial, w.metricsOf(p.Value), 1-1/float64(2+p.Step)), At: w.now,
		}})
		if w.took(&out, func() {}) {
			w.commit(&Output{}) // durable before the answer
			s.confirmed[id] = append(s.confirmed[id], p)
		}
	})
}

// curveAttempt is the attempt whose curve is in memory; 0 for none.
func (e *Engine) curveAttempt(trial int) int {
	if c := e.trials.all[trial-1].curve; c != nil {
		return c.Attempt
	}
	return 0
}

// beat sends a heartbeat of each evaluation.
func (s *simClient) beat(life int) {
	w := s.w
	w.after(simHeartbeat, func() {
		if life != s.life {
			return
		}
		defer s.beat(life)
		ids := make([]messaging.AttemptID, 0, len(s.running))
		for id := range s.running {
			ids = append(ids, id)
		}
		slices.SortFunc(ids, func(a, b messaging.AttemptID) int { return a.Trial*1000 + a.Attempt - b.Trial*1000 - b.Attempt })
		for _, id := range ids {
			if !s.cut() {
				s.instructed(id)
			}
		}
	})
}

// instructed does what the leader says about an evaluation, and reports whether it
// continues.
func (s *simClient) instructed(id messaging.AttemptID) bool {
	w := s.w
	next, err := w.e.Instruct(s.name, id.Trial, s.named(id))
	if err != nil {
		w.check.fail("client %s was given %s, but: %v", s.name, name(id), err)
		return false
	}
	switch now, err := w.e.Attempt(s.name, id.Trial, s.named(id)); {
	case err != nil:
		w.check.fail("client %s was given %s, but: %v", s.name, name(id), err)
	case now != id || next.Do == Abandon: // it may have lost the trial and got it again
		delete(s.running, id)
		return false
	}
	w.heard[id] = w.now
	if next.Do == Prune {
		delete(s.running, id)
		told := Told{Client: s.name, Trial: id.Trial, Attempt: s.named(id), Outcome: messaging.OutcomePruned}
		if w.chance(2) {
			told.Values = s.value(id)
			told.Metrics = w.used(told.Values[0])
		}
		told.Metrics = w.charged(id.Trial, told.Metrics, 0.5)
		s.tells = append(s.tells, told)
		return false
	}
	return true
}

// named is the attempt as the client names it; 0 if it names none.
func (s *simClient) named(id messaging.AttemptID) int {
	if s.names {
		return id.Attempt
	}
	return 0
}

// value draws a value of an evaluation.
func (s *simClient) value(id messaging.AttemptID) study.Values {
	v := s.w.rng.Float64()
	key := report{s.name, id}
	s.w.reported[key] = append(s.w.reported[key], v)
	return s.w.valuesOf(v)
}

// ends ends an evaluation.
func (s *simClient) ends(id messaging.AttemptID) {
	w := s.w
	delete(s.running, id)
	told := Told{Client: s.name, Trial: id.Trial, Attempt: s.named(id), Outcome: messaging.OutcomeCompleted}
	switch n := w.rng.IntN(20); {
	case n == 0:
		told.Values, told.Metrics = w.valuesOf(math.Inf(1)), w.used(math.Inf(1))
	case n <= 2:
		told.Outcome, told.Failure = messaging.OutcomeFailed, &messaging.Failure{Reason: "simulated"}
	case n == 3:
		told.Outcome, told.Failure = messaging.OutcomeInfeasible, &messaging.Failure{Reason: "simulated"}
	case n == 4:
		told.Outcome, told.Checkpoint = messaging.OutcomeHandedBack, "checkpoint of "+s.name
	default:
		told.Values = s.value(id)
		told.Metrics = w.used(told.Values[0])
	}
	share := 0.5
	if told.Outcome == messaging.OutcomeCompleted {
		share = 1
	}
	told.Metrics = w.charged(id.Trial, told.Metrics, share)
	s.tells = append(s.tells, told)
}

// tell tells an end and reports whether that was answered. What was told once can be told
// again, and nothing else.
func (s *simClient) tell(told Told) bool {
	w := s.w
	told.At = w.now
	if now, err := w.e.Attempt(s.name, told.Trial, told.Attempt); err == nil && len(told.Values) > 0 {
		key := report{s.name, now} // of the last attempt that the client was given
		w.reported[key] = append(w.reported[key], told.Values[0])
	}
	answer, ok := w.ask(told)
	if !ok || answer.Err != nil || w.e == nil || !w.chance(3) {
		return ok
	}
	if told.Outcome != messaging.OutcomeCompleted {
		return true
	}
	if again, ok := w.ask(told); ok && (again.Err != nil || again.Trial.Number != told.Trial) {
		w.check.fail("client %s told the end of trial %d again: %v", s.name, told.Trial, again.Err)
	}
	if w.e == nil {
		return true
	}
	told.Values, told.Metrics = w.valuesOf(2), w.used(2)
	if other, ok := w.ask(told); ok && !errors.Is(other.Err, ErrRefused) {
		w.check.fail("client %s told another value of trial %d: %v", s.name, told.Trial, other.Err)
	}
	return true
}

// ask applies an event that is answered; ok is false if no answer comes.
func (w *world) ask(ev Event) (answer Answer, ok bool) {
	if w.e == nil {
		return Answer{}, false
	}
	out := w.e.Step(ev)
	if out.Answer == nil {
		w.check.fail("%T has no answer", ev)
		return Answer{}, false
	}
	answer = *out.Answer
	return answer, w.took(&out, func() {})
}

// wish is what a user wants: a point evaluated, a trial added, one cancelled, or one continued that was stopped early.
func (w *world) wish() {
	if w.e == nil {
		return
	}
	q := w.e.spec.space.Parameters()[0]
	point := study.Point{q.Name: w.rng.Float64()}
	if q.Type == study.Int {
		point = study.Point{q.Name: int64(1 + w.rng.IntN(int(*q.Max)))}
	}
	enqueued := w.e.ladder.atLowest(point)
	if f, ok := w.e.spec.space.Fidelity(); ok {
		point = w.e.spec.space.AtLevel(point, w.rng.IntN(len(f.Levels())))
		if w.chance(2) {
			enqueued = point
		}
	}
	request := fmt.Sprint("request-", w.rng.IntN(4))
	if w.chance(2) {
		request = ""
	}
	var ev Event
	source := optimizer.SourceRequested
	switch w.rng.IntN(4) {
	case 0:
		w.goOn(request)
		return
	case 1:
		point = enqueued
		ev = Enqueue{At: w.now, Point: point, RequestID: request}
	case 2:
		value := w.rng.Float64()
		ev = Add{At: w.now, Point: point, Values: w.valuesOf(value), Metrics: w.used(value), RequestID: request}
		source = optimizer.SourceAdded
	default:
		if n := w.status().Trials; n > 0 {
			w.ask(CancelTrial{At: w.now, Trial: 1 + w.rng.IntN(n), Reason: "simulated"})
		}
		return
	}
	answer, ok := w.ask(ev)
	if !ok || answer.Err != nil {
		return
	}
	if answer.Trial.Source != source || w.e.spec.space.Key(answer.Trial.Point) != w.e.spec.space.Key(point) {
		w.check.fail("%+v made trial %d: %v of %v", ev, answer.Trial.Number, answer.Trial.Point, answer.Trial.Source)
	}
	if again, ok := w.ask(ev); request != "" && ok && (again.Err != nil || again.Trial.Number != answer.Trial.Number) {
		w.check.fail("request %s made trial %d and then trial %d: %v", request, answer.Trial.Number, again.Trial.Number, again.Err)
	}
}

// goOn has a trial continued that was stopped early, or tries it with any other trial.
func (w *world) goOn(request string) {
	var pruned []int
	for n := range w.status().Trials {
		if t := w.check.trials[n+1]; t.State == study.TrialPruned {
			pruned = append(pruned, t.Number)
		}
	}
	n := 1 + w.rng.IntN(w.status().Trials+1)
	if len(pruned) > 0 && !w.chance(4) {
		n = pruned[w.rng.IntN(len(pruned))]
	}
	from, made := w.check.trials[n], len(w.e.trials.all)
	answer, ok := w.ask(Enqueue{At: w.now, Continues: n, RequestID: request})
	if !ok || answer.Err != nil {
		return
	}
	t := answer.Trial
	if from.State != study.TrialPruned || t.Predecessor != n || t.Source != optimizer.SourceRequested ||
		t.Number > made && t.Checkpoint != from.Checkpoint || w.e.spec.space.Key(t.Point) != w.e.spec.space.Key(from.Point) {
		w.check.fail("to continue trial %d, which is %s, trial %d is made after %d: %v", n, from.State, t.Number, t.Predecessor, t.Point)
	}
}

// clientTrouble is one of the troubles of a world of clients.
func (w *world) clientTrouble() {
	s := w.clients[w.rng.IntN(len(w.clients))]
	switch w.rng.IntN(8) {
	case 0, 1:
		s.die()
	case 2:
		s.until = w.now.Add(w.between(0, 3*simLease))
	case 3:
		w.update()
	case 4:
		if w.e != nil && w.chance(8) {
			w.step(Stop{At: w.now, Reason: "simulated"})
		} else if w.e != nil {
			w.crash()
		}
	default:
		w.wish()
	}
}

// confirmed: a measurement that was answered is in the ledger, if its attempt answered.
func (c *checker) confirmed(w *world) {
	for _, s := range w.clients {
		for id, points := range s.confirmed {
			var t record.Trial
			decode(w.led.trials[id.Trial], &t)
			if t.Attempts[id.Attempt-1].State != study.AttemptSucceeded {
				continue
			}
			stored := w.led.curve(id.Trial)
			if stored != nil && stored.Attempt > id.Attempt { // it was replaced before the answer
				continue
			}
			for _, p := range points {
				if stored == nil || !slices.Contains(stored.Series()[0].Points, p) {
					c.fail("the curve of %s lacks %v, which was answered", name(id), p)
				}
			}
		}
	}
}
