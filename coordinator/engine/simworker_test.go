package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// simWorker is a worker of the simulated world.
type simWorker struct {
	w       *world
	name    string
	slots   int
	bad     bool // fails whatever it runs, while there are faults
	site    *messaging.Site
	avoids  bool
	dead    bool
	life    int // grows with each start: what an earlier process planned is void
	until   time.Time
	leaving bool
	running map[messaging.AttemptID]bool
	order   []messaging.AttemptID // of running
	claimed map[messaging.AttemptID]bool
	spool   []*messaging.Result
	// measured are the reports that the stream has not acknowledged, oldest first.
	measured []*messaging.Measurement
}

func newSimWorker(w *world, i int) *simWorker {
	s := &simWorker{w: w, name: fmt.Sprintf("w%d", i), slots: 1 + w.rng.IntN(3), bad: w.chance(8)}
	if i%2 == 1 {
		s.site = &messaging.Site{Job: s.name}
	}
	return s
}

// begin starts the worker's process.
func (s *simWorker) begin() {
	s.life++
	s.dead, s.leaving, s.avoids = false, false, false
	s.running, s.order, s.claimed = map[messaging.AttemptID]bool{}, nil, map[messaging.AttemptID]bool{}
	life := s.life
	s.beat(life)
	s.fetch(life)
	s.resend(life)
	s.publish(life)
}

// heal ends whatever ails the worker.
func (s *simWorker) heal() {
	s.bad, s.until = false, time.Time{}
	if s.dead || s.leaving {
		s.begin()
	}
	s.avoids = false
}

// die kills the process; another one starts in a while, with the spool.
func (s *simWorker) die() {
	if s.dead {
		return
	}
	s.dead = true
	s.life++
	s.running, s.order, s.measured = nil, nil, nil
	if s.w.chance(5) {
		s.spool = nil // the disk as well
	}
	life := s.life
	s.w.after(s.w.between(0, 8*time.Second), func() {
		if life == s.life {
			s.begin()
		}
	})
}

// leave hands back what runs, and goes for a while.
func (s *simWorker) leave() {
	if s.dead {
		return
	}
	s.leaving = true
	for _, id := range s.order {
		r := s.result(id, messaging.OutcomeHandedBack)
		r.Checkpoint = "checkpoint of " + s.name
		s.finish(r)
	}
	s.running, s.order = map[messaging.AttemptID]bool{}, nil
	life := s.life
	s.w.after(s.w.between(0, 5*time.Second), func() {
		if life == s.life {
			s.begin()
		}
	})
}

// cut reports whether the worker is partitioned.
func (s *simWorker) cut() bool { return s.w.now.Before(s.until) }

// beat sends heartbeats.
func (s *simWorker) beat(life int) {
	if life != s.life {
		return
	}
	if !s.cut() {
		b := beat{at: s.w.now, knows: map[messaging.AttemptID]bool{}, slots: s.slots, free: s.slots - len(s.running)}
		for id := range s.running {
			b.knows[id] = true
		}
		for _, r := range s.spool {
			b.knows[r.AttemptID] = true
		}
		running := append([]messaging.AttemptID(nil), s.order...)
		s.w.after(s.w.between(0, 100*time.Millisecond), func() { s.heard(b, running) })
	}
	s.w.after(simHeartbeat, func() { s.beat(life) })
}

// heard is a heartbeat at the leader's.
func (s *simWorker) heard(b beat, running []messaging.AttemptID) {
	w := s.w
	if w.e == nil {
		return
	}
	gen := w.gen
	w.beats[s.name] = b
	slots, free := 0, 0
	for _, worker := range w.workers {
		if b := w.beats[worker.name]; w.now.Sub(b.at) <= simLease && !worker.avoids {
			slots, free = slots+b.slots, free+b.free
		}
	}
	w.step(Capacity{At: w.now, Slots: slots, Free: free})
	for _, id := range running {
		if gen == w.gen {
			w.step(Alive{At: w.now, Worker: s.name, Attempt: id, Begun: id.Trial%3 != 0}) // the programs of some jobs wait
		}
	}
}

