package engine

import (
	"errors"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// The leader of the simulated world: it reads the streams, commits what the
// engine asks for and carries its effects out, and dies anywhere in between.

// start creates the study.
func (w *world) start() {
	var spec record.Study
	decode(w.led.study, &spec)
	w.incarnations++
	e, out, err := New(spec, &counterIDs{prefix: "a"}, w.set, w.now)
	if err != nil {
		w.check.fail("new: %v", err)
		return
	}
	switchOff(e, w.off)
	w.led.commit(&out)
	w.lead(e)
	w.effects(&out)
}

// lead makes an engine the leader's.
func (w *world) lead(e *Engine) {
	w.gen++
	w.e, w.asked, w.started = e, nil, w.now
	w.uncommitted, w.read = nil, w.metric
	w.check.leads(w)
	w.leaderTick(w.gen)
}

// leaderTick lets time pass for the leader, and checks its workers' leases.
func (w *world) leaderTick(gen int) {
	w.after(simTick, func() {
		if gen != w.gen || w.e == nil {
			return
		}
		w.step(Tick{At: w.now})
		if len(w.uncommitted) > 0 && w.now.Sub(w.uncommittedSince) > simGroup || w.read > w.metric && len(w.uncommitted) == 0 {
			w.commit(&Output{})
		}
		w.leases(gen)
		w.leaderTick(gen)
	})
}

// leases declares the attempts lost whose worker is silent, or alive without them.
func (w *world) leases(gen int) {
	if w.e == nil || w.now.Sub(w.started) < simLease {
		return
	}
	for _, a := range w.e.Open() {
		if len(w.clients) > 0 {
			if last := w.heard[a.Attempt]; w.now.Sub(last) > simLease && w.now.Sub(a.Claimed) > simLease {
				w.step(Lost{At: w.now, Attempt: a.Attempt, Reason: "simulated"})
			}
			if w.e == nil || gen != w.gen {
				return
			}
			continue
		}
		b, known := w.beats[a.Worker]
		gone := !known || w.now.Sub(b.at) > simLease
		forgotten := !b.knows[a.Attempt] && w.now.Sub(a.Claimed) > simLease
		if gone || forgotten {
			w.step(Lost{At: w.now, Attempt: a.Attempt, Reason: "simulated"})
		}
		if w.e == nil || gen != w.gen {
			return
		}
	}
}

// restart loads the ledger as a new leader and opens the study.
func (w *world) restart() {
	w.incarnations++
	ids := &counterIDs{prefix: string(rune('a' + w.incarnations%26)), nonces: 1000 * w.incarnations}
	e, out, err := w.led.load(ids, w.set, w.now)
	if err != nil {
		w.check.fail("load: %v", err)
		return
	}
	switchOff(e, w.off)
	w.lead(e)
	gen := w.gen
	if !w.took(&out, func() {}) {
		return
	}
	for w.e != nil && gen == w.gen && w.readNext() { // drain what came while nobody led
	}
	if w.e == nil || gen != w.gen {
		return
	}
	if w.faults && len(w.workers) > 0 && w.chance(4) { // all workers died with the process
		for _, worker := range w.workers {
			worker.die()
		}
		w.step(HandBackAll{At: w.now})
	}
	if w.e != nil && gen == w.gen {
		w.step(Tick{At: w.now})
	}
}

// step feeds one event that no stream carries.
func (w *world) step(ev Event) {
	if w.e == nil {
		return
	}
	out := w.e.Step(ev)
	w.took(&out, func() {})
}

// took commits an Output with the cursors that cursor moves, and carries its
// effects out, unless the leader dies before, in between or after.
func (w *world) took(out *Output, cursor func()) bool {
	if w.check.output(w, out); w.check.err != nil {
		return false
	}
	death := -1
	if w.faults && w.chance(150) {
		death = w.rng.IntN(4)
	}
	switch death {
	case 0: // before the commit
		w.crash()
		return false
	case 1: // between two transactions of a large commit
		part := Output{Study: out.Study, Trials: out.Trials[:w.rng.IntN(len(out.Trials)+1)]}
		w.led.commit(&part)
		w.crash()
		return false
	}
	if onlyCurves(out) {
		w.hold(out)
	} else {
		w.commit(out)
	}
	cursor()
	w.check.committed(w)
	if death == 2 { // before the effects
		w.crash()
		return false
	}
	w.effects(out)
	if death == 3 {
		w.crash()
		return false
	}
	return true
}

// onlyCurves reports whether an Output's records can wait.
func onlyCurves(out *Output) bool {
	return len(out.Trials) == 0 && out.Status == nil && out.Model == nil && out.Study == nil
}

// hold keeps curves for the next commit.
func (w *world) hold(out *Output) {
	if len(w.uncommitted) == 0 {
		w.uncommittedSince = w.now
	}
	w.uncommitted = append(w.uncommitted, out.Curves...)
}

// commit stores an Output, and with it the curves that were held back and how far
// their stream was read.
func (w *world) commit(out *Output) {
	for _, c := range w.uncommitted {
		w.led.commitCurve(c)
	}
	w.uncommitted, w.metric = nil, w.read
	w.led.commit(out)
}

// crash ends the leader; another one comes in a while.
func (w *world) crash() {
	w.gen++
	w.e, w.asked = nil, nil
	w.after(w.between(0, 6*time.Second), w.restart)
}

// effects carries out what a committed Output asks for. Messages are late, or lost.
func (w *world) effects(out *Output) {
	gen := w.gen
	for _, a := range out.Publish {
		if w.faults && w.chance(12) {
			continue // refused; the outbox publishes it again
		}
		w.after(w.between(0, 50*time.Millisecond), func() {
			w.queue, w.sent = append(w.queue, a), append(w.sent, a)
			if gen == w.gen {
				w.step(Published{At: w.now, Attempt: a.AttemptID})
			}
		})
	}
	for _, a := range out.Withdraw {
		w.after(w.between(0, 200*time.Millisecond), func() {
			ok := w.append(&messaging.Claim{AttemptID: a.AttemptID, Worker: messaging.LeaderName, At: w.now})
			if gen == w.gen {
				w.step(Withdrawn{At: w.now, Attempt: a.AttemptID, OK: ok})
			}
		})
	}
	for _, c := range out.Cancels {
		w.control(c.Worker, func(s *simWorker) {
			if c.Prune {
				s.prune(c.Attempt)
			} else {
				s.cancel(c.Attempt)
			}
		})
	}
	for _, r := range out.Receipts {
		w.control(r.Worker, func(s *simWorker) { s.receipt(r.Attempt) })
	}
	for _, a := range out.Avoids {
		w.control(a.Worker, func(s *simWorker) { s.avoids = true })
	}
	if out.Ask != nil {
		w.asked = out.Ask
		w.optimise(gen, out.Ask)
	}
	w.judge(gen, out.Judge)
	if ask := out.Fallback; ask != nil {
		w.after(w.between(0, 400*time.Millisecond), func() {
			if gen != w.gen || w.e == nil {
				return
			}
			list, err := gridFallback(ask.Problem, ask.N)
			if w.faults && w.chance(10) {
				list, err = list[:len(list)/2], errors.New("simulated: no feasible point")
			}
			ev := Suggested{At: w.now, Ask: ask, Suggestions: list, Err: err}
			w.timed(&ev)
			w.step(ev)
		})
	}
	if out.Wake.After(w.now) && out.Wake.Before(w.now.Add(simTick)) {
		w.at(out.Wake, func() {
			if gen == w.gen {
				w.step(Tick{At: w.now})
			}
		})
	}
}

// control sends a message to a worker, which may not hear it.
func (w *world) control(name string, act func(*simWorker)) {
	for _, s := range w.workers {
		if s.name != name {
			continue
		}
		w.after(w.between(0, 300*time.Millisecond), func() {
			if s.cut() || s.dead || w.faults && w.chance(8) {
				return
			}
			act(s)
		})
	}
}

// measure feeds one report, with the curve that it belongs to where the engine has
// forgotten that.
func (w *world) measure(m *messaging.Measurement) {
	if w.e.Forgotten(m.AttemptID) && w.off&safetyRecall == 0 {
		w.step(Recalled{At: w.now, Trial: m.Trial, Curve: w.led.curve(m.Trial)})
		if w.e == nil {
			return
		}
	}
	out := w.e.Step(Measured{At: w.now, Measurement: m})
	w.read++
	w.took(&out, func() {})
}

// readNext feeds one entry of either stream and reports whether there was one.
func (w *world) readNext() bool {
	claims, results, metrics := w.claim < len(w.claims), w.result < len(w.results), w.read < len(w.metrics)
	if w.e == nil || w.check.err != nil || !claims && !results && !metrics {
		return false
	}
	if metrics && (!claims && !results || w.chance(2)) {
		w.measure(w.metrics[w.read])
		return true
	}
	if claims && (!results || w.chance(2)) {
		c := w.claims[w.claim]
		var ev Event = Claimed{At: w.now, Claim: c.Claim}
		if c.unreadable {
			ev = Spoiled{At: w.now, Attempt: c.AttemptID}
		}
		out := w.e.Step(ev)
		w.took(&out, func() { w.claim++ })
		return true
	}
	r := w.results[w.result]
	out := w.e.Step(Finished{At: w.now, Result: r})
	w.check.receipt(r, &out)
	w.took(&out, func() {
		w.result++
		w.check.folded[r] = w.check.folded[r] || out.Receipts[0].Disposition == messaging.Folded
	})
	return true
}