// fetch takes an assignment where a slot is free, claims and runs it.
func (s *simWorker) fetch(life int) {
	if life != s.life {
		return
	}
	w := s.w
	w.after(w.between(5*time.Millisecond, 60*time.Millisecond), func() { s.fetch(life) })
	if s.cut() || s.leaving || s.avoids || len(s.running) >= s.slots || len(w.queue) == 0 {
		return
	}
	i := w.rng.IntN(len(w.queue))
	a := w.queue[i]
	if !w.faults || !w.chance(10) { // else the acknowledgement is lost
		w.queue = append(w.queue[:i], w.queue[i+1:]...)
	}
	if s.claimed[a.AttemptID] {
		return
	}
	s.claimed[a.AttemptID] = true
	c := &messaging.Claim{AttemptID: a.AttemptID, Worker: s.name, At: w.now, Site: s.site}
	if !w.append(c) {
		return
	}
	if w.faults && w.chance(60) { // dies right after its claim
		s.die()
		return
	}
	s.running[a.AttemptID] = true
	s.order = append(s.order, a.AttemptID)
	ends := w.between(10*time.Millisecond, 1500*time.Millisecond)
	// Now and then, a program does not end until it is stopped. One that is to run a stopped trial to its end
	// is never stopped, and so would not end at all.
	t := w.check.trials[a.Trial]
	hangs := w.set.Pruner != nil && w.chance(8) && !toEnd(&t)
	if hangs {
		ends = 10 * simPatience
	}
	s.report(life, a.AttemptID, 0, hangs)
	w.after(ends, func() {
		if life == s.life && s.running[a.AttemptID] {
			s.stop(a.AttemptID)
			s.evaluated(a.AttemptID)
		}
	})
}

// report lets the program of an evaluation report its next step, in a while.
func (s *simWorker) report(life int, id messaging.AttemptID, step int64, bad bool) {
	w := s.w
	w.after(w.between(0, 300*time.Millisecond), func() {
		if life != s.life || !s.running[id] {
			return
		}
		loss := w.rng.Float64()
		if bad {
			loss = simLimit + 0.1
		}
		s.measured = append(s.measured, &messaging.Measurement{
			AttemptID: id, Worker: s.name, Step: step, Metrics: w.charged(id.Trial, w.metricsOf(loss), 1-1/float64(2+step)), At: w.now,
		})
		s.report(life, id, step+1+w.rng.Int64N(3), bad)
	})
}

// publish puts the oldest report into the stream until that is acknowledged. The
// acknowledgement can be lost, and a copy can come late.
func (s *simWorker) publish(life int) {
	w := s.w
	w.after(w.between(0, 60*time.Millisecond), func() {
		if life != s.life {
			return
		}
		s.publish(life)
		if len(s.measured) == 0 || s.cut() || w.faults && w.chance(10) {
			return
		}
		m := s.measured[0]
		w.store(m)
		if w.faults && w.chance(10) {
			return // it is sent again
		}
		s.measured = s.measured[1:]
		if w.faults && w.chance(20) {
			w.after(w.between(0, 20*time.Second), func() { w.store(m) })
		}
	})
}

// store appends a report to its stream.
func (w *world) store(m *messaging.Measurement) {
	of, by := w.measured[m.AttemptID], w.measurers[m.AttemptID]
	if len(of) == 0 || of[len(of)-1].Step < m.Step {
		w.measured[m.AttemptID] = append(of, curve.Point{Step: m.Step, Value: m.Metrics["loss"]})
	}
	if who := fmt.Sprint(m.Worker); by != "" && by != who {
		w.measurers[m.AttemptID] = "?"
	} else if by == "" {
		w.measurers[m.AttemptID] = who
	}
	w.metrics = append(w.metrics, m)
	w.arrived()
}

// stop ends an evaluation.
func (s *simWorker) stop(id messaging.AttemptID) {
	delete(s.running, id)
	for i := range s.order {
		if s.order[i] == id {
			s.order = append(s.order[:i], s.order[i+1:]...)
			return
		}
	}
}

// evaluated reports how an evaluation went.
func (s *simWorker) evaluated(id messaging.AttemptID) {
	w := s.w
	outcomes := []messaging.Outcome{
		messaging.OutcomeFailed, messaging.OutcomeTimeout, messaging.OutcomeInfeasible, messaging.OutcomeHandedBack, "nonsense",
	}
	r := s.result(id, messaging.OutcomeCompleted)
	switch {
	case s.bad:
		r.Outcome, r.Failure, r.Metrics = messaging.OutcomeFailed, &messaging.Failure{Message: "bad worker"}, w.early(id)
	case w.chance(5):
		r.Outcome, r.Metrics = outcomes[w.rng.IntN(len(outcomes))], w.early(id)
	default:
		value := w.rng.Float64()
		if w.chance(20) {
			value = math.Inf(1)
		} else {
			key := report{s.name, id}
			w.reported[key] = append(w.reported[key], value)
		}
		r.Values, r.Metrics = w.valuesOf(value), w.used(value)
		if len(w.objectives) > 1 && w.chance(20) {
			r.Values = r.Values[:1] // which fails the attempt
		}
	}
	s.finish(r)
}

func (s *simWorker) result(id messaging.AttemptID, o messaging.Outcome) *messaging.Result {
	return &messaging.Result{
		AttemptID: id, Worker: s.name, Outcome: o,
		Started: s.w.now.Add(-s.w.between(0, time.Second)), Ended: s.w.now,
	}
}

// finish spools a result and sends it.
func (s *simWorker) finish(r *messaging.Result) {
	s.w.ended[r.AttemptID] = true
	share := 0.5
	if r.Outcome == messaging.OutcomeCompleted || r.Reached != nil {
		share = 1
	}
	r.Metrics = s.w.charged(r.Trial, r.Metrics, share)
	s.spool = append(s.spool, r)
	s.send(r)
}

// send puts a result into the stream, some time later, unless it is lost.
func (s *simWorker) send(r *messaging.Result) {
	w := s.w
	if s.cut() || w.faults && w.chance(10) {
		return
	}
	w.after(w.between(0, 60*time.Millisecond), func() {
		w.results = append(w.results, r)
		w.arrived()
	})
}

// resend sends again what has no receipt.
func (s *simWorker) resend(life int) {
	s.w.after(simResend, func() {
		if life != s.life {
			return
		}
		for _, r := range s.spool {
			s.send(r)
		}
		s.resend(life)
	})
}

// receipt forgets a result.
func (s *simWorker) receipt(id messaging.AttemptID) {
	for i, r := range s.spool {
		if r.AttemptID == id {
			s.spool = append(s.spool[:i], s.spool[i+1:]...)
			return
		}
	}
}

// cancel stops an evaluation; some workers report that.
func (s *simWorker) cancel(id messaging.AttemptID) {
	if !s.running[id] {
		return
	}
	s.stop(id)
	if s.w.chance(2) {
		s.finish(s.result(id, messaging.OutcomeCancelled))
	}
}

// prune stops an evaluation early, unless it ends just then, or had only to exit.
func (s *simWorker) prune(id messaging.AttemptID) {
	if !s.running[id] {
		return
	}
	s.stop(id)
	if s.w.chance(5) {
		s.evaluated(id)
		return
	}
	r := s.result(id, messaging.OutcomePruned)
	if s.w.chance(2) {
		value := s.w.rng.Float64()
		key := report{s.name, id}
		s.w.reported[key] = append(s.w.reported[key], value)
		r.Values, r.Metrics = s.w.valuesOf(value), s.w.used(value)
		if s.w.chance(3) { // it had nothing left to do
			r.Reached = &messaging.Reached{Attempt: id.Attempt, Steps: map[string]int64{s.w.objectives[0].Metric: lastStep}}
		}
	}
	s.finish(r)
}

// troubles happen now and then, while there are faults.
func (w *world) troubles() {
	w.after(w.between(0, 4*time.Second), func() {
		if !w.faults {
			return
		}
		w.trouble()
		w.troubles()
	})
}

// trouble is one of them.
func (w *world) trouble() {
	if len(w.clients) > 0 {
		w.clientTrouble()
		return
	}
	s := w.workers[w.rng.IntN(len(w.workers))]
	switch w.rng.IntN(12) {
	case 0, 1:
		s.die()
	case 2:
		s.leave()
	case 3, 4:
		s.until = w.now.Add(w.between(0, 3*simLease))
	case 5: // the claim stream is lost: what was claimed can be claimed again
		clear(w.holder)
		w.queue = append(w.queue, w.sent[max(0, len(w.sent)-6):]...)
	case 6: // the streams are read again from their beginning
		w.claim, w.result, w.metric, w.read = 0, 0, 0, 0
		w.arrived()
	case 7:
		w.forge()
	case 8:
		w.update()
	case 9:
		if w.e != nil && w.chance(8) {
			w.step(Stop{At: w.now, Reason: "simulated"})
		} else if w.e != nil {
			w.crash()
		}
	default:
		w.wish()
	}
}

// forge puts messages where they do not belong: a claim in an attempt's place that
// nobody can read or that has a nonce of another time, as of attempts that a
// restored ledger has forgotten; a result with such a nonce; and a result that was
// sent before.
func (w *world) forge() {
	n := w.status().Trials
	id := messaging.AttemptID{Study: studyID, Trial: 1 + w.rng.IntN(n+4), Attempt: 1 + w.rng.IntN(3), Nonce: "forged"}
	if w.e != nil && w.chance(2) {
		if queued := w.e.Queued(); len(queued) > 0 {
			id = queued[w.rng.IntN(len(queued))]
			id.Nonce = "forged"
		}
	}
	claim := &messaging.Claim{AttemptID: id, Worker: "stranger", At: w.now}
	if w.append(claim) && w.chance(2) {
		claim.Nonce = ""
		w.claims[len(w.claims)-1].unreadable = true
	}
	value := -1.0
	w.results = append(w.results, &messaging.Result{
		AttemptID: id, Worker: "stranger", Outcome: messaging.OutcomeCompleted, Values: w.valuesOf(value), Metrics: w.used(value), Started: w.now,
		Ended: w.now,
	})
	w.results = append(w.results, w.results[w.rng.IntN(len(w.results))])
	w.arrived()
}

// update gives the study more trials or fewer, another parallelism, or another range; if it has limits,
// often other ones, too, and if it has references, sometimes another one.
func (w *world) update() {
	if w.e == nil {
		return
	}
	spec := record.Study{}
	decode(encode(w.e.Spec()), &spec)
	s := &spec.Definition.Spec
	switch w.rng.IntN(4) {
	case 0:
		s.Parallelism = 1 + w.rng.IntN(6)
	case 1:
		q := &s.Parameters[0]
		low, high := w.rng.Float64()/2, 0.75+w.rng.Float64()
		if q.Type == study.Int {
			low, high = float64(1+w.rng.IntN(2)), float64(3+w.rng.IntN(20))
		}
		q.Min, q.Max = &low, &high
	default:
		switch more := w.rng.IntN(9); {
		case s.Budget.MaxTrials > 0:
			s.Budget.MaxTrials = max(1, s.Budget.MaxTrials+more-4)
		case s.Budget.MaxCost > 0:
			s.Budget.MaxCost = max(1, s.Budget.MaxCost+float64(more-4)/2)
		default:
			s.Budget.MaxDuration += study.Duration(time.Duration(more) * time.Second)
		}
	}
	if w.limits != nil && w.limits.IntN(2) == 0 {
		s.Limits = w.someLimits()
	}
	if len(s.Several) > 0 && s.Several[0].Reference != nil && w.check.commits%3 == 0 {
		*s.Several[0].Reference = 0.5 + 0.1*float64(w.check.commits%7)
	}
	w.step(Update{At: w.now, Study: spec})
}
